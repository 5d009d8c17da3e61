/** A job of an ordered queue of a Redis store, live or in the morgue, assembled from its keys. */

import type { StoredJob } from '../../contract/job-records.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import {
  firstState,
  type JobView,
  nothingThere,
  readBeat,
  readClaim,
  readFields,
  readPast,
  stateOf,
} from './redis-job.js'
import { readPayload } from './redis-payload.js'
import { readNumber, readRecord } from './redis-record.js'

/** An entry in the morgue without its payloads. */
interface MorgueHeader {
  readonly finishedAt: number
  readonly stamp: number
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly task: string
  readonly group?: string
  readonly reason?: string
  readonly error?: string
}

/** `write_header` describes the form. */
export function readHeader(header: Buffer): MorgueHeader {
  const taskEnd = header.indexOf(0, 24)
  const groupEnd = header.indexOf(0, taskEnd + 1)
  const reasonAt = groupEnd + 5
  const errorAt = reasonAt + header.readUInt32BE(groupEnd + 1)
  return {
    finishedAt: header.readUIntBE(0, 6),
    stamp: readNumber(header, 6, 7),
    attempt: header.readUIntBE(13, 3),
    crashes: header.readUInt16BE(16),
    createdAt: header.readUIntBE(18, 6),
    task: header.toString('utf8', 24, taskEnd),
    ...(groupEnd > taskEnd + 1 ? { group: header.toString('utf8', taskEnd + 1, groupEnd) } : {}),
    ...(errorAt > reasonAt ? { reason: header.toString('utf8', reasonAt + 1, errorAt) } : {}),
    ...(header.length > errorAt ? { error: header.toString('utf8', errorAt + 1) } : {}),
  }
}

/**
 * Reads one view of the view script of ordered queues. `hiddenUntil`: entries of the morgue until then have expired.
 */
export function orderedViewIn(
  kind: 'live' | 'dead',
  queue: string,
  id: string,
  reply: RedisReply,
  hiddenUntil: number,
): JobView {
  const [known, ...parts] = listIn(reply)
  if (known === null) return nothingThere
  if (kind === 'live') return liveView(queue, id, bytesIn(known), parts)
  return deadView(queue, id, bytesIn(known), parts, hiddenUntil)
}

function liveView(
  queue: string,
  id: string,
  record: Buffer,
  [pastBytes, claimBytes, error, beatBytes, values, count, beside, fields]: readonly RedisReply[],
): JobView {
  const { stamp: firstStamp, createdAt, task, group } = readRecord(record)
  const fresh = { state: firstState(record), updatedAt: createdAt, stamp: firstStamp, attempt: 1, crashes: 0 }
  const { state, updatedAt, stamp, attempt, crashes, reason } =
    pastBytes === null ? { ...fresh, reason: undefined } : { reason: undefined, ...readPast(bytesIn(pastBytes)) }
  const claim = claimBytes === null ? undefined : readClaim(bytesIn(claimBytes))
  const { updatedAt: saidAt, ...said } = beatBytes === null ? {} : readBeat(bytesIn(beatBytes))
  const job: StoredJob = {
    ...withPayloads({ queue, id, task }, values, count),
    ...(group === undefined ? {} : { group }),
    state: claim === undefined ? stateOf[state]! : 'running',
    ...(beside === null ? {} : { pendingCount: numberIn(beside) }),
    attempt,
    crashes,
    ...(state === 'x' ? { suspect: true } : {}),
    createdAt,
    updatedAt: claim === undefined ? updatedAt : (saidAt ?? claim.claimedAt),
    runAt: Math.floor(stamp / 1_000),
    ...(fields === null ? {} : { fields: readFields(bytesIn(fields)) }),
    ...(claim === undefined ? {} : { worker: claim.worker }),
    ...said,
    ...(error === null ? {} : { error: textIn(error) }),
    ...(reason === undefined ? {} : { reason }),
  }
  return { ...nothingThere, job }
}

function deadView(
  queue: string,
  id: string,
  header: Buffer,
  [values, count]: readonly RedisReply[],
  hiddenUntil: number,
): JobView {
  const { finishedAt, stamp, task, ...rest } = readHeader(header)
  const job: StoredJob = {
    ...withPayloads({ queue, id, task }, values, count),
    state: 'dead',
    ...rest,
    updatedAt: finishedAt,
    runAt: Math.floor(stamp / 1_000),
    finishedAt,
  }
  return { ...nothingThere, job: finishedAt <= hiddenUntil ? undefined : job }
}

function withPayloads(
  of: Pick<StoredJob, 'queue' | 'id' | 'task'>,
  values: RedisReply | undefined,
  count: RedisReply | undefined,
): Pick<StoredJob, 'queue' | 'id' | 'task' | 'payload' | 'payloads' | 'payloadCount' | 'priority'> {
  const payloads = listIn(values).map((value) => readPayload(bytesIn(value)))
  return {
    ...of,
    payload: '',
    ...(payloads.length === 0 ? {} : { payloads, payloadCount: numberIn(count) }),
    priority: 0,
  }
}
