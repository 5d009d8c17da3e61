/** Values and refusals for the tests of the codec. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { CodecError } from '#src/core/errors.js'
import { jsonCodec } from '#src/core/values/codec.js'

export const encode = (value: unknown) => jsonCodec.encode(value) as string
export const decode = (text: string | Uint8Array) => jsonCodec.decode(text)
export const again = (value: unknown) => decode(encode(value))

/** The error that `call` throws, which must be a CodecError. */
export function refusal(call: () => unknown): string {
  let thrown: unknown
  try {
    call()
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(CodecError)
  return (thrown as CodecError).message
}

export const key = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('$millrace', 'json', 'types', 'prototype', 'toString', 'length', '0', '-1', ''),
  )
  .filter((name) => name !== '__proto__')

/** Every type the codec holds, nested in every way; keys of maps are of any type too. */
export const { any } = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.double(),
      fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, 0, Number.MAX_VALUE, Number.MIN_VALUE),
      fc.boolean(),
      fc.constantFrom(null, undefined),
      fc.bigInt(),
      fc.date({ noInvalidDate: false }),
      fc.uint8Array({ maxLength: 20 }),
    ),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(
      key,
      tie('any').filter((value) => value !== undefined),
      { maxKeys: 4, noNullPrototype: true },
    ),
    fc.array(fc.tuple(tie('any'), tie('any')), { maxLength: 3 }).map((pairs) => new Map(pairs)),
    fc.array(tie('any'), { maxLength: 3 }).map((items) => new Set(items)),
  ),
}))
