/**
 * The settlement of an attempt: its verdict as the item that the store receives, and the settler that sends the items.
 */

import { hasCode, PayloadTooLargeError } from '../../core/errors.js'
import { storedError } from '../../core/job/job-failures.js'
import { messageOf } from '../../core/messages/describe.js'
import { errorText, type FormatError } from '../../core/messages/error-text.js'
import { type Packing, unkeptResult } from '../../core/packing/packing.js'
import { outageDelayMs, timerMs } from '../../core/platform/timer.js'
import type { Queue } from '../../core/queue/queue.js'
import type { Surroundings } from '../../core/surroundings.js'
import { payloadBytes } from '../../core/values/codec.js'
import { slicesOf } from '../../core/values/pages.js'
import type { Claim } from '../../stores/contract/claim.js'
import { answersIn } from '../../stores/contract/damage.js'
import type { EndedRun, JobProcess } from '../../stores/contract/job-beat.js'
import type { ExtendItem, Hold, KeptResult, SettleAnswer, SettleItem } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { isFatal } from '../outage.js'
import type { Execution } from './execution.js'
import { refOf } from './run-events.js'
import type { Verdict } from './verdict.js'

export interface SettlementRules {
  readonly packing: Packing
  readonly formatError: FormatError
  readonly maxResultBytes: number
  readonly maxDelayMs: number
  /** Whether the store can hold a queue or a group. If not, a job that is released waits alone. */
  readonly canHold: boolean
  /**
   * When and where it ran; undefined if it has not begun. Called only if the job's record stays. Absent: another part
   * informs the store.
   */
  readonly endedRun?: (ran: Execution) => EndedRun | undefined
  /** The wall clock, for the instants of failures. */
  readonly now: () => number
  /** Called with a result that cannot be kept; the job completes, and the reason is kept instead. */
  readonly resultDropped: (claim: Claim, error: unknown) => void
}

/** The rules on a store with these traits. `own`: what is particular to one that settles. */
export function settlementRules(
  { packing, clock, events }: Surroundings,
  { formatError, maxPayloadBytes }: { readonly formatError: FormatError; readonly maxPayloadBytes: number },
  traits: Store['traits'],
  own: Partial<Pick<SettlementRules, 'endedRun' | 'resultDropped'>>,
): SettlementRules {
  return {
    ...{ packing, formatError, maxDelayMs: traits.maxDelayMs, canHold: traits.throttled },
    maxResultBytes: Math.min(maxPayloadBytes, traits.maxPayloadBytes),
    now: () => clock.now(),
    resultDropped: (claim, error) => events.emit('result.dropped', { ...refOf(claim), error: messageOf(error) }),
    ...own,
  }
}

/**
 * Of a job that ran this long, in ms, the record is kept although its handler returned nothing: somebody may ask for it. A
 * shorter one must cost no more than its completion.
 */
const longRunMs = 1_000

/** The item for this verdict. `ran`: the execution that ran, if any; `runMs`: for how long. */
export function settlementOf(
  claim: Claim,
  verdict: Verdict,
  results: Queue['results'],
  rules: SettlementRules,
  ran?: Execution,
  runMs = 0,
): SettleItem {
  const { queue, id, fence } = claim
  const held = holdOf(claim, verdict, rules)
  if (verdict.kind === 'complete') {
    const result = keptResult(claim, verdict.result, results, rules, runMs >= longRunMs)
    if (result !== undefined) return { queue, id, fence, ...held, kind: 'complete', result, ...runOf(ran, rules) }
    return held === undefined ? new Completion(claim) : { queue, id, fence, ...held, kind: 'complete' }
  }
  const { done } = verdict
  const delayMs = (ms: number) => Math.min(ms, rules.maxDelayMs)
  const key = { queue, id, fence, ...held }
  const left = done === undefined ? key : { ...key, done }
  // The payloads that are left had not failed before this run.
  const before = done === undefined ? claim : { attempt: 1, error: undefined }
  const text = (error: unknown, failed?: { readonly attempt: number; readonly at: number }) =>
    storedError(errorText(error, rules.formatError), before.error, failed)
  switch (verdict.kind) {
    case 'retry': {
      const error = text(verdict.error, { attempt: before.attempt, at: rules.now() })
      const failure = { ...left, kind: 'retry' as const, delayMs: delayMs(verdict.delayMs), error }
      return verdict.last ? { ...failure, last: true, reason: verdict.reason, ...runOf(ran, rules) } : failure
    }
    case 'release': {
      const { error, holdMs = 0, awaits } = verdict
      if (awaits !== undefined) return { ...key, kind: 'wait', ...awaits }
      const waitMs = rules.canHold ? verdict.delayMs : Math.max(verdict.delayMs, holdMs)
      return {
        ...left,
        kind: 'release',
        delayMs: delayMs(waitMs),
        ...(error === undefined ? {} : { error: text(error) }),
      }
    }
    case 'bury':
      return {
        ...left,
        kind: 'bury',
        reason: bounded(verdict.reason),
        ...(verdict.error === undefined ? {} : { error: text(verdict.error) }),
        ...runOf(ran, rules),
      }
    case 'cancel':
      return {
        ...key,
        kind: 'cancel',
        ...(verdict.reason === undefined ? {} : { reason: bounded(verdict.reason) }),
        ...runOf(ran, rules),
      }
  }
}

/** A completion of which nothing is kept. A class for the reason that `listOfOne` gives. */
class Completion {
  readonly queue: string
  readonly id: string
  readonly fence: number
  readonly kind = 'complete'

  constructor({ queue, id, fence }: Claim) {
    this.queue = queue
    this.id = id
    this.fence = fence
  }
}

/** The hold that the end of the claim brings with it. */
function holdOf(
  { group }: Claim,
  { holdMs }: Verdict,
  { canHold, maxDelayMs }: SettlementRules,
): { readonly hold: Hold } | undefined {
  if (holdMs === undefined || !canHold) return undefined
  return { hold: { of: group === undefined ? 'queue' : 'group', forMs: Math.min(holdMs, maxDelayMs) } }
}

function runOf(ran: Execution | undefined, { endedRun }: SettlementRules): { readonly run?: EndedRun } {
  const run = ran && endedRun?.(ran)
  return run === undefined ? {} : { run }
}

/**
 * For the record of the job: a run that began at `begunAt` and ends `now`, on one monotonic clock; undefined if it has
 * not begun. `place`: the process, if the record is to show it.
 */
export function endedRunOf(
  begunAt: number | undefined,
  now: number,
  { host, pid }: Pick<JobProcess, 'host' | 'pid'> = {},
): EndedRun | undefined {
  if (begunAt === undefined) return undefined
  const startedMs = now - begunAt
  return host === undefined || pid === undefined ? { startedMs } : { startedMs, host, pid }
}

function keptResult(
  claim: Claim,
  result: unknown,
  results: Queue['results'],
  rules: SettlementRules,
  isLong: boolean,
): (SettleItem & { kind: 'complete' })['result'] {
  // A join keeps a copy of the results of its members, whatever becomes of their records.
  if (results === 'none')
    return claim.isMember === true && result !== undefined
      ? { ...packedResult(claim, result, rules), onlyForJoins: true }
      : undefined
  const keepMs = results.ageMs === undefined ? {} : { keepMs: results.ageMs }
  if (result === undefined) return (isLong || results.ends) && claim.payloads === undefined ? keepMs : undefined
  return { ...packedResult(claim, result, rules), ...keepMs }
}

function packedResult(claim: Claim, result: unknown, rules: SettlementRules): Pick<KeptResult, 'payload' | 'codec'> {
  try {
    const packed = rules.packing.pack(result, 'result', claim)
    const bytes = payloadBytes(packed.payload)
    if (bytes > rules.maxResultBytes) throw new PayloadTooLargeError('the result', bytes, rules.maxResultBytes)
    return packed
  } catch (error) {
    rules.resultDropped(claim, error)
    return unkeptResult(error)
  }
}

/** Reasons are short words or sentences; a handler may return a novel. */
function bounded(reason: string): string {
  return reason.slice(0, 1_000).toWellFormed()
}

/**
 * `answer` undefined: the store never took it, and it is not tried again. `isInDoubt`: the item was sent before without an
 * answer, and may have been carried out then.
 */
export type Answered = (answer: SettleAnswer | undefined, isInDoubt: boolean) => void

/**
 * What an answer says of an end in doubt. `isHeld`: its lease cannot be over. Then nobody else was given the claim, and a job that is gone
 * has this end. A claim that is lost may also have been ended by an operator.
 */
export function answerInDoubt<Answer extends SettleAnswer | undefined>(answer: Answer, isHeld: boolean): Answer | 'ok' {
  return isHeld && answer === 'gone' ? 'ok' : answer
}

/** The settler: collects settle items and sends them in batches; while the store is away it keeps trying. */
export class Settler {
  readonly #surroundings: Surroundings
  readonly #store: Pick<Store, 'traits' | 'settle' | 'extend'>
  /** Items to send, and next to them the callbacks for the answers. */
  #items: SettleItem[] = []
  /** Last updates of some of their jobs, sent before the items. */
  #updates: ExtendItem[] = []
  #waiting: Answered[] = []
  /** Items that were sent and have no answer. */
  #underWay: (readonly SettleItem[])[] = []
  #planned = false
  #idle: (() => void)[] = []
  #isGivenUp = false

  constructor(surroundings: Surroundings, store: Pick<Store, 'traits' | 'settle' | 'extend'>) {
    this.#surroundings = surroundings
    this.#store = store
  }

  /**
   * Settles with the other items of this tick. `answered` is called once, when the store has answered or is given up.
   * `update`: the last update of the claim; it is lost if the store is away.
   */
  settle(item: SettleItem, answered: Answered, update?: ExtendItem): void {
    if (update !== undefined) this.#updates.push(update)
    this.#items.push(item)
    this.#waiting.push(answered)
    if (this.#planned) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      this.flush()
    })
  }

  /** Sends the collected items now, so that a claim made in the same tick shares their commit. */
  flush(): void {
    if (this.#items.length === 0) return
    this.#sendUpdates()
    const items = this.#items
    const waiting = this.#waiting
    this.#items = []
    this.#waiting = []
    const { maxBatch } = this.#store.traits
    for (let i = 0; i < items.length; i += maxBatch) {
      const some = items.slice(i, i + maxBatch)
      this.#underWay.push(some)
      void this.#send(some, waiting.slice(i, i + maxBatch)).then(() => this.#sent(some))
    }
  }

  /** Not awaited: calls of one handle are carried out in the order in which they are made. */
  #sendUpdates(): void {
    const updates = this.#updates
    if (updates.length === 0) return
    this.#updates = []
    const { maxBatch } = this.#store.traits
    for (const some of slicesOf(updates, maxBatch))
      this.#store.extend(some).catch((error: unknown) => {
        this.#surroundings.events.emit('store.failed', { call: 'extend', error, retryMs: undefined })
      })
  }

  /** The items that the store has not answered. */
  get unanswered(): readonly SettleItem[] {
    return this.#underWay.flat().concat(this.#items)
  }

  /** Resolves when everything has been answered, and at the latest after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    this.flush()
    if (this.#underWay.length === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timerMs(withinMs))
      this.#idle.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#isGivenUp = true
  }

  #sent(items: readonly SettleItem[]): void {
    this.#underWay = this.#underWay.filter((one) => one !== items)
    if (this.#underWay.length > 0 || this.#items.length > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #send(items: readonly SettleItem[], waiting: readonly Answered[]): Promise<void> {
    const store = this.#store
    const { events, random, clock } = this.#surroundings
    const madeAt = clock.mono()
    let isInDoubt = false
    for (let failures = 0; ; failures += 1) {
      try {
        const answers = await store.settle(
          failures === 0 ? items : items.map((item) => aged(item, clock.mono() - madeAt)),
        )
        for (const [i, answered] of waiting.entries()) answered(answers[i]!, isInDoubt)
        return
      } catch (error) {
        isInDoubt ||= hasCode(error, 'store-unavailable') && error.inDoubt
        // Keep the answers of the sound queues if another one is damaged.
        const answers = answersIn(error) ?? []
        const retryMs = this.#isGivenUp || isFatal(error) ? undefined : outageDelayMs(failures, random)
        events.emit('store.failed', { call: 'settle', error, retryMs })
        // No store will ever take these settles: the leases end, and the jobs run again.
        if (retryMs === undefined) {
          for (const [i, answered] of waiting.entries()) answered(answers[i] as SettleAnswer | undefined, isInDoubt)
          return
        }
        await new Promise((resolve) => setTimeout(resolve, timerMs(retryMs)))
      }
    }
  }
}

/** The same item sent `byMs` later: its run began longer ago, and what its job waits for, and the end of a hold, are nearer. */
function aged(sent: SettleItem, byMs: number): SettleItem {
  const { hold } = sent
  const item = hold === undefined ? sent : { ...sent, hold: { ...hold, forMs: Math.max(1, hold.forMs - byMs) } }
  // With a delay of 0 the job would return to its old place.
  if (item.kind === 'release' && item.delayMs > 0) return { ...item, delayMs: Math.max(1, item.delayMs - byMs) }
  if (item.kind === 'wait' && item.withinMs !== undefined)
    return { ...item, withinMs: Math.max(0, item.withinMs - byMs) }
  if (!('run' in item) || item.run === undefined) return item
  return { ...item, run: { ...item.run, startedMs: item.run.startedMs + byMs } }
}
