/** The decoding of what a batch is given: the payloads of each id, and their check against the task's schema. */

import { CodecError } from '../../core/errors.js'
import { type Schema, validated } from '../../core/task/schema.js'
import type { Codec } from '../../core/values/codec.js'
import { messageOf } from '../../core/values/describe.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { ScoredPayload } from '../../stores/contract/scored-payload.js'
import type { BatchedJob, DecodedClaim } from './batch-execution.js'
import { metaOf } from './execution.js'

/** The name of another codec that made a payload of the claim; undefined if this one made them all. */
export function otherCodecIn({ payloads }: Claim, { name }: Codec): string | undefined {
  return payloads!.map(({ codec = 'json' }) => codec).find((codec) => codec !== name)
}

/** Throws `CodecError` that says which payload cannot be decoded. */
export function decodedClaim(claim: Claim, codec: Codec): DecodedClaim {
  const payloads = claim.payloads!
  const decoded = <Value>(decode: (one: ScoredPayload) => Value): Value[] =>
    payloads.map((one, i) => {
      try {
        return decode(one)
      } catch (error) {
        throw new CodecError(`${payloadName(claim, i)} cannot be decoded: ${messageOf(error)}`, { cause: error })
      }
    })
  return {
    claim,
    inputs: decoded(({ payload }) => codec.decode(payload)),
    metas: decoded(({ meta }) => metaOf(meta === undefined ? undefined : codec.decode(meta))),
  }
}

/** The schema's outputs. Throws `InvalidJobError` that says which payload does not fit, and what a schema that breaks down throws. */
export async function checkedInputs(schema: Schema, { claim, inputs }: BatchedJob): Promise<unknown[]> {
  const outputs: unknown[] = []
  for (const [i, input] of inputs.entries()) outputs.push(await validated(schema, input, payloadName(claim, i)))
  return outputs
}

function payloadName({ payloads }: Claim, i: number): string {
  return `payload ${i + 1} of ${payloads!.length} (score ${payloads![i]!.score})`
}
