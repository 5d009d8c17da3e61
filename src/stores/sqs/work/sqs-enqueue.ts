/** Enqueueing: a message for each job. */

import type { Clock } from '../../../core/platform/clock.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import type { SendEntry } from '../client/sqs-api.js'
import { longestDelayS } from '../client/sqs-api.js'
import { envelopeOf, newEnvelopeText } from '../messages/envelope.js'
import type { SqsQueues } from '../queues/sqs-queues.js'

/** Jobs that SQS has taken of calls that failed in part, so that a call sent again sends the others only. */
interface HalfSent {
  readonly at: number
  readonly ids: Set<string>
}

export class SqsEnqueue {
  readonly #queues: SqsQueues
  readonly #clock: Clock
  readonly #halfSent = new Map<string, HalfSent>()

  constructor(queues: SqsQueues, clock: Clock) {
    this.#queues = queues
    this.#clock = clock
  }

  /** Rejects with the first error once every message is answered; those that were taken stay so. */
  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const now = this.#clock.now()
    // All are made before the first is sent: one that is refused, or an unknown queue, sends nothing.
    const queues = await this.#queues.allOf(calls.map(({ queue }) => queue))
    const made = calls.map(({ callId, queue, jobs }) => ({
      callId,
      queue: queues.get(queue)!,
      messages: jobs.map((job) => ({ id: job.id, entry: entryOf(job, now) })),
    }))
    const sent = await Promise.allSettled(
      made.flatMap(({ callId, queue, messages }) => {
        const before = this.#halfSent.get(callId)?.ids
        return messages.map(async ({ id, entry }) => {
          if (before?.has(id)) return
          await queue.send(entry)
          this.#taken(callId, id)
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

  #taken(callId: string, id: string): void {
    const half = this.#halfSent.get(callId)
    if (half === undefined) this.#halfSent.set(callId, { at: this.#clock.mono(), ids: new Set([id]) })
    else half.ids.add(id)
  }

  #forgetOld(): void {
    for (const [callId, { at }] of this.#halfSent) {
      if (this.#halfSent.size <= callMemoryCount && at + callMemoryMs > this.#clock.mono()) break
      this.#halfSent.delete(callId)
    }
  }
}

/** A delay beyond what SQS allows goes by several messages, each of which sends the next. */
function entryOf(job: NewJob, now: number): SendEntry {
  const dueAt = job.runAt ?? now + (job.delayMs ?? 0)
  const delayMs = Math.max(0, dueAt - now)
  const MessageBody = newEnvelopeText(envelopeOf(job, now, delayMs > 0 ? dueAt : undefined))
  return delayMs === 0
    ? { MessageBody }
    : { MessageBody, DelaySeconds: Math.min(longestDelayS, Math.ceil(delayMs / 1_000)) }
}
