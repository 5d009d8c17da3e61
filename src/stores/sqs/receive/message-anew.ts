/**
 * A message anew: the same job as a message of its own, for a standard queue. SQS counts the receives of a message and lets nobody
 * change it, so a job whose receive must not count, or which comes later than a message may, goes on in another one. Pure.
 */

import type { SendEntry } from '../client/sqs-api.js'
import { envelopeTextOrBare } from '../messages/envelope.js'
import { sendEntry } from '../messages/send-entry.js'
import type { ReceivedMessage } from './held-messages.js'

interface Anew {
  /** Attempts before the new message: its first receive is the one after. */
  readonly attempts: number
  readonly delayMs?: number
  /** Of the wall clock; the message is sent on until then. Default: that of its envelope. */
  readonly dueAt?: number | undefined
  /** Why it waits; left out if it does not fit. Default: that of its envelope. */
  readonly error?: string | undefined
}

/** To be sent before the message itself is deleted: between the two the job exists twice, and is never missing. */
export function messageAnew(
  { envelope, id, createdAt, messageId }: ReceivedMessage,
  { attempts, delayMs = 0, dueAt = envelope.dueAt, error = envelope.error }: Anew,
): SendEntry {
  const times = { createdAt, attempts, ...(dueAt === undefined ? {} : { dueAt }) }
  const body = envelopeTextOrBare({ ...envelope, id, ...times, ...(error === undefined ? {} : { error }) })
  return sendEntry({ body, delayMs, lane: envelope.group, sendId: messageId }, false)
}
