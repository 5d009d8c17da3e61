/**
 * The jobs of a claim reply, which come as one text. Thousands arrive per second: the text is decoded at once, one
 * character per byte (Latin-1), and cut up. This takes a tenth of the time of a buffer and a string for each part.
 */

import type { Payload } from '../../../core/values/codec.js'
import type { Claim } from '../../contract/claim.js'
import type { ScoredPayload } from '../../contract/new-job.js'
import { dueAt, waitedBeyond } from '../../rules/sequence.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, numberIn, rowsIn } from '../client/redis-reply.js'
import { type JobPast, readPast, readPayload } from '../format/redis-job.js'
import { digestLength, scoredPayloadIn } from '../format/redis-payload.js'
import { createdAtIn, flagsOf, numberAt, RecordContent, recordFlags, utf8 } from '../format/redis-record.js'

/**
 * Reads the claims of a grant. `jobs` is as `grant` of the claim script writes it. `pasts` and `errors` are empty or
 * have one entry for each job, which may be empty; an error comes after a `=`. `checkpoints` and `expiries` have the
 * number of a job and its checkpoint, or when it expires, in turn.
 */
export function claimsIn(
  queue: string,
  fence: number,
  jobs: Buffer,
  pasts: readonly RedisReply[],
  errors: readonly RedisReply[],
  checkpoints: readonly RedisReply[],
  expiries: readonly RedisReply[],
): Claim[] {
  const text = jobs.toString('latin1')
  const idsEnd = text.indexOf('\0\0')
  const ids = utf8(text.slice(0, idsEnd)).split('\0')
  let from = idsEnd + 2 + 3 * ids.length
  const claims = ids.map((id, i) => {
    const to = from + numberAt(text, idsEnd + 2 + 3 * i, 3)
    const claim = claimIn(queue, fence, id, text, from, to)
    from = to
    return pasts.length === 0 ? claim : withPast(claim, bytesIn(pasts[i]), bytesIn(errors[i]))
  })
  for (const [number, checkpoint] of rowsIn(checkpoints, 2)) {
    const i = numberIn(number)
    claims[i] = { ...claims[i]!, checkpoint: readPayload(bytesIn(checkpoint)) }
  }
  for (const [number, expiresAt] of rowsIn(expiries, 2)) {
    const i = numberIn(number)
    claims[i] = { ...claims[i]!, expiresAt: numberIn(expiresAt) }
  }
  return claims
}

/** The flags of most joins and members. */
const placed = recordFlags.plain + recordFlags.rememberMs

/** The claim of a job that has no past and nothing else special. A class for the reason that `listOfOne` gives. */
class FirstClaim implements Claim {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly payload: Payload
  readonly priority = 0
  readonly attempt = 1
  readonly crashes = 0
  readonly fence: number
  readonly createdAt: number
  readonly runAt: number
  declare isJoin?: true
  declare isMember?: true

  constructor(
    queue: string,
    id: string,
    task: string,
    payload: Payload,
    fence: number,
    createdAt: number,
    runAt: number,
  ) {
    this.queue = queue
    this.id = id
    this.task = task
    this.payload = payload
    this.fence = fence
    this.createdAt = createdAt
    this.runAt = runAt
  }
}

/** `redis-record.ts` describes the form of a record. */
function claimIn(queue: string, fence: number, id: string, text: string, from: number, to: number): Claim {
  const runAt = Math.floor(numberAt(text, from + 1, 7) / 1_000)
  const createdAt = createdAtIn(text, from, runAt)
  const flagsAt = flagsOf(text, from)
  const flags = text.charCodeAt(flagsAt)
  if (flags === recordFlags.plain || flags === placed) {
    // All are decoded together: the UTF-8 form of a character never contains a NUL byte.
    const [task, rest] = cutAtNul(utf8(text.slice(flagsAt + 1, to)))
    if (flags === recordFlags.plain) return new FirstClaim(queue, id, task, rest, fence, createdAt, runAt)
    const [remembered, payload] = cutAtNul(rest)
    const claim = new FirstClaim(queue, id, task, payload, fence, createdAt, runAt)
    const space = remembered.indexOf(' ')
    return space < 0 ? claim : withPlaces(claim, remembered.slice(space + 1))
  }
  const taskEnd = text.indexOf('\0', flagsAt + 1)
  const { places, payload, priority, codec, group, meta } = new RecordContent(text, flags, taskEnd + 1, to)
  const claim = {
    queue,
    id,
    task: utf8(text.slice(flagsAt + 1, taskEnd)),
    payload,
    priority,
    attempt: 1,
    crashes: 0,
    fence,
    createdAt,
    runAt,
    ...(codec === undefined ? {} : { codec }),
    ...(group === undefined ? {} : { group }),
    ...(meta === undefined ? {} : { meta }),
  }
  return places === undefined ? claim : withPlaces(claim, places)
}

function withPlaces(claim: Claim & { isJoin?: true; isMember?: true }, places: string): Claim {
  if (places.startsWith('w')) claim.isJoin = true
  if (places.includes('.')) claim.isMember = true
  return claim
}

function cutAtNul(text: string): [string, string] {
  const end = text.indexOf('\0')
  return [text.slice(0, end), text.slice(end + 1)]
}

/** The claims of a grant of an ordered queue, with their payloads. `pasts` and `errors` are as for `claimsIn`. */
export function orderedClaimsIn(
  queue: string,
  fence: number,
  jobs: Buffer,
  pasts: readonly RedisReply[],
  errors: readonly RedisReply[],
): Claim[] {
  const text = jobs.toString('latin1')
  const claims: Claim[] = []
  for (let at = 0; at < text.length; ) {
    const idEnd = text.indexOf('\0', at)
    const from = idEnd + 4
    const packedAt = from + numberAt(text, idEnd + 1, 3) + 4
    const to = packedAt + numberAt(text, packedAt - 4, 4)
    const runAt = Math.floor(numberAt(text, from + 1, 7) / 1_000)
    const taskAt = flagsOf(text, from) + 1
    const taskEnd = text.indexOf('\0', taskAt)
    const nameEnd = text[taskAt - 1] === 'H' ? text.indexOf('\0', taskEnd + 1) : taskEnd
    const recordEnd = packedAt - 4
    const claim: Claim = {
      queue,
      id: utf8(text.slice(at, idEnd)),
      task: utf8(text.slice(taskAt, taskEnd)),
      payload: '',
      payloads:
        nameEnd + 1 < recordEnd
          ? [scoredPayloadIn(jobs, text, nameEnd + 1 + digestLength, recordEnd)]
          : scoredPayloadsIn(jobs, text, packedAt, to),
      ...(text[to] === 'm' ? { hasMore: true } : {}),
      priority: 0,
      ...(nameEnd > taskEnd ? { group: utf8(text.slice(taskEnd + 1, nameEnd)) } : {}),
      attempt: 1,
      crashes: 0,
      fence,
      createdAt: createdAtIn(text, from, runAt),
      runAt,
    }
    const i = claims.length
    claims.push(pasts.length === 0 ? claim : withPast(claim, bytesIn(pasts[i]), bytesIn(errors[i])))
    at = to + 1
  }
  return claims
}

/** `redis-payload.ts` describes the form of a payload. */
function scoredPayloadsIn(jobs: Buffer, text: string, from: number, to: number): ScoredPayload[] {
  const payloads: ScoredPayload[] = []
  for (let at = from + 4; at < to; ) {
    const start = at + 26
    const end = at + 4 + numberAt(text, at, 4)
    payloads.push(scoredPayloadIn(jobs, text, start, end))
    at = end
  }
  return payloads
}

function withPast(claim: Claim, past: Buffer, error: Buffer): Claim {
  const { attempt, crashes, stamp, waitedUntil }: Partial<JobPast> = past.length === 0 ? claim : readPast(past)
  const waited = stamp === undefined ? undefined : waitedBeyond(stamp, waitedUntil)
  return {
    ...claim,
    attempt: attempt!,
    crashes: crashes!,
    ...(stamp === undefined ? {} : { runAt: dueAt(stamp) }),
    ...(waited === undefined ? {} : { waitedUntil: waited }),
    ...(error.length === 0 ? {} : { error: error.toString('utf8', 1) }),
  }
}
