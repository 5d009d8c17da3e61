/** A dead job: a message of a dead-letter queue, as a record and as the entry that revives it. Pure. */

import type { StoredJob } from '../../contract/job-records.js'
import type { SendEntry, SqsMessage } from '../client/sqs-api.js'
import { type DeadLetter, type Envelope, envelopeText, readEnvelope } from './envelope.js'
import { sendEntry } from './send-entry.js'

interface DeadQueue {
  readonly name: string
  readonly isFifo: boolean
  readonly isOrdered: boolean
}

export interface DeadJob {
  readonly messageId: string
  /** The receipt of its last receive. */
  readonly receipt: string
  readonly sentAt: number
  /** Undefined for a message that is no job. */
  readonly envelope: (Envelope & DeadLetter) | undefined
  readonly body: string
  readonly lane: string | undefined
  readonly letter: DeadLetter
}

export function deadJobOf({ MessageId = '', ReceiptHandle = '', Body = '', ...message }: SqsMessage): DeadJob {
  const { Attributes = {}, MessageAttributes = {} } = message
  const read = readEnvelope(Body)
  const envelope = 'problem' in read ? undefined : read
  const [reason, error] = [MessageAttributes['reason']?.StringValue, MessageAttributes['error']?.StringValue]
  return {
    ...{ messageId: MessageId, receipt: ReceiptHandle, body: Body, envelope },
    sentAt: Number(Attributes['SentTimestamp'] ?? 0),
    lane: Attributes['MessageGroupId'],
    letter: envelope ?? { ...(reason === undefined ? {} : { reason }), ...(error === undefined ? {} : { error }) },
  }
}

export function idOf({ envelope, messageId }: DeadJob): string {
  return envelope?.id ?? messageId
}

export function deadRecord(job: DeadJob, { name: queue, isOrdered }: DeadQueue): StoredJob {
  const { envelope, body, sentAt, letter } = job
  const { task = '', payload = body, codec, meta, group, createdAt = sentAt, attempts = 1 } = envelope ?? {}
  const content = { payload, ...(codec === undefined ? {} : { codec }), ...(meta === undefined ? {} : { meta }) }
  return {
    ...{ queue, id: idOf(job), task, state: 'dead', priority: 0, attempt: Math.max(1, attempts), crashes: 0 },
    ...(isOrdered ? { payload: '', payloads: [{ score: createdAt, ...content }], payloadCount: 1 } : content),
    ...{ createdAt, updatedAt: sentAt, runAt: createdAt, finishedAt: sentAt },
    ...(group === undefined ? {} : { group }),
    ...(letter.reason === undefined ? {} : { reason: letter.reason }),
    ...(letter.error === undefined ? {} : { error: letter.error }),
  }
}

/** With all attempts again; a message that is no job goes back unchanged. */
export function revivedEntry(job: DeadJob, isFifo: boolean): SendEntry {
  const { envelope, body, lane, messageId } = job
  const { task, payload, codec, meta, group, createdAt } = envelope ?? { task: '', payload: '' }
  const fresh = {
    ...{ id: idOf(job), task, payload },
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
    ...(group === undefined ? {} : { group }),
    ...(createdAt === undefined ? {} : { createdAt }),
  }
  const revived = envelope === undefined ? body : envelopeText(fresh)
  return sendEntry({ body: revived, lane: isFifo ? (lane ?? '') : group, sendId: messageId }, isFifo)
}
