/**
 * The measures: the tasks that one contender is given, and the figures of each. They run in the contender's own
 * process.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Spent } from '../redis/redis-meter.js'
import type { Contender, OpenContender } from './contender.js'

/** `inFlight`: calls that are unanswered at a time. */
export interface Measures<Cost = Spent> {
  /** Empties the server and enqueues this number of jobs. */
  fill(plan: { jobs: number }): Promise<void>
  /**
   * From the start of a worker to the last completion of the waiting jobs. `workers`: how many share the connection.
   */
  work(plan: { jobs: number; concurrency: number; workers?: number }): Promise<Cost>
  /** Enqueues jobs one by one, on an empty server. The next two measures begin on an empty server too. */
  enqueue(plan: { jobs: number; inFlight: number }): Promise<Cost>
  enqueueMany(plan: { jobs: number; perCall: number; inFlight: number }): Promise<Cost>
  /** The memory that this number of waiting jobs takes. */
  memory(plan: { jobs: number; payloadBytes: number }): Promise<Cost>
  /** The cost of a worker with nothing to do. */
  idle(plan: { queues: number; shards: number; forMs: number }): Promise<Cost>
  /** Starts a worker that notes how long each job of `pace` took to start. Resolves when the worker is running. */
  listen(plan: { jobs: number; concurrency: number }): Promise<void>
  /** Enqueues at its pace, even if the last job is not accepted yet. */
  pace(plan: { jobs: number; perSecond: number }): Promise<void>
  /** Ends `listen` after its last job: ms from before each enqueue to its start. */
  heard(plan: Record<string, never>): Promise<number[]>
}

/** What a server and this process spend; and how the server is emptied. */
interface Meter<Cost> {
  measured(action: () => Promise<unknown>): Promise<Cost>
  flush(): Promise<void>
}

const fillPerCall = 1_000
const fillInFlight = 4
/** Time after which the work of a worker at its start is over, so that it does not count as idling. */
const settledAfterMs = 2_000

export function measuresOf<Cost>(open: OpenContender, url: string, meter: Meter<Cost>): Measures<Cost> {
  const blank = inputOf(10)
  let hearing: Promise<number[]> = Promise.reject(new Error('nothing listens; call `listen` before `heard`'))
  hearing.catch(() => {})

  async function opened<T>(action: (contender: Contender) => Promise<T>, queues = 1, shards = 1): Promise<T> {
    const contender = await open(url, queues, shards)
    const result = await action(contender)
    await contender.close()
    return result
  }

  async function onEmptyServer<T>(action: (contender: Contender) => Promise<T>): Promise<T> {
    await meter.flush()
    return opened(action)
  }

  return {
    fill: ({ jobs }) => onEmptyServer((contender) => enqueueAll(contender, blank, jobs, fillPerCall, fillInFlight)),

    work: ({ jobs, concurrency, workers = 1 }) =>
      opened((contender) => {
        const { down: completed, over } = countdown(jobs)
        return meter.measured(async () => {
          for (let i = 0; i < workers; i += 1) await contender.work({ concurrency, started: () => {}, completed })
          await over
        })
      }),

    enqueue: ({ jobs, inFlight }) =>
      onEmptyServer((contender) => meter.measured(() => repeated(jobs, inFlight, () => contender.enqueue(blank)))),

    enqueueMany: ({ jobs, perCall, inFlight }) =>
      onEmptyServer((contender) => meter.measured(() => enqueueAll(contender, blank, jobs, perCall, inFlight))),

    memory: ({ jobs, payloadBytes }) =>
      onEmptyServer(async (contender) => {
        const input = inputOf(payloadBytes)
        // Things that the first call leaves, such as scripts, are not part of the jobs.
        await contender.enqueueMany([input])
        return meter.measured(() => enqueueAll(contender, input, jobs, fillPerCall, 1))
      }),

    idle: ({ queues, shards, forMs }) =>
      opened(
        async (contender) => {
          await contender.work({ concurrency: 100, started: () => {}, completed: () => {} })
          await delay(settledAfterMs)
          return meter.measured(() => delay(forMs))
        },
        queues,
        shards,
      ),

    async listen({ jobs, concurrency }) {
      const latencies: number[] = []
      const started = (input: unknown) => {
        // All processes of a machine share the monotonic clock.
        latencies.push(Number(process.hrtime.bigint() - BigInt((input as { at: string }).at)) / 1e6)
      }
      const { down: completed, over } = countdown(jobs)
      const contender = await open(url, 1, 1)
      await contender.work({ concurrency, started, completed })
      hearing = over.then(() => contender.close()).then(() => latencies)
    },

    pace: ({ jobs, perSecond }) =>
      opened(async (contender) => {
        const accepted: Promise<unknown>[] = []
        const startedAt = performance.now()
        for (let i = 0; i < jobs; i += 1) {
          await delay(Math.max(0, startedAt + (i * 1_000) / perSecond - performance.now()))
          accepted.push(contender.enqueue({ at: String(process.hrtime.bigint()) }))
        }
        await Promise.all(accepted)
      }),

    heard: () => hearing,
  }
}

/** An input of this number of bytes as JSON, 10 or more. */
function inputOf(payloadBytes: number): unknown {
  return payloadBytes === 10 ? { n: 1_234 } : { n: 'x'.repeat(payloadBytes - '{"n":""}'.length) }
}

async function enqueueAll(contender: Contender, input: unknown, jobs: number, perCall: number, inFlight: number) {
  const full = new Array<unknown>(perCall).fill(input)
  await repeated(Math.floor(jobs / perCall), inFlight, () => contender.enqueueMany(full))
  const rest = jobs % perCall
  if (rest > 0) await contender.enqueueMany(full.slice(0, rest))
}

/** Runs `callers` loops that call one after the other, until all together have made this number of calls. */
async function repeated(times: number, callers: number, call: () => Promise<unknown>): Promise<void> {
  let left = times
  const caller = async () => {
    while (left > 0) {
      left -= 1
      await call()
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

function countdown(from: number): { down(): void; readonly over: Promise<void> } {
  let left = from
  let resolveOver = () => {}
  const over = new Promise<void>((resolve) => {
    resolveOver = resolve
  })
  const down = () => {
    left -= 1
    if (left === 0) resolveOver()
  }
  return { down, over }
}
