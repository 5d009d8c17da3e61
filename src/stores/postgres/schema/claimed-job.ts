/** A job as a claim hands it out: the columns in the database, and what is made of them. Pure. */

import type { Claim } from '../../contract/claim.js'
import { dueAt, waitedBeyond } from '../../rules/sequence.js'
import { jobFlags } from './postgres-tables.js'
import { payloadFrom, type ScoredColumns, scoredFrom, textFrom } from './stored-payload.js'

/** Of a row `u` of `job`. */
export const claimedJob = `json_build_array(id, task, payload, codec, meta, rank, attempt, crashes, created_ms, stamp, expires_ms, error,
  CASE WHEN flags & 4 > 0 THEN (SELECT json_build_array(c.payload, c.codec) FROM @.checkpoint c WHERE c.id = u.id AND c.qid = u.qid AND c.payload IS NOT NULL) END, flags, grp, waited_ms)`

export type ClaimedColumns = [
  id: string,
  task: string,
  payload: string,
  codec: string | null,
  meta: string | null,
  rank: number,
  attempt: number,
  crashes: number,
  createdAt: number,
  stamp: number,
  expiresAt: number | null,
  error: string | null,
  checkpoint: [payload: string, codec: string | null] | null,
  flags: number,
  group: string | null,
  waitedUntil: number | null,
  /** Ordered queues only, like `hasMore`. */
  payloads?: ScoredColumns[],
  hasMore?: boolean,
]

export function claimOf(queue: string, fence: number, columns: ClaimedColumns): Claim {
  const [id, task, payload, codec, meta, rank, attempt, crashes, createdAt, stamp, expiresAt, error, checkpoint] =
    columns
  const flags = columns[13]
  const group = columns[14]
  const claim: { -readonly [Name in keyof Claim]: Claim[Name] } = {
    queue,
    id,
    task,
    payload: payloadFrom(payload),
    priority: 0 - rank,
    attempt,
    crashes,
    fence,
    createdAt,
    runAt: dueAt(Math.abs(stamp)),
  }
  // Added one by one: most jobs have none of them, and a claim is made for each job that runs.
  if (codec !== null) claim.codec = codec
  if (meta !== null) claim.meta = payloadFrom(meta)
  const waited = waitedBeyond(Math.abs(stamp), columns[15])
  if (waited !== undefined) claim.waitedUntil = waited
  if (columns[16] !== undefined) claim.payloads = columns[16].map(scoredFrom)
  if (columns[17] === true) claim.hasMore = true
  if (group !== null) claim.group = group
  if (expiresAt !== null) claim.expiresAt = expiresAt
  if (error !== null) claim.error = textFrom(error)
  if (checkpoint !== null) claim.checkpoint = checkpointOf(checkpoint)
  if ((flags & jobFlags.join) !== 0) claim.isJoin = true
  if ((flags & jobFlags.member) !== 0) claim.isMember = true
  return claim
}

function checkpointOf([payload, codec]: [string, string | null]) {
  return { payload: payloadFrom(payload), ...(codec === null ? {} : { codec }) }
}
