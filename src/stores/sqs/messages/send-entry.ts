/** The entry by which a message is sent: its body, its delay, and on a FIFO queue its lane. Pure. */

import { createHash } from 'node:crypto'
import { longestDelayS, type SendEntry } from '../client/sqs-api.js'

interface Sending {
  readonly body: string
  readonly delayMs?: number
  /** What fairness counts by, and on a FIFO queue what order is kept in. */
  readonly lane?: string | undefined
  /** FIFO queues: a message that is sent again with the same within 5 minutes is there once. */
  readonly sendId: string
}

/** A longer delay than SQS allows is cut: the message is sent on when it comes. */
export function sendEntry({ body, delayMs = 0, lane, sendId }: Sending, isFifo: boolean): SendEntry {
  return {
    MessageBody: body,
    ...(delayMs === 0 || isFifo ? {} : { DelaySeconds: Math.min(longestDelayS, Math.ceil(delayMs / 1_000)) }),
    ...(lane === undefined ? {} : { MessageGroupId: laneName(lane) }),
    ...(isFifo ? { MessageDeduplicationId: laneName(sendId) } : {}),
  }
}

/** The name of a message group: the group or id itself if SQS takes it, else a digest of it. */
function laneName(lane: string): string {
  return /^[\u0021-\u007e]{1,128}$/.test(lane) ? lane : createHash('sha256').update(lane).digest('hex')
}
