/** The entry that sends a message: its body, its delay, and for a FIFO queue its lane. Pure. */

import { createHash } from 'node:crypto'
import { longestDelayS, type SendEntry } from '../client/sqs-api.js'

interface Sending {
  readonly body: string
  readonly delayMs?: number
  /** The message group: SQS balances by it, and on a FIFO queue keeps order within it. */
  readonly lane?: string | undefined
  /** FIFO queues: a message that is sent again with the same id within 5 minutes exists once. */
  readonly sendId: string
}

/** A delay longer than SQS allows is cut: the message is sent on when it arrives. */
export function sendEntry({ body, delayMs = 0, lane, sendId }: Sending, isFifo: boolean): SendEntry {
  return {
    MessageBody: body,
    ...(delayMs === 0 || isFifo ? {} : { DelaySeconds: Math.min(longestDelayS, Math.ceil(delayMs / 1_000)) }),
    ...(lane === undefined ? {} : { MessageGroupId: laneName(lane) }),
    ...(isFifo ? { MessageDeduplicationId: laneName(sendId) } : {}),
  }
}

/** The name of a message group: the group or id itself if SQS takes it, otherwise a digest of it. */
function laneName(lane: string): string {
  return /^[\u0021-\u007e]{1,128}$/.test(lane) ? lane : createHash('sha256').update(lane).digest('hex')
}
