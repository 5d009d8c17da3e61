/**
 * The jobs of a claim reply of an ordered queue with their payloads. They come as one text, which is decoded one
 * character per byte as in `redis-claim-reply.ts`.
 */

import type { Payload } from '../../../core/values/codec.js'
import type { Claim } from '../../contract/claim.js'
import type { ScoredPayload } from '../../contract/scored-payload.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn } from '../client/redis-reply.js'
import { digestLength, payloadFlags, scoreAt } from '../format/redis-payload.js'
import { numberAt, utf8, withPast } from './redis-claim-reply.js'

/** `pasts` and `errors` are as for `claimsIn`. */
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
    const isDated = text.charCodeAt(from) < 97
    const runAt = Math.floor(numberAt(text, from + 1, 7) / 1_000)
    const taskAt = from + (isDated ? 21 : 15)
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
          ? [payloadIn(jobs, text, nameEnd + 1 + digestLength, recordEnd)]
          : payloadsIn(jobs, text, packedAt, to),
      ...(text[to] === 'm' ? { hasMore: true } : {}),
      priority: 0,
      ...(nameEnd > taskEnd ? { group: utf8(text.slice(taskEnd + 1, nameEnd)) } : {}),
      attempt: 1,
      crashes: 0,
      fence,
      createdAt: isDated ? numberAt(text, from + 14, 6) : runAt,
      runAt,
    }
    const i = claims.length
    claims.push(pasts.length === 0 ? claim : withPast(claim, bytesIn(pasts[i]), bytesIn(errors[i])))
    at = to + 1
  }
  return claims
}

/** `redis-payload.ts` describes the form of a payload. */
function payloadsIn(jobs: Buffer, text: string, from: number, to: number): ScoredPayload[] {
  const payloads: ScoredPayload[] = []
  for (let at = from + 4; at < to; ) {
    const start = at + 26
    const end = at + 4 + numberAt(text, at, 4)
    payloads.push(payloadIn(jobs, text, start, end))
    at = end
  }
  return payloads
}

function payloadIn(jobs: Buffer, text: string, from: number, to: number): ScoredPayload {
  const score = scoreAt(jobs, from)
  const flags = text.charCodeAt(from + 14)
  let at = from + 15
  if (flags === payloadFlags.none) return { score, payload: utf8(text.slice(at, to)) }
  const field = (flag: number) => {
    if ((flags & flag) === 0) return undefined
    const end = text.indexOf('\0', at)
    const value = utf8(text.slice(at, end))
    at = end + 1
    return value
  }
  const codec = field(payloadFlags.codec)
  const metaLength = field(payloadFlags.meta)
  let meta: Payload | undefined
  if (metaLength !== undefined) {
    const isBytes = metaLength.startsWith('b')
    const end = at + Number(isBytes ? metaLength.slice(1) : metaLength)
    meta = isBytes ? Uint8Array.from(jobs.subarray(at, end)) : utf8(text.slice(at, end))
    at = end
  }
  const isBytes = (flags & payloadFlags.bytes) > 0
  return {
    score,
    payload: isBytes ? Uint8Array.from(jobs.subarray(at, to)) : utf8(text.slice(at, to)),
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
  }
}
