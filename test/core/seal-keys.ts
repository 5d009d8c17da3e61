/** Keys and seals for tests. */

import { Seal } from '#src/core/packing/seal.js'

/** 32 bytes, the same each time. */
export const keyOf = (seed: number): Uint8Array => Uint8Array.from({ length: 32 }, (_, i) => (seed * 31 + i * 7) % 256)

export const [oldKey, newKey, otherKey] = [keyOf(1), keyOf(2), keyOf(3)] as const

/** A seal of these keys; the first one is current. */
export function sealOf(keys: Record<string, Uint8Array>, { namespace = 'millrace', only = false } = {}): Seal {
  const all = new Map(Object.entries(keys))
  return new Seal({ current: Object.keys(keys)[0], only, keys: all }, namespace)
}
