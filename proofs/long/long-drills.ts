/** The drills of long work: workers die and servers go away, but each job runs once. */

import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { killWorker, LongSite, mostAtOnce, steady } from './long-site.js'

const resultWithin = { timeout: '15m' } as const

export interface KillsOutcome {
  readonly jobs: number
  readonly kills: number
  readonly begun: number
  readonly completed: number
  readonly mostAtOnce: number
  readonly adopted: number
}

/** Jobs of 2 … 8 s in `slots` slots, while `millrace work` is killed every 1 … 3 s and started again at once. */
export async function killedWorkers(
  plan: { readonly jobs: number; readonly slots: number; readonly kills: number; readonly random: () => number },
  store?: string,
): Promise<KillsOutcome> {
  const site = new LongSite('3s', store)
  try {
    const args = ['--concurrency', String(plan.slots)]
    const works = [await site.work(args)]
    const jobs = await site.mill.enqueueMany(
      steady,
      Array.from({ length: plan.jobs }, () => 2_000 + Math.floor(plan.random() * 6_000)),
    )
    const results = Promise.all(jobs.map((job) => job.result(resultWithin)))
    for (let i = 0; i < plan.kills; i += 1) {
      await delay(1_000 + plan.random() * 2_000)
      works.push(await site.restarted(works.at(-1)!, args))
    }
    await results
    const entries = site.entries()
    return {
      jobs: plan.jobs,
      kills: plan.kills,
      begun: entries.filter(({ what }) => what === 'begun').length,
      completed: new Set(entries.filter(({ what }) => what === 'ended').map(({ id }) => id)).size,
      mostAtOnce: mostAtOnce(entries),
      adopted: works.flatMap((work) => work.said('job.adopted')).length,
    }
  } finally {
    await site.close()
  }
}

export interface LongRunOutcome {
  readonly seconds: number
  readonly begun: number
  readonly ended: number
  readonly workerKills: number
  readonly serverKills: number
  readonly outageMs: number
  readonly crashed: number
  readonly failed: number
}

/** One job of `ms` with a lease of 5 s, next to a rival on another host that would take over lost jobs. */
export async function oneLongRun(plan: {
  readonly ms: number
  readonly workerKills: number
  readonly serverKills: number
  readonly outageMs: number
}): Promise<LongRunOutcome> {
  const redis = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
  const site = new LongSite('5s', redis.url)
  const startedAt = performance.now()
  try {
    const work = await site.work(['--concurrency', '1'])
    const job = await site.mill.enqueue(steady, plan.ms)
    await work.events('job.adopted', 0)
    while (site.entries().length === 0) await delay(50)
    await site.work([], { MILLRACE_HOST: 'elsewhere' })
    const steps = plan.workerKills + plan.serverKills + 1
    const everyMs = plan.ms / (steps + 1)
    for (let step = 0; step < steps; step += 1) {
      await delay(Math.max(0, startedAt + (step + 1) * everyMs - performance.now()))
      if (step === Math.floor(steps / 2)) {
        await redis.kill()
        await delay(plan.outageMs)
        await redis.restart()
      } else if (step % 4 === 1 && Math.floor(step / 4) < plan.serverKills) await redis.restart()
      else await killWorker(work)
    }
    // Asked for only now, because a caller that waits for a result is told of an outage.
    await job.result({ timeout: plan.ms })
    const [depth] = await site.mill.depths(['long'])
    const entries = site.entries()
    return {
      seconds: (performance.now() - startedAt) / 1_000,
      begun: entries.filter(({ what }) => what === 'begun').length,
      ended: entries.filter(({ what }) => what === 'ended').length,
      ...{
        workerKills: work.said('worker.started').length - 1,
        serverKills: plan.serverKills,
        outageMs: plan.outageMs,
      },
      ...{ crashed: depth!.crashed, failed: depth!.failed },
    }
  } finally {
    await site.close()
    await redis.stop()
  }
}
