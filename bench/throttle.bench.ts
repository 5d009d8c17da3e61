/**
 * The cost of a throttle for Redis: scripts and commands per job that is let through, and per second in which
 * everything is denied. A worker and `ThrottledQueue.pop` of Millrace, compared with the algorithm of
 * RedisThrottledQueue.
 */

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import type { BenchReport } from './bench.js'
import { RivalThrottledQueue } from './contenders/rival-throttled-queue.js'
import { RedisMeter, type Spent } from './redis/redis-meter.js'
import { startRedisServer } from './redis/redis-server.js'
import { figure, grouped } from './rounds.js'

interface Rules {
  readonly limit: number
  readonly windowMs: number
  readonly moderate: boolean
}

/** A consumer that takes jobs as the throttle lets them through. */
interface Taker {
  fill(jobs: number): Promise<void>
  /**
   * Takes until it has `jobs` more, or the signal stops it. A taker that polls asks every `pollMs` while it is denied.
   */
  take(jobs: number, pollMs: number, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

type Make = (url: string, rules: Rules) => Promise<Taker>

const name = 'sites'

/** A worker of this many slots: a claim brings at most as many jobs, because they must begin at once. */
function workerOf(concurrency: number): Make {
  return async (url, rules) => {
    const blank = defineTask({ name: 'blank', queue: name, run: async () => {} })
    const { windowMs: window, ...rest } = rules
    const mill = millrace({ store: url, tasks: [blank], queues: { [name]: { throttle: { ...rest, window } } } })
    let worker: ReturnType<typeof mill.worker> | undefined
    return {
      async fill(jobs) {
        await mill.enqueueMany(blank, new Array<unknown>(jobs).fill(0))
      },
      async take(jobs, _pollMs, signal) {
        let left = jobs
        const taken = new Promise<void>((resolve) => {
          const off = mill.on('job.completed', () => {
            left -= 1
            if (left > 0) return
            off()
            resolve()
          })
        })
        worker ??= mill.worker({ concurrency })
        await worker.start()
        await Promise.race([taken, ...(signal === undefined ? [] : [once(signal, 'abort')])])
      },
      close: () => mill.close(),
    }
  }
}

const takers: Readonly<Record<string, Make>> = {
  worker: workerOf(10),
  worker100: workerOf(100),

  async pop(url, { windowMs: window, ...rest }) {
    const mill = millrace({ store: url })
    const queue = mill.throttledQueue<number>(name, { ...rest, window })
    return polled(
      async (jobs) => {
        await Promise.all(Array.from({ length: jobs }, (_, i) => queue.push(i)))
      },
      async () => (await queue.pop()) !== null,
      () => mill.close(),
    )
  },

  async redisThrottledQueue(url, rules) {
    const queue = new RivalThrottledQueue(url, name, rules)
    return polled(
      async (jobs) => {
        await Promise.all(Array.from({ length: jobs }, (_, i) => queue.push(`item-${i}`, 0)))
      },
      async () => (await queue.pop()) !== null,
      () => queue.close(),
    )
  },
}

function polled(fill: Taker['fill'], pop: () => Promise<boolean>, close: Taker['close']): Taker {
  return {
    fill,
    async take(jobs, pollMs, signal) {
      for (let left = jobs; left > 0 && signal?.aborted !== true; ) {
        if (await pop()) left -= 1
        else await sleep(pollMs)
      }
    },
    close,
  }
}

const full = { jobs: 2_000, deniedMs: 5_000, pacedMs: 5_000 }
/** Shows that everything runs; its figures mean nothing. */
const quick = { jobs: 200, deniedMs: 500, pacedMs: 500 }
const pollMs = 10

/** Options: `--quick`. */
export async function bench(report: BenchReport): Promise<unknown> {
  const plan = process.argv.includes('--quick') ? quick : full
  const server = await startRedisServer()
  const meter = new RedisMeter(server.url)
  const figures: Record<string, unknown> = {}
  try {
    for (const [taker, make] of Object.entries(takers)) {
      const measure = (rules: Rules, action: (taker: Taker) => Promise<Spent>) =>
        measured(meter, () => make(server.url, rules), action)
      const admitted = await measure({ limit: plan.jobs, windowMs: 3_600_000, moderate: false }, async (one) => {
        await one.fill(plan.jobs)
        return meter.measured(() => one.take(plan.jobs, pollMs))
      })
      const denied = await measure({ limit: 10, windowMs: 3_600_000, moderate: false }, async (one) => {
        await one.fill(100)
        await one.take(10, pollMs)
        const over = AbortSignal.timeout(plan.deniedMs)
        return meter.measured(() => one.take(1, pollMs, over))
      })
      // 100 a second, evenly. It asks often enough to miss almost no slot.
      const pacedJobs = plan.pacedMs / 10
      const paced = await measure({ limit: 100, windowMs: 1_000, moderate: true }, async (one) => {
        await one.fill(2 * pacedJobs)
        return meter.measured(() => one.take(pacedJobs, 1))
      })
      const admittedPerSecond = (1_000 * plan.jobs) / admitted.ms
      const pacedPerSecond = (1_000 * pacedJobs) / paced.ms
      figures[taker] = {
        admitted: { ...perJob(admitted, plan.jobs), perSecond: figure(admittedPerSecond) },
        deniedPerSecond: perJob(denied, plan.deniedMs / 1_000),
        paced: { ...perJob(paced, pacedJobs), perSecond: figure(pacedPerSecond) },
      }
      report.say(
        [
          taker.padEnd(22),
          `let through: ${text(admitted, plan.jobs)} a job, ${grouped(admittedPerSecond)} jobs/s`.padEnd(74),
          `denied: ${text(denied, plan.deniedMs / 1_000)} a second`.padEnd(60),
          `100/s, even: ${text(paced, pacedJobs)} a job, ${grouped(pacedPerSecond, 1)} jobs/s`,
        ].join(''),
      )
    }
    return figures
  } finally {
    await meter.close()
    await server.stop()
  }
}

async function measured(
  meter: RedisMeter,
  make: () => Promise<Taker>,
  action: (taker: Taker) => Promise<Spent>,
): Promise<Spent> {
  await meter.flush()
  const taker = await make()
  try {
    return await action(taker)
  } finally {
    await taker.close()
  }
}

function perJob({ scriptCalls, commands, redisCpuMs }: Spent, jobs: number) {
  return {
    scripts: figure(scriptCalls / jobs),
    commands: figure(commands / jobs),
    redisCpuUs: figure((1_000 * redisCpuMs) / jobs),
  }
}

function text(spent: Spent, jobs: number): string {
  const { scripts, commands, redisCpuUs } = perJob(spent, jobs)
  return `${grouped(scripts, 2)} scripts, ${grouped(commands, 2)} commands, ${grouped(redisCpuUs)} µs`
}
