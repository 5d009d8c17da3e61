/**
 * The text of a claim: the jobs of a plain queue as JSON, made by SQLite and read in the thread that asked. A row
 * object per job, and its copy for the other thread, would cost more than the claim itself.
 */

import type { Payload } from '../../../core/values/codec.js'
import type { Buried, Claim, Crash, Expired, Wait } from '../../contract/claim.js'
import type { Checkpoint } from '../../contract/job-beat.js'
import { noteBits } from '../../rows/job-row.js'
import { fromStored } from '../../rows/stored-text.js'
import { stampOf, waitedBeyond } from '../../rules/sequence.js'

/** The answer to a claim. Jobs of plain queues are still text. */
export interface ClaimedText {
  readonly now: number
  readonly queue?: string
  readonly granted: readonly PoolGrant[]
  readonly crashed: Crash[]
  readonly buried: Buried[]
  readonly expired?: Expired[]
  readonly waits: Wait[]
  readonly heads?: { queue: string; shard?: number; ageMs?: number }[]
  readonly more: boolean
}

/** The jobs that one pool of a queue or shard granted: the text that SQLite made of them, or claims with payloads. */
export type PoolGrant = GrantedText | readonly Claim[]

interface GrantedText {
  readonly queue: string
  readonly fence: number
  readonly text: string
  /** The group that all of the jobs have. */
  readonly group?: string
  /** By job id, for the jobs of which anything is noted. */
  readonly notes?: ReadonlyMap<string, ClaimNotes>
}

/** `bits`: see `noteBits`. */
export interface ClaimNotes {
  readonly bits: number
  readonly checkpoint: Checkpoint | undefined
  readonly waitedUntil: number | null
}

/** The columns of `job` that the text is made of. */
export const textColumns =
  'id, task, payload, meta, codec, rank, attempt, crashes, created_at, stamp, expires_at, error'

/** In SQL: the text of these rows. `blobs` adds 1 if the payload is in hexadecimal digits, and 2 if the meta is. */
export const claimsText = `json_group_array(json_array(id, task,
             CASE typeof(payload) WHEN 'blob' THEN hex(payload) ELSE payload END,
             CASE typeof(meta) WHEN 'blob' THEN hex(meta) ELSE meta END,
             (typeof(payload) = 'blob') + 2 * (typeof(meta) = 'blob'),
             codec, -rank, attempt, crashes, created_at, stamp, expires_at, error))`

type ClaimText = [
  id: string,
  task: string,
  payload: string,
  meta: string | null,
  blobs: number,
  codec: string | null,
  priority: number,
  attempt: number,
  crashes: number,
  createdAt: number,
  stamp: number,
  expiresAt: number | null,
  error: string | null,
]

/** Throws `SyntaxError` for a text that is not complete JSON. */
export function claimsOf(granted: PoolGrant): readonly Claim[] {
  if (!('text' in granted)) return granted
  const { queue, fence, text, group, notes } = granted
  return (JSON.parse(text) as ClaimText[]).map((row) => {
    const claim = new TextClaim(queue, fence, row)
    if (group !== undefined) claim.group = group
    const noted = notes?.get(claim.id)
    if (noted !== undefined) note(claim, noted)
    return claim
  })
}

function note(claim: TextClaim, { bits, checkpoint, waitedUntil }: ClaimNotes): void {
  const waited = waitedBeyond(stampOf(claim.runAt), waitedUntil)
  if (waited !== undefined) claim.waitedUntil = waited
  if (checkpoint !== undefined) claim.checkpoint = checkpoint
  if (bits & noteBits.join) claim.isJoin = true
  if (bits & noteBits.member) claim.isMember = true
}

/** A class for the reason that `listOfOne` gives. */
class TextClaim implements Claim {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly payload: Payload
  readonly priority: number
  readonly attempt: number
  readonly crashes: number
  readonly fence: number
  readonly createdAt: number
  readonly runAt: number
  declare waitedUntil?: number
  declare codec?: string
  declare meta?: Payload
  declare group?: string
  declare expiresAt?: number
  declare error?: string
  declare checkpoint?: Checkpoint
  declare isJoin?: true
  declare isMember?: true

  constructor(
    queue: string,
    fence: number,
    [id, task, payload, meta, blobs, codec, priority, attempt, crashes, createdAt, stamp, expiresAt, error]: ClaimText,
  ) {
    this.queue = queue
    this.id = id
    this.task = task
    this.payload = blobs & 1 ? bytesOf(payload) : fromStored(payload)
    this.priority = priority
    this.attempt = attempt
    this.crashes = crashes
    this.fence = fence
    this.createdAt = createdAt
    this.runAt = Math.floor(stamp / 1_000)
    if (codec !== null) this.codec = codec
    if (meta !== null) this.meta = blobs & 2 ? bytesOf(meta) : fromStored(meta)
    if (expiresAt !== null) this.expiresAt = expiresAt
    if (error !== null) this.error = fromStored(error)
  }
}

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}
