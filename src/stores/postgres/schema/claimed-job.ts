/** A job as a claim hands it out: the columns in the database, and what is made of them. Pure. */

import type { Claim } from '../../contract/claim.js'
import { dueAt } from '../../rules/sequence.js'
import { jobFlags } from './postgres-tables.js'
import { payloadFrom, type ScoredColumns, scoredFrom, textFrom } from './stored-payload.js'

/** Of a row `u` of `job`. */
export const claimedJob = `json_build_array(id, task, payload, codec, meta, rank, attempt, crashes, created_ms, stamp, expires_ms, error,
  CASE WHEN flags & 4 > 0 THEN (SELECT json_build_array(c.payload, c.codec) FROM @.checkpoint c WHERE c.id = u.id AND c.qid = u.qid AND c.payload IS NOT NULL) END, flags, grp)`

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
  /** Ordered queues only, like `hasMore`. */
  payloads?: ScoredColumns[],
  hasMore?: boolean,
]

type LastColumns = [flags: number, group: string | null, payloads?: ScoredColumns[], hasMore?: boolean]

export function claimOf(queue: string, fence: number, columns: ClaimedColumns): Claim {
  const [id, task, payload, codec, meta, rank, attempt, crashes, createdAt, stamp, expiresAt, error, checkpoint] =
    columns
  const [flags, group, payloads, hasMore] = columns.slice(13) as LastColumns
  return {
    queue,
    id,
    task,
    payload: payloadFrom(payload),
    ...(codec === null ? {} : { codec }),
    ...(meta === null ? {} : { meta: payloadFrom(meta) }),
    ...(payloads === undefined ? {} : { payloads: payloads.map(scoredFrom) }),
    ...(hasMore === true ? { hasMore } : {}),
    priority: 0 - rank,
    ...(group === null ? {} : { group }),
    attempt,
    crashes,
    fence,
    createdAt,
    runAt: dueAt(Math.abs(stamp)),
    ...(expiresAt === null ? {} : { expiresAt }),
    ...(error === null ? {} : { error: textFrom(error) }),
    ...(checkpoint === null ? {} : { checkpoint: checkpointOf(checkpoint) }),
    ...((flags & jobFlags.join) === 0 ? {} : { isJoin: true }),
    ...((flags & jobFlags.member) === 0 ? {} : { isMember: true }),
  }
}

function checkpointOf([payload, codec]: [string, string | null]) {
  return { payload: payloadFrom(payload), ...(codec === null ? {} : { codec }) }
}
