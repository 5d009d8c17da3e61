import { expect, it } from 'vitest'
import { parseByteSize } from '#src/core/values/byte-size.js'

it.each([
  ['512MB', 536_870_912],
  ['2gb', 2_147_483_648],
  ['1KB', 1_024],
  ['4096', 4_096],
  [4_096, 4_096],
])('%s is a byte size', (size, bytes) => {
  expect(parseByteSize(size)).toBe(bytes)
})

it.each([
  '',
  '0',
  '0MB',
  '-1',
  '1.5GB',
  '512 MB',
  '512M',
  'MB',
  0,
  -1,
  1.5,
  Number.NaN,
  null,
  undefined,
  '9999999999999999GB',
])('%s is not a byte size', (size) => {
  expect(parseByteSize(size)).toBeUndefined()
})
