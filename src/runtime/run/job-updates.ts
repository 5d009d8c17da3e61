/**
 * The updates of running jobs: lines of their logs, which are sent about once a second, and checkpoints, which are sent at once.
 * Neither renews a lease.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { JobCancelledError, LeaseLostError, PayloadTooLargeError, UnsupportedByStoreError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import { areSet, checkFields, type FieldChanges } from '../../core/job-fields.js'
import { joinedLog } from '../../core/job-log.js'
import type { Packing } from '../../core/packing/packing.js'
import type { Random } from '../../core/platform/clock.js'
import { payloadBytes } from '../../core/values/codec.js'
import { outageDelayMs } from '../../core/values/outage-delay.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Beat, Checkpoint } from '../../stores/contract/job-beat.js'
import type { ExtendItem } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { isFatal, onceThere } from '../outage.js'
import { type Leased, refOf } from './execution.js'

interface JobUpdatesParts {
  readonly store: Pick<Store, 'extend' | 'traits' | 'records'>
  readonly packing: Packing
  readonly maxCheckpointBytes: number
  readonly events: Events
  readonly random: Random
}

/** A running job that takes notes. */
export interface Noting extends Leased {
  readonly signal: AbortSignal
  /** What of its log no call has carried yet. */
  unsentLog: string
}

const flushMs = 1_000

export class JobUpdates {
  readonly #parts: JobUpdatesParts
  /** Those with lines that are still to be sent. */
  readonly #unsent = new Set<Noting>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: JobUpdatesParts) {
    this.#parts = parts
  }

  /** Its progress is carried by its next beat. */
  progressed({ claim, unsentProgress: progress }: Noting): void {
    const { events } = this.#parts
    if (progress !== undefined && events.has('job.progressed'))
      events.emit('job.progressed', { ...refOf(claim), attempt: claim.attempt, progress })
  }

  log(job: Noting, text: string): void {
    job.unsentLog = joinedLog(job.unsentLog, `${String(text).toWellFormed()}\n`)
    this.#unsent.add(job)
    this.#timer ??= setTimeout(() => void this.#flush(), flushMs).unref()
  }

  /** Resolves when the store has it. */
  async checkpoint(job: Noting, value: unknown): Promise<void> {
    const checkpoint = this.#packed(value, job.claim)
    const { store, events, random } = this.#parts
    for (let failures = 0; ; failures += 1) {
      job.signal.throwIfAborted()
      try {
        const [answer] = await store.extend([noteOf(job.claim, { checkpoint })])
        if (answer !== 'lost') {
          if (answer === 'cancel') job.abort(new JobCancelledError(job.claim.queue, job.claim.id))
          return
        }
        job.abort(new LeaseLostError(job.claim.queue, job.claim.id))
      } catch (error) {
        if (isFatal(error)) throw error
        const retryMs = outageDelayMs(failures, random)
        events.emit('store.failed', { call: 'extend', error, retryMs })
        await delay(retryMs, undefined, { signal: job.signal }).catch(() => {})
      }
    }
  }

  /** Resolves when the store has them; false where the job is gone. */
  async setFields({ claim: { queue, id }, signal }: Noting, fields: FieldChanges): Promise<boolean> {
    checkFields(fields)
    const { store, events, random } = this.#parts
    const { records, traits } = store
    if (records === undefined)
      throw new UnsupportedByStoreError(
        traits.name,
        'fields of a job',
        'Use a store that keeps records, such as sqlite:.',
      )
    const failed = (error: unknown, retryMs: number) =>
      events.emit('store.failed', { call: 'setFields', error, retryMs })
    const isOver = () => signal.aborted
    const answer = await onceThere(() => records.setFields(queue, id, fields), { isOver, random, failed })
    if (answer === undefined) throw signal.reason
    return areSet(id, answer)
  }

  /** What an earlier attempt has stored. Throws `CodecError`. */
  lastCheckpoint(claim: Claim): unknown {
    const { checkpoint } = claim
    if (checkpoint === undefined) return undefined
    return this.#parts.packing.unpack(checkpoint.payload, checkpoint.codec, 'checkpoint', claim)
  }

  /** What is to be said before the end of the claim is settled; undefined where all has been. */
  lastWords(job: Noting): ExtendItem | undefined {
    this.#unsent.delete(job)
    const { claim, unsentLog: log, unsentProgress: progress } = job
    job.unsentLog = ''
    job.unsentProgress = undefined
    if (log === '' && progress === undefined) return undefined
    return noteOf(claim, { ...(log === '' ? {} : { log }), ...(progress === undefined ? {} : { progress }) })
  }

  /** Never rejects: what the store does not take is sent with what comes next. */
  async #flush(): Promise<void> {
    const jobs = [...this.#unsent]
    const logs = jobs.map((job) => job.unsentLog)
    this.#unsent.clear()
    for (const job of jobs) job.unsentLog = ''
    const { store } = this.#parts
    const { maxBatch } = store.traits
    for (let i = 0; i < jobs.length; i += maxBatch) {
      const batch = jobs.slice(i, i + maxBatch)
      try {
        await store.extend(batch.map(({ claim }, n) => noteOf(claim, { log: logs[i + n]! })))
      } catch {
        // Its lease keeper tells of the outage. What is new meanwhile comes behind.
        for (const [n, job] of batch.entries()) {
          job.unsentLog = joinedLog(logs[i + n]!, job.unsentLog)
          this.#unsent.add(job)
        }
      }
    }
    this.#timer = this.#unsent.size === 0 ? undefined : setTimeout(() => void this.#flush(), flushMs).unref()
  }

  #packed(value: unknown, claim: Claim): Checkpoint {
    const { packing, maxCheckpointBytes } = this.#parts
    const packed = packing.pack(value, 'checkpoint', claim)
    const bytes = payloadBytes(packed.payload)
    if (bytes > maxCheckpointBytes) throw new PayloadTooLargeError('the checkpoint', bytes, maxCheckpointBytes)
    return packed
  }
}

/** An extension that renews nothing. */
function noteOf({ queue, id, fence }: Claim, beat: Beat): ExtendItem {
  return { queue, id, fence, leaseMs: 0, beat }
}
