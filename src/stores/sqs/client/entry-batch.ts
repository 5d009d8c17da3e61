/**
 * Entries of one kind for one queue, sent together: a call carries up to ten, and costs as much as a call with one. An
 * entry that fails and may succeed later is sent again by itself, and a call that the service finds too long in halves.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { PayloadTooLargeError } from '../../../core/errors.js'
import { timerMs } from '../../../core/platform/timer.js'
import type { EntryFailure, SendEntry, SqsApi, SqsCalls, SqsEntryCall } from './sqs-api.js'
import { mostBatchBytes, mostEntries } from './sqs-api.js'
import { CallTooLongError } from './sqs-errors.js'

type EntryOf<Kind extends SqsEntryCall> = SqsCalls[Kind]['input']['Entries'][number]

interface Waiting<Entry> {
  readonly entry: Omit<Entry, 'Id'>
  readonly bytes: number
  readonly answered: (failure: EntryFailure | undefined) => void
  readonly failed: (error: unknown) => void
}

/** The bytes of one call to a queue: fewer than SQS takes, once the service has refused a call as too long. */
export interface CallRoom {
  mostBytes: number
}

interface EntryBatchOptions<Kind extends SqsEntryCall> {
  readonly kind: Kind
  readonly queueUrl: string
  readonly api: SqsApi
  /** How long an entry waits for others, in ms. */
  readonly lingerMs: number
  /** Whether more entries can be expected soon; if not, the batch is sent at once. */
  readonly expectsMore?: () => boolean
  readonly room?: CallRoom
  /**
   * One call at a time, in the order of their entries. SQS may take all of a call but one, so a call has one entry of each
   * message group. Those of its group behind a failed entry are not sent, and fail like it, and so do all behind a failed
   * call.
   */
  readonly inOrder?: boolean
}

/** An entry is sent this often before its failure is reported. */
const mostTries = 4
const firstPauseMs = 50

export class EntryBatch<Kind extends SqsEntryCall> {
  readonly #options: EntryBatchOptions<Kind>
  #waiting: Waiting<EntryOf<Kind>>[] = []
  #bytes = 0
  /** With `inOrder`: the message groups of the waiting entries. */
  readonly #groups = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isPlanned = false
  /** With `inOrder`: the entries behind the call under way; undefined while there is none. */
  #behind: (readonly Waiting<EntryOf<Kind>>[])[] | undefined

  constructor(options: EntryBatchOptions<Kind>) {
    this.#options = options
  }

  /** The number of entries that wait for others. */
  get size(): number {
    return this.#waiting.length
  }

  /**
   * Resolves when the service has taken the entry, or with the reason why it has not. Rejects if the call failed as a
   * whole, like `SqsApi.call`. `bytes`: the size that the entry adds to the call.
   */
  add(entry: Omit<EntryOf<Kind>, 'Id'>, bytes = 0): Promise<EntryFailure | undefined> {
    return new Promise((answered, failed) => {
      const { inOrder = false, room = { mostBytes: mostBatchBytes } } = this.#options
      const group = groupOf(entry)
      if (this.#bytes + bytes > room.mostBytes || (inOrder && group !== undefined && this.#groups.has(group)))
        this.flush()
      if (inOrder && group !== undefined) this.#groups.add(group)
      this.#waiting.push({ entry, bytes, answered, failed })
      this.#bytes += bytes
      if (this.#waiting.length >= mostEntries) this.flush()
      else this.#plan()
    })
  }

  /** Sends the waiting entries. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length === 0) return
    const some = this.#waiting
    this.#waiting = []
    this.#bytes = 0
    this.#groups.clear()
    if (!this.#options.inOrder) void this.#send(some)
    else if (this.#behind !== undefined) this.#behind.push(some)
    else void this.#sendInOrder(some)
  }

  async #sendInOrder(first: readonly Waiting<EntryOf<Kind>>[]): Promise<void> {
    this.#behind = []
    for (let some: typeof first | undefined = first; some !== undefined; some = this.#behind.shift()) {
      const error = await this.#send(some)
      if (error === undefined) continue
      // Those that wait for others are behind it too.
      this.flush()
      for (const { failed } of this.#behind.splice(0).flat()) failed(error)
    }
    this.#behind = undefined
  }

  /** Waits for all entries of this turn of the event loop before deciding whether more can be expected. */
  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    setImmediate(() => {
      this.#isPlanned = false
      if (this.#waiting.length === 0) return
      const { lingerMs, expectsMore = () => true } = this.#options
      if (lingerMs === 0 || !expectsMore()) this.flush()
      else this.#timer ??= setTimeout(() => this.flush(), timerMs(lingerMs))
    })
  }

  /** Resolves with the error of a call that failed as a whole. */
  async #send(some: readonly Waiting<EntryOf<Kind>>[]): Promise<unknown> {
    const { api, kind, queueUrl } = this.#options
    let left = some
    try {
      for (let tries = 1; left.length > 0; tries += 1) {
        const Entries = left.map(({ entry }, i) => ({ ...entry, Id: String(i) })) as EntryOf<Kind>[]
        const { Failed = [] } = await api.call(kind, { QueueUrl: queueUrl, Entries } as SqsCalls[Kind]['input'])
        const failures = new Map(Failed.map((failure) => [Number(failure.Id), failure]))
        const again: Waiting<EntryOf<Kind>>[] = []
        for (const [i, one] of left.entries()) {
          const failure = failures.get(i)
          if (failure !== undefined && failure.SenderFault !== true && tries < mostTries) again.push(one)
          else this.#answer(one, failure)
        }
        left = again
        if (left.length > 0) await delay(timerMs(firstPauseMs * 2 ** (tries - 1)))
      }
      return undefined
    } catch (error) {
      if (error instanceof CallTooLongError && left.length > 1) return this.#sendHalves(left)
      const bytes = left.reduce((sum, one) => sum + one.bytes, 0)
      const thrown = error instanceof CallTooLongError ? new PayloadTooLargeError('a message', bytes, bytes - 1) : error
      for (const { failed } of left) failed(thrown)
      return thrown
    }
  }

  /** With `inOrder`: a failure is also that of the entries of its group behind it. */
  #answer(one: Waiting<EntryOf<Kind>>, failure: EntryFailure | undefined): void {
    one.answered(failure)
    const group = groupOf(one.entry)
    if (failure === undefined || group === undefined || this.#behind === undefined) return
    this.flush()
    const isMate = ({ entry }: Waiting<EntryOf<Kind>>) => groupOf(entry) === group
    for (const mate of this.#behind.flat().filter(isMate)) mate.answered(failure)
    this.#behind = this.#behind.map((some) => some.filter((other) => !isMate(other)))
  }

  /** Resolves with the error of a half that failed as a whole. */
  async #sendHalves(some: readonly Waiting<EntryOf<Kind>>[]): Promise<unknown> {
    const { room, inOrder = false } = this.#options
    const bytes = some.reduce((sum, one) => sum + one.bytes, 0)
    if (room !== undefined) room.mostBytes = Math.max(1, Math.min(room.mostBytes, Math.floor(bytes / 2)))
    const half = Math.ceil(some.length / 2)
    const error = await this.#send(some.slice(0, half))
    if (error === undefined || !inOrder) return (await this.#send(some.slice(half))) ?? error
    for (const { failed } of some.slice(half)) failed(error)
    return error
  }
}

function groupOf(entry: object): string | undefined {
  return (entry as Pick<SendEntry, 'MessageGroupId'>).MessageGroupId
}
