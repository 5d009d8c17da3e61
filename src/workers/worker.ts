/**
 * A worker: takes jobs from its queues and runs them, `concurrency` at a time.
 *
 * Its loop: the selector orders the queues → one claim over them for the free slots → stay for `iterations` → draw again;
 * where all were empty, rest until one is rung. Settles of what has ended go out in the tick of the next claim.
 */

import type { Clock, Random } from '../core/clock.js'
import type { Codec } from '../core/codec.js'
import { type Duration, durationMs } from '../core/duration.js'
import type { FormatError } from '../core/error-text.js'
import { WorkerStoppedError } from '../core/errors.js'
import type { Events } from '../core/events.js'
import type { Middleware } from '../core/middleware.js'
import type { Queue } from '../core/queue.js'
import type { Registry } from '../core/registry.js'
import { messageOf } from '../core/shown.js'
import type { Execution } from '../runtime/execution.js'
import { Executor, refOf } from '../runtime/executor.js'
import { identityText, processIdentity } from '../runtime/identity.js'
import { LeaseKeeper } from '../runtime/lease-keeper.js'
import { isFatal, outageDelayMs } from '../runtime/outage.js'
import { Service } from '../runtime/service.js'
import { type SettlementRules, settlementOf } from '../runtime/settlement.js'
import { type Answered, Settler } from '../runtime/settler.js'
import type { Verdict } from '../runtime/verdict.js'
import { Waiter } from '../runtime/waiter.js'
import type { Selector } from '../selectors/selector.js'
import type { Claim, Claimed, Store, Wait } from '../stores/store.js'
import { Draw } from './draw.js'
import { report, tellExhausted } from './report.js'
import { Slots } from './slots.js'

export interface WorkerParts {
  readonly connect: () => Promise<Store>
  readonly registry: Registry
  readonly codec: Codec
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  readonly middleware: readonly Middleware[]
  readonly formatError: FormatError
  readonly maxPayloadBytes: number
}

/** What a worker is to serve, with every default filled in. */
export interface WorkerSettings {
  readonly queues: readonly Queue[]
  readonly concurrency: number
  readonly selector: Selector
  readonly graceMs: number
}

const registryBeatMs = 5_000
/** Three beats missed, and the registry forgets the worker. */
const registryTtlMs = 3 * registryBeatMs

/** How long a stop waits for a store that does not take the last settles; their leases end by themselves. */
const settlePatienceMs = 5_000

let workersOfThisProcess = 0

export class Worker {
  readonly id: string
  readonly #parts: WorkerParts
  readonly #settings: WorkerSettings
  readonly #slots: Slots
  readonly #draw: Draw
  readonly #running = new Set<Execution>()
  #tools:
    | { store: Store; executor: Executor; settler: Settler; keeper: LeaseKeeper; waiter: Waiter; presence: Service }
    | undefined
  #waits: readonly Wait[] = []
  #calling: 'claim' | 'wait' = 'claim'
  #loop: Promise<void> | undefined
  #stopping = false
  #stopped: Promise<void> | undefined

  constructor(parts: WorkerParts, settings: WorkerSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#slots = new Slots(settings.concurrency)
    this.#draw = new Draw(settings.selector, settings.queues, parts.random)
    workersOfThisProcess += 1
    this.id = `${identityText(processIdentity())}/${workersOfThisProcess}`
  }

  /** Jobs in hand at this moment. */
  get running(): number {
    return this.#slots.used
  }

  /** Opens the store and begins to claim. Throws what opening throws; starting twice is harmless. */
  async start(): Promise<void> {
    if (this.#loop !== undefined || this.#stopping) return
    const { connect, events, random, clock } = this.#parts
    const store = await connect()
    if (this.#loop !== undefined || this.#stopping) return
    const { host, pid } = processIdentity()
    const startedAt = clock.now()
    const queues = this.#settings.queues.map(({ name }) => name)
    const beat = async () => {
      await store.workers?.beat(
        { id: this.id, host, pid, queues, concurrency: this.#slots.total, running: this.#slots.used, startedAt },
        registryTtlMs,
      )
    }
    const beatFailed = (error: unknown) =>
      events.emit('store.failed', { call: 'workers.beat', error, retryMs: registryBeatMs })
    this.#tools = {
      store,
      executor: new Executor({ ...this.#parts, worker: this.id }),
      settler: new Settler(store, events, random),
      keeper: new LeaseKeeper({ store, events, mono: clock.mono, host, pid }),
      waiter: new Waiter(store),
      presence: new Service(registryBeatMs, beat, beatFailed),
    }
    this.#tools.presence.start()
    events.emit('worker.started', { worker: this.id, queues })
    this.#loop = this.#run()
    this.#loop.catch((error: unknown) => this.#failed(error))
  }

  /** It takes no more jobs; those in hand go on and are settled as far as the store allows. */
  #failed(error: unknown): void {
    this.#parts.events.emit('worker.failed', { worker: this.id, error })
    void this.#tools!.presence.stop()
    void this.#tools!.store.workers?.remove(this.id).catch(() => {})
  }

  /** Resolves when the worker has stopped; rejects with the error that ended it: one of the store's that no waiting mends. */
  async finished(): Promise<void> {
    await this.#loop
    await this.#stopped
  }

  /**
   * Claims nothing from now on and lets running handlers finish within `grace` (default: the worker's); those that do not
   * are aborted and their jobs released, uncounted. Resolves when everything is settled. Calling it again waits for the first.
   */
  stop(options: { readonly grace?: Duration | 'none' } = {}): Promise<void> {
    const { grace } = options
    const graceMs =
      grace === undefined
        ? this.#settings.graceMs
        : grace === 'none'
          ? Number.POSITIVE_INFINITY
          : durationMs(grace, 'stop({ grace })')
    this.#stopped ??= this.#stop(graceMs)
    return this.#stopped
  }

  async #stop(graceMs: number): Promise<void> {
    this.#stopping = true
    const tools = this.#tools
    if (tools === undefined) return
    tools.waiter.wake()
    this.#slots.wake()
    const patience =
      graceMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => this.#giveUpAll(), Math.min(graceMs, 0x7fffffff))
    await this.#loop?.catch(() => {})
    while (this.#running.size > 0) await this.#slots.freed()
    clearTimeout(patience)
    await tools.settler.settled(settlePatienceMs)
    tools.keeper.stop()
    await tools.presence.stop()
    await tools.store.workers?.remove(this.id).catch(() => {})
    this.#parts.events.emit('worker.stopped', { worker: this.id })
  }

  #giveUpAll(): void {
    for (const execution of this.#running)
      execution.giveUp(new WorkerStoppedError('the worker is stopping and its grace is over; the job is released.'))
  }

  async #run(): Promise<void> {
    const { events, random } = this.#parts
    for (let failures = 0; !this.#stopping; ) {
      try {
        await this.#turn()
        failures = 0
      } catch (error) {
        if (isFatal(error)) throw error
        const retryMs = outageDelayMs(failures++, random)
        events.emit('store.failed', { call: this.#calling, error, retryMs })
        await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
  }

  async #turn(): Promise<void> {
    const { waiter } = this.#tools!
    if (this.#slots.free === 0) return this.#slots.freed()
    this.#calling = 'claim'
    const asked = this.#draw.next()
    if (asked.length > 0) return this.#claim(asked)
    this.#calling = 'wait'
    const longPollMs = Math.min(...this.#settings.queues.map((queue) => queue.longPollMs))
    await waiter.rest(this.#draw.tried, this.#waits, longPollMs)
    this.#waits = []
    this.#draw.rested()
  }

  async #claim(asked: readonly string[]): Promise<void> {
    const { store, settler } = this.#tools!
    const { clock, registry, events } = this.#parts
    const limit = Math.min(this.#slots.free, store.traits.maxBatch)
    const from = asked.map((name) => {
      const { claimSize, leaseMs } = registry.queue(name)
      return { queue: name, limit: Math.min(limit, claimSize), leaseMs }
    })
    settler.flush()
    const sentAt = clock.mono()
    const answer = await store.claim(from, {
      worker: this.id,
      leaseMs: from[0]!.leaseMs,
      ...(this.#settings.selector.needsHeads ? { heads: true } : {}),
    })
    this.#draw.answered(asked, answer)
    this.#waits = answer.queue === undefined ? [...this.#waits, ...answer.waits] : []
    this.#reportBuried(answer)
    if (answer.queue === undefined) return
    if (events.has('queue.claimed'))
      events.emit('queue.claimed', { queue: answer.queue, jobs: answer.claims.length, worker: this.id })
    for (const claim of answer.claims) {
      if (this.#stopping) this.#settle(claim, { kind: 'release', delayMs: 0, reason: 'stopping' }, sentAt)
      else this.#begin(claim, sentAt)
    }
  }

  #begin(claim: Claim, sentAt: number): void {
    const { executor, keeper } = this.#tools!
    const prepared = executor.prepare(claim)
    if ('verdict' in prepared) {
      this.#settle(claim, prepared.verdict, sentAt)
      return
    }
    const { execution } = prepared
    const startedAt = this.#parts.clock.mono()
    this.#slots.take()
    this.#running.add(execution)
    const forget = keeper.keep(execution, this.#parts.registry.queue(claim.queue).leaseMs, sentAt)
    const { verdict, released } = executor.run(prepared)
    void verdict.then((decided) => {
      this.#running.delete(execution)
      this.#settle(claim, decided, startedAt, (answer) => {
        // Not before: a settle may wait for the store longer than the lease has left. And then in any case: a lease that
        // went on being kept for a settle that was given up would keep the job from everybody.
        forget()
        if (answer === 'ok') void tellExhausted(this.#parts.events, prepared, decided)
      })
      // A stop waits for verdicts, not for handlers that ignore their signal.
      if (this.#stopping) this.#slots.wake()
    })
    void released.then(() => this.#slots.give())
  }

  #settle(claim: Claim, verdict: Verdict, startedAt: number, answered?: Answered): void {
    const { events, registry, clock } = this.#parts
    const runMs = clock.mono() - startedAt
    const dropped = (error: unknown) => events.emit('result.dropped', { ...refOf(claim), error: messageOf(error) })
    const item = settlementOf(claim, verdict, registry.queue(claim.queue).results, this.#rules(dropped))
    this.#tools!.settler.settle(item, (answer) => {
      if (answer !== undefined) report(events, claim, verdict, answer, runMs)
      answered?.(answer)
    })
  }

  #rules(resultDropped: (error: unknown) => void): SettlementRules {
    const { codec, formatError, maxPayloadBytes } = this.#parts
    const { traits } = this.#tools!.store
    return {
      codec,
      formatError,
      maxResultBytes: Math.min(maxPayloadBytes, traits.maxPayloadBytes),
      maxDelayMs: traits.maxDelayMs,
      resultDropped,
    }
  }

  #reportBuried({ buried }: Claimed): void {
    for (const { reason, ...ref } of buried) this.#parts.events.emit('job.buried', { ...ref, reason, error: undefined })
  }
}
