/** Traffic: producers and workers on one Redis, and a ledger of what was acknowledged, what was refused and what was run. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type EventMap, type Mill, millrace, type Worker } from 'millrace'
import { StoreUnavailableError } from '#src/core/errors.js'

export interface TrafficPlan {
  /** Where producers find the store. */
  readonly url: string
  /** Where workers find it. Default: as producers. */
  readonly workersUrl?: string
  readonly namespace?: string
  /** Replicas that must have a job before its enqueue is accepted. Default 0. */
  readonly replicas?: number
  /** Loops that enqueue one job after the other. Default 8. */
  readonly producers?: number
  /** Between two jobs of a loop. Default 10. */
  readonly everyMs?: number
  /** Bytes of text in each job. Default 20. */
  readonly bytes?: number
  /** Jobs at once. Default 10. */
  readonly concurrency?: number
  /** A job takes up to so long. Default 10. */
  readonly jobMs?: number
}

/** An enqueue that was rejected, and after how long. */
export interface Refusal {
  readonly id: string
  readonly error: Error
  readonly ms: number
}

export interface Verdict {
  readonly acknowledged: number
  /** Enqueues that were rejected: each job may or may not be there. */
  readonly refused: number
  /** Of those, the ones that were rejected by anything but `StoreUnavailableError`. */
  readonly refusedOddly: number
  readonly slowestRefusalMs: number
  /** Acknowledged, and neither run to its end nor in the store. */
  readonly lost: number
  /** Settled as completed more than once. */
  readonly completedTwice: number
  /** Run to their end more than once: what was settled while the store died may be run again. */
  readonly runTwice: number
  readonly buried: number
  readonly workersFailed: number
}

const lookMs = 10

export class Traffic {
  readonly producer: Mill
  readonly consumer: Mill
  readonly task
  readonly acknowledged = new Set<string>()
  readonly refusals: Refusal[] = []
  /** How often each job was run to its end. */
  readonly runs = new Map<string, number>()
  readonly #plan: TrafficPlan
  readonly #completed = new Map<string, number>()
  readonly #loops: Promise<void>[] = []
  #next = 0
  #isProducing = false
  #buried = 0
  #failed = 0

  constructor(plan: TrafficPlan) {
    this.#plan = plan
    const { url, workersUrl = url, namespace = 'drill', replicas = 0, jobMs = 10 } = plan
    this.task = defineTask({
      name: 'drilled',
      run: async (_, ctx) => {
        await delay(Math.random() * jobMs)
        this.runs.set(ctx.job.id, (this.runs.get(ctx.job.id) ?? 0) + 1)
      },
    })
    const options = { namespace, tasks: [this.task], queues: { default: { lease: '5s' } } } as const
    this.producer = millrace({ ...options, store: url, replicas })
    this.consumer = millrace({ ...options, store: workersUrl })
    this.consumer.on('job.completed', ({ id }) => this.#completed.set(id, (this.#completed.get(id) ?? 0) + 1))
    this.consumer.on('job.buried', () => {
      this.#buried += 1
    })
    this.consumer.on('worker.failed', () => {
      this.#failed += 1
    })
  }

  /** Everything runs, and the first job is done. */
  static async start(plan: TrafficPlan): Promise<Traffic> {
    const traffic = new Traffic(plan)
    await traffic.work()
    traffic.produce()
    await traffic.claimed()
    return traffic
  }

  /** Starts a worker. */
  async work(concurrency = this.#plan.concurrency ?? 10): Promise<Worker> {
    const worker = this.consumer.worker({ concurrency })
    await worker.start()
    return worker
  }

  /** Starts the producers. */
  produce(): void {
    this.#isProducing = true
    for (let i = 0; i < (this.#plan.producers ?? 8); i += 1) this.#loops.push(this.#produce())
  }

  /** One job; its error where it was refused. */
  async enqueue(): Promise<Error | undefined> {
    const id = `job-${this.#next++}`
    const startedAt = performance.now()
    try {
      await this.producer.enqueue(this.task, 'x'.repeat(this.#plan.bytes ?? 20), { id })
      this.acknowledged.add(id)
      return undefined
    } catch (error) {
      this.refusals.push({ id, error: error as Error, ms: performance.now() - startedAt })
      return error as Error
    }
  }

  /** Resolves when a worker is given jobs from now on, with how many ms that took. */
  async claimed(withinMs = 30_000): Promise<number> {
    const startedAt = performance.now()
    await this.event('queue.claimed', withinMs)
    return performance.now() - startedAt
  }

  /** Resolves when an enqueue that begins from now on is accepted, with how many ms that took. */
  async accepted(withinMs = 30_000): Promise<number> {
    const startedAt = performance.now()
    while ((await this.enqueue()) !== undefined)
      if (performance.now() - startedAt > withinMs) throw new Error(`no enqueue was accepted within ${withinMs} ms`)
    return performance.now() - startedAt
  }

  /** The next event of the workers. */
  event<Name extends keyof EventMap>(name: Name, withinMs = 30_000): Promise<EventMap[Name]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => done(() => reject(new Error(`no ${name} within ${withinMs} ms`))), withinMs)
      const off = this.consumer.on(name, (event) => done(() => resolve(event)))
      const done = (end: () => void) => {
        clearTimeout(timer)
        off()
        end()
      }
    })
  }

  /** Resolves when no enqueue is under way any more. */
  async stopProducing(): Promise<void> {
    this.#isProducing = false
    await Promise.all(this.#loops.splice(0))
  }

  /** Ends production and waits until nothing waits or runs; then what became of everything. */
  async verdict(withinMs = 60_000): Promise<Verdict> {
    await this.stopProducing()
    const deadline = performance.now() + withinMs
    let left = await this.#left()
    while (left > 0 && performance.now() < deadline) {
      await delay(lookMs)
      left = await this.#left()
    }
    if (left > 0) throw new Error(`${left} jobs were not worked off within ${withinMs} ms`)
    const unavailable = ({ error }: Refusal) => error instanceof StoreUnavailableError
    return {
      acknowledged: this.acknowledged.size,
      refused: this.refusals.length,
      refusedOddly: this.refusals.filter((refusal) => !unavailable(refusal)).length,
      slowestRefusalMs: Math.round(Math.max(0, ...this.refusals.map(({ ms }) => ms))),
      lost: [...this.acknowledged].filter((id) => !this.runs.has(id)).length,
      completedTwice: more(this.#completed),
      runTwice: more(this.runs),
      buried: this.#buried,
      workersFailed: this.#failed,
    }
  }

  async close(): Promise<void> {
    this.#isProducing = false
    await Promise.all([this.producer.close(), this.consumer.close()])
  }

  async #produce(): Promise<void> {
    while (this.#isProducing) {
      await this.enqueue()
      await delay(this.#plan.everyMs ?? 10)
    }
  }

  /** Waiting and running jobs; what cannot be asked now is not none. */
  async #left(): Promise<number> {
    const depths = await this.consumer.depths(['default']).catch(() => undefined)
    return depths === undefined ? 1 : depths[0]!.ready + depths[0]!.scheduled + depths[0]!.running
  }
}

function more(times: ReadonlyMap<string, number>): number {
  return [...times.values()].filter((count) => count > 1).length
}
