/** The decoding of a batch: the payloads of each id, and their check against the task's schema. */

import { CodecError } from '../../core/errors.js'
import type { Lack, Packing } from '../../core/packing/packing.js'
import { type Schema, validated } from '../../core/task/schema.js'
import { messageOf } from '../../core/values/describe.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { ScoredPayload } from '../../stores/contract/scored-payload.js'
import type { DecodedClaim } from './batch-execution.js'
import { metaOf } from './execution.js'

/** The codec, compression or key that is missing here to read the claim; undefined if all can be read. */
export function lackIn({ payload, codec, payloads }: Claim, packing: Packing): Lack | undefined {
  if (payloads === undefined) return packing.lackFor(payload, codec)
  for (const { payload, codec } of payloads) {
    const lack = packing.lackFor(payload, codec)
    if (lack !== undefined) return lack
  }
  return undefined
}

/** Throws `CodecError` that says which payload cannot be decoded. */
export function decodedClaim(claim: Claim, packing: Packing): DecodedClaim {
  const { payload, codec, payloads } = claim
  if (payloads === undefined)
    return {
      claim,
      inputs: [packing.unpack(payload, codec, 'payload', claim)],
      metas: [metaOf(packing.unpackMeta(claim, 'meta', claim))],
    }
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
    inputs: decoded(({ payload, codec }) => packing.unpack(payload, codec, 'ordered payload', claim)),
    metas: decoded((one) => metaOf(packing.unpackMeta(one, 'ordered meta', claim))),
  }
}

/**
 * The schema's outputs. Throws `InvalidJobError` that says which payload does not fit, and the errors of a schema that
 * itself fails.
 */
export async function checkedInputs(
  schema: Schema,
  { claim, inputs }: Pick<DecodedClaim, 'claim' | 'inputs'>,
): Promise<unknown[]> {
  const outputs: unknown[] = []
  for (const [i, input] of inputs.entries()) outputs.push(await validated(schema, input, payloadName(claim, i)))
  return outputs
}

function payloadName({ payloads }: Claim, i: number): string {
  if (payloads === undefined) return 'the stored input'
  return `payload ${i + 1} of ${payloads!.length} (score ${payloads![i]!.score})`
}
