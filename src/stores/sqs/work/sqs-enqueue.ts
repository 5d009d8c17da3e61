/** An enqueue into SQS: a message for each job. */

import { UnsupportedByStoreError } from '../../../core/errors.js'
import type { Clock } from '../../../core/platform/clock.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import type { SendEntry } from '../client/sqs-api.js'
import { envelopeOf, newEnvelopeText, sendEntry } from '../envelope.js'
import type { SqsQueue } from '../sqs-queue.js'
import type { SqsQueues } from '../sqs-queues.js'

/** Jobs that SQS has taken in calls that failed in part. A call that is sent again then sends only the others. */
interface HalfSent {
  readonly at: number
  readonly places: Set<string>
}

export class SqsEnqueue {
  readonly #queues: SqsQueues
  readonly #clock: Clock
  readonly #halfSent = new Map<string, HalfSent>()

  constructor(queues: SqsQueues, clock: Clock) {
    this.#queues = queues
    this.#clock = clock
  }

  /** Rejects with the first error once every message is answered; taken messages stay taken. */
  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const now = this.#clock.now()
    // Makes all entries before sending the first: a refused job, or an unknown queue, sends nothing.
    const queues = await this.#queues.allOf(calls.map(({ queue }) => queue))
    const made = calls.map(({ callId, queue: name, jobs }) => {
      const queue = queues.get(name)!
      const messages = jobs.map((job, i) => ({
        place: `${callId}-${i}`,
        entry: entryOf(job, `${callId}-${i}`, queue, now),
      }))
      return { callId, queue, messages }
    })
    const sent = await Promise.allSettled(
      made.flatMap(({ callId, queue, messages }) => {
        const before = this.#halfSent.get(callId)?.places
        return messages.map(async ({ place, entry }) => {
          if (before?.has(place)) return
          await queue.send(entry)
          this.#taken(callId, place)
        })
      }),
    )
    const failed = sent.find(({ status }) => status === 'rejected')
    if (failed !== undefined) {
      this.#forgetOld()
      throw (failed as PromiseRejectedResult).reason
    }
    for (const { callId } of calls) this.#halfSent.delete(callId)
    return calls.map(({ jobs }) => jobs.map(() => 'added'))
  }

  #taken(callId: string, place: string): void {
    const half = this.#halfSent.get(callId)
    if (half === undefined) this.#halfSent.set(callId, { at: this.#clock.mono(), places: new Set([place]) })
    else half.places.add(place)
  }

  #forgetOld(): void {
    for (const [callId, { at }] of this.#halfSent) {
      if (this.#halfSent.size <= callMemoryCount && at + callMemoryMs > this.#clock.mono()) break
      this.#halfSent.delete(callId)
    }
  }
}

/** Throws `UnsupportedByStoreError` for a delay in a FIFO queue, as SQS cannot delay its single messages. */
function entryOf(job: NewJob, sendId: string, { isFifo, isOrdered, name }: SqsQueue, now: number): SendEntry {
  const dueAt = job.runAt ?? now + (job.delayMs ?? 0)
  const delayMs = Math.max(0, dueAt - now)
  if (isFifo && delayMs > 0) {
    const remedy = 'Leave the delay out, or enqueue it into a queue that is neither ordered nor FIFO.'
    throw new UnsupportedByStoreError('sqs', `a delay in queue '${name}', which is FIFO`, remedy)
  }
  const body = newEnvelopeText(envelopeOf(job, now, delayMs > 0 ? dueAt : undefined))
  const lane = isOrdered || (isFifo && job.group === undefined) ? job.id : job.group
  return sendEntry({ body, delayMs, lane, sendId }, isFifo)
}
