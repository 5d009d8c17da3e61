/** An arrival: a received message, classified as a job, a job before its time, or one that nobody can run. Pure. */

import type { SqsMessage } from '../client/sqs-api.js'
import { type Envelope, readEnvelope } from '../envelope.js'
import type { ReceivedMessage } from './held-messages.js'

type MessageArrival =
  | { readonly kind: 'job'; readonly message: ReceivedMessage }
  /** Must be sent on, and comes back later. */
  | { readonly kind: 'early'; readonly message: ReceivedMessage; readonly dueInMs: number }
  /** Nobody can run it. */
  | { readonly kind: 'bad'; readonly message: ReceivedMessage; readonly body: string; readonly problem: string }

/** Attributes that are requested with each message. */
export const systemAttributes = ['ApproximateReceiveCount', 'SentTimestamp', 'MessageGroupId']

/**
 * `now`: of the wall clock. `times`: when its receive was sent, and until when it is hidden, on the monotonic clock. `unrun`:
 * how many of its receives are known to be no attempts.
 */
export function arrivalOf(
  { MessageId = '', ReceiptHandle = '', Body = '', Attributes = {} }: SqsMessage,
  now: number,
  times: Pick<ReceivedMessage, 'receivedAt' | 'hiddenUntil'>,
  isFifo: boolean,
  unrun: number,
): MessageArrival {
  const read = readEnvelope(Body)
  const sentAt = Number(Attributes.SentTimestamp ?? now)
  const receives = Number(Attributes.ApproximateReceiveCount ?? 1)
  const envelope: Envelope = 'problem' in read ? { task: '', payload: '' } : read
  const { id = MessageId, createdAt = sentAt, dueAt, attempts = 0 } = envelope
  const message: ReceivedMessage = {
    messageId: MessageId,
    receipt: ReceiptHandle,
    id,
    envelope,
    ...(isFifo ? { lane: Attributes.MessageGroupId ?? '' } : {}),
    attempt: attempts + Math.max(1, receives - unrun),
    createdAt,
    runAt: dueAt ?? createdAt,
    bytes: Buffer.byteLength(Body),
    ...times,
  }
  if ('problem' in read) return { kind: 'bad', message, body: Body, problem: read.problem }
  const dueInMs = (dueAt ?? 0) - now
  return dueInMs > 0 ? { kind: 'early', message, dueInMs } : { kind: 'job', message }
}
