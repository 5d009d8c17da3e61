/**
 * The updates of running jobs: lines of their logs, sent about once a second, and checkpoints, sent at once. Neither
 * renews a lease.
 */

import { setTimeout as delay } from 'node:timers/promises'
import {
  CodecError,
  InvalidArgumentError,
  JobCancelledError,
  LeaseLostError,
  PayloadTooLargeError,
  UnsupportedByStoreError,
} from '../../core/errors.js'
import type { Progress } from '../../core/job/job.js'
import { areSet, checkFields, type FieldChanges, type JobFields } from '../../core/job/job-fields.js'
import { joinedLog } from '../../core/job/job-log.js'
import {
  isMarked,
  type MarkedCheckpoint,
  marksKey,
  readCheckpoint,
  storedCheckpoint,
} from '../../core/job/marked-checkpoint.js'
import { outageDelayMs } from '../../core/platform/timer.js'
import type { Surroundings } from '../../core/surroundings.js'
import { payloadBytes } from '../../core/values/codec.js'
import { slicesOf } from '../../core/values/pages.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Beat, Checkpoint } from '../../stores/contract/job-beat.js'
import type { Records } from '../../stores/contract/job-records.js'
import type { ClaimKey, ExtendItem } from '../../stores/contract/settle.js'
import { stepsOf } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'
import { isFatal, onceThere } from '../outage.js'
import { settledOr } from '../with-timeout.js'
import { mayKeep, type StepsClient } from './job-steps.js'
import { refOf } from './run-events.js'
import { mayComeAgain, type Verdict } from './verdict.js'

type UpdateSurroundings = Pick<Surroundings, 'events' | 'clock' | 'random' | 'packing'>

type UpdatedStore = Pick<Store, 'extend' | 'traits' | 'records' | 'steps'>

/** A running job with notes to send. */
export interface Noting {
  readonly claim: Claim
  readonly signal: AbortSignal
  /** There is a verdict on it. */
  readonly isDecided: boolean
  /** The latest progress, which a beat may have sent or not; undefined once the end has sent it. */
  unsentProgress: Progress | undefined
  /** The part of its log that no call has sent yet. */
  unsentLog: string
  /** Its checkpoint for later attempts; undefined before the first use. */
  kept: KeptByJob | undefined
  /** The job is cancelled, or its lease is lost. */
  abort(reason: Error): void
}

/** The checkpoint of a running job, as it is to be stored. */
interface KeptByJob {
  /** The value as it was stored: its handler may have changed the object since. */
  readonly value: () => unknown
  /** The same without marks; undefined before the first checkpoint of this run. */
  readonly bare?: Checkpoint
  readonly marks: string[]
  /** Whether the store lacks some of its marks. */
  hasNews: boolean
  /** False if it cannot be read here: marks alone must not overwrite it. */
  readonly isReadable: boolean
}

const flushMs = 1_000
/**
 * If a job makes more enqueue calls, the first are forgotten: their children are then recognised by their ids, while
 * the store remembers those.
 */
const mostMarks = 1_000
/** The bytes that marks may take beyond the bound of a checkpoint. */
const mostMarkBytes = 32_768

export class JobUpdates {
  readonly #surroundings: UpdateSurroundings
  readonly #store: UpdatedStore
  readonly #maxCheckpointBytes: number
  /** Jobs with log lines that are still to be sent. */
  readonly #unsent = new Set<Noting>()
  #timer: NodeJS.Timeout | undefined
  /** The call under way that sends marks, each with the checkpoint that its job had when the call was made. */
  #marking: { readonly jobs: ReadonlySet<Noting>; readonly sent: Promise<unknown> } | undefined

  constructor(surroundings: UpdateSurroundings, store: UpdatedStore, maxCheckpointBytes: number) {
    this.#surroundings = surroundings
    this.#store = store
    this.#maxCheckpointBytes = maxCheckpointBytes
  }

  /** The next beat sends its progress. */
  progressed({ claim, unsentProgress: progress }: Noting): void {
    const { events } = this.#surroundings
    if (progress !== undefined && events.has('job.progressed'))
      events.emit('job.progressed', { ...refOf(claim), attempt: claim.attempt, progress })
  }

  log(job: Noting, text: string): void {
    job.unsentLog = joinedLog(job.unsentLog, `${String(text).toWellFormed()}\n`)
    this.#later(job)
  }

  /** Whether this enqueue call was done, by this attempt or an earlier one. */
  isDone(job: Noting, call: string): boolean {
    return this.#keptOf(job).marks.includes(call)
  }

  /**
   * Marks this enqueue call as done. Sent within about a second, or at the end of the attempt, so that the next attempt
   * knows.
   */
  done(job: Noting, call: string): void {
    const kept = this.#keptOf(job)
    // Useless on a store that does not hand a checkpoint on to the next attempt.
    if (!kept.isReadable || !this.#store.traits.tellsCrashes || kept.marks.includes(call)) return
    kept.marks.push(call)
    if (kept.marks.length > mostMarks) kept.marks.shift()
    kept.hasNews = true
    this.#later(job)
  }

  #later(job: Noting): void {
    this.#unsent.add(job)
    this.#timer ??= setTimeout(() => void this.#flush(), flushMs).unref()
  }

  /** Resolves when the store has it. Rejects once the job is aborted or its run has ended: nothing more is sent then. */
  async checkpoint(job: Noting, value: unknown): Promise<void> {
    if (isMarked(value)) throw new CodecError(`a checkpoint must have no key '${marksKey}'; use another name`)
    const bare = this.#packed({ value, marks: [] }, job.claim)
    // All later updates of the job carry this value.
    job.kept = { ...this.#keptOf(job), value: () => this.#unpacked(bare, job.claim), bare, isReadable: true }
    const store = this.#store
    const { events, random } = this.#surroundings
    for (let failures = 0; ; failures += 1) {
      // A store may carry out two calls in any order.
      if (this.#marking?.jobs.has(job)) await settledOr(job.signal, this.#marking.sent)
      job.signal.throwIfAborted()
      if (job.isDecided) throw endedBefore(job.claim)
      try {
        // The latest of the job: another call may have stored it while this one waited for the store.
        const checkpoint = this.#marked(job) ?? job.kept.bare!
        const [answer] = await store.extend([noteOf(job.claim, { checkpoint })])
        if (answer !== 'lost') {
          if (answer === 'cancel') job.abort(new JobCancelledError(job.claim.queue, job.claim.id))
          return
        }
        // Its own end may have come before it: then the lease was not lost.
        if (!job.isDecided) job.abort(new LeaseLostError(job.claim.queue, job.claim.id))
      } catch (error) {
        if (isFatal(error)) throw error
        const retryMs = outageDelayMs(failures, random)
        events.emit('store.failed', { call: 'extend', error, retryMs })
        await delay(retryMs, undefined, { signal: job.signal }).catch(() => {})
      }
    }
  }

  /** Resolves when the store has them; false if the job is gone. */
  async setFields(job: Noting, fields: FieldChanges): Promise<boolean> {
    checkFields(fields)
    const { queue, id } = job.claim
    return areSet(id, await this.#fieldsCall(job, 'setFields', (records) => records.setFields(queue, id, fields)))
  }

  /** The fields that the store has of the job. */
  async readFields(job: Noting): Promise<JobFields> {
    const { queue, id } = job.claim
    const [record] = await this.#fieldsCall(job, 'get', async (records) => [await records.get(queue, id)])
    return record?.fields ?? {}
  }

  /** Waits as long as the store is away. Rejects with the reason of the job's signal once that is aborted. */
  async #fieldsCall<Answer>(
    { signal }: Noting,
    call: 'setFields' | 'get',
    ask: (records: Records) => Promise<Answer>,
  ): Promise<Answer> {
    const store = this.#store
    const { events, random } = this.#surroundings
    const { records, traits } = store
    if (records === undefined)
      throw new UnsupportedByStoreError(
        traits.name,
        'fields of a job',
        'Use a store that keeps records, such as sqlite:.',
      )
    const failed = (error: unknown, retryMs: number) => events.emit('store.failed', { call, error, retryMs })
    const isOver = () => signal.aborted
    const answer = await onceThere(() => ask(records), { isOver, random, failed })
    if (answer === undefined) throw signal.reason
    return answer
  }

  /** Of the steps of jobs. */
  get steps(): StepsClient {
    const store = this.#store
    const { events, clock, random, packing } = this.#surroundings
    const waited = (call: string, isOver: () => boolean) => ({
      random,
      failed: (error: unknown, retryMs: number) => events.emit('store.failed', { call, error, retryMs }),
      isOver,
    })
    return {
      ...{ packing, maxPayloadBytes: this.#maxCheckpointBytes, mono: () => clock.mono() },
      read: (job) =>
        onceThere(
          () => stepsOf(store).read(job.claim),
          waited('steps.read', () => job.signal.aborted),
        ),
      keep: (job, step) =>
        onceThere(
          () => stepsOf(store).keep(keyOf(job.claim), step, job.lease?.terms.leaseMs ?? 0),
          waited('steps.keep', () => !mayKeep(job)),
        ),
    }
  }

  /** The checkpoint of an earlier attempt. Throws `CodecError`. */
  lastCheckpoint(claim: Claim): unknown {
    return this.#read(claim).value
  }

  #read(claim: Claim): MarkedCheckpoint {
    const { checkpoint } = claim
    return checkpoint === undefined
      ? { value: undefined, marks: [] }
      : readCheckpoint(this.#unpacked(checkpoint, claim))
  }

  #keptOf(job: Noting): KeptByJob {
    if (job.kept !== undefined) return job.kept
    try {
      const { value, marks } = this.#read(job.claim)
      job.kept = { value: () => value, marks: [...marks], hasNews: false, isReadable: true }
    } catch {
      job.kept = { value: () => undefined, marks: [], hasNews: false, isReadable: false }
    }
    return job.kept
  }

  /** The checkpoint with marks that the store lacks; undefined if there are none. */
  #news(job: Noting): Pick<Beat, 'checkpoint'> {
    if (!job.kept?.hasNews) return {}
    job.kept.hasNews = false
    const checkpoint = this.#marked(job)
    return checkpoint === undefined ? {} : { checkpoint }
  }

  /**
   * The checkpoint with its marks. Undefined if there are none, or if the codec does not take them next to the value:
   * children are then recognised by their ids, and neither the value nor the end of the attempt is lost for it.
   */
  #marked({ kept, claim }: Noting): Checkpoint | undefined {
    if (kept === undefined || kept.marks.length === 0) return undefined
    try {
      return this.#packed({ value: kept.value(), marks: kept.marks }, claim)
    } catch {
      return undefined
    }
  }

  /**
   * The update to send before the end of the claim is settled; undefined if nothing is left. `verdict`: that end, given
   * by a handler in this process.
   */
  lastUpdate(job: Noting, verdict?: Verdict): ExtendItem | undefined {
    this.#unsent.delete(job)
    const { claim, unsentLog: log, unsentProgress: progress } = job
    const hasNews = job.kept?.hasNews === true && verdict !== undefined && mayComeAgain(verdict)
    const news = hasNews ? this.#news(job) : undefined
    if (log === '' && progress === undefined && news?.checkpoint === undefined) return undefined
    job.unsentLog = ''
    job.unsentProgress = undefined
    return noteOf(claim, {
      ...(log === '' ? {} : { log }),
      ...(progress === undefined ? {} : { progress }),
      ...news,
    })
  }

  /** Never rejects. */
  async #flush(): Promise<void> {
    for (const batch of slicesOf([...this.#unsent], this.#store.traits.maxBatch)) await this.#sendUnsent(batch)
    this.#timer = this.#unsent.size === 0 ? undefined : setTimeout(() => void this.#flush(), flushMs).unref()
  }

  /** Never rejects: an update that the store does not take is sent with the next one. */
  async #sendUnsent(batch: readonly Noting[]): Promise<void> {
    // Others have ended meanwhile. What is sent is read now: the job goes on while earlier calls are under way.
    const notes = batch
      .filter((job) => this.#unsent.delete(job))
      .map((job) => ({ job, log: job.unsentLog, news: this.#news(job) }))
    if (notes.length === 0) return
    for (const { job } of notes) job.unsentLog = ''
    const marked = notes.filter(({ news }) => news.checkpoint !== undefined)
    try {
      const sent = this.#store.extend(
        notes.map(({ job, log, news }) => noteOf(job.claim, { ...(log === '' ? {} : { log }), ...news })),
      )
      this.#marking = { jobs: new Set(marked.map(({ job }) => job)), sent }
      await sent
    } catch {
      // Its lease keeper reports the outage. Newer lines come after these.
      for (const { job, log } of notes) {
        job.unsentLog = joinedLog(log, job.unsentLog)
        this.#unsent.add(job)
      }
      for (const { job } of marked) job.kept!.hasNews = true
    } finally {
      this.#marking = undefined
    }
  }

  #unpacked({ payload, codec }: Checkpoint, claim: Claim): unknown {
    return this.#surroundings.packing.unpack(payload, codec, 'checkpoint', claim)
  }

  #packed(checkpoint: MarkedCheckpoint, claim: Claim): Checkpoint {
    const maxCheckpointBytes = this.#maxCheckpointBytes
    const { packing } = this.#surroundings
    const packed = packing.pack(storedCheckpoint(checkpoint), 'checkpoint', claim)
    const bytes = payloadBytes(packed.payload)
    const limit = maxCheckpointBytes + (checkpoint.marks.length > 0 ? mostMarkBytes : 0)
    if (bytes > limit) throw new PayloadTooLargeError('the checkpoint', bytes, maxCheckpointBytes)
    return packed
  }
}

/** An extension that renews nothing. */
function noteOf(claim: Claim, beat: Beat): ExtendItem {
  return { ...keyOf(claim), leaseMs: 0, beat }
}

function endedBefore({ queue, id }: Claim): InvalidArgumentError {
  return new InvalidArgumentError(
    `a checkpoint of job '${id}' in queue '${queue}' was not stored: its run had ended. Await it before the handler returns, or before the claim is settled.`,
  )
}

function keyOf({ queue, id, fence }: Claim): ClaimKey {
  return { queue, id, fence }
}
