/** Record JSON: records for programs, with values that JSON lacks in a plain form. */

/** JSON of a record. Big integers become text, maps and sets arrays, bytes base64. */
export function recordJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, plain, indent) ?? 'null'
}

function plain(this: unknown, key: string, value: unknown): unknown {
  // Buffers have a toJSON, which was called already: read the value itself.
  const own = (this as Record<string, unknown>)[key]
  if (own instanceof Uint8Array) return Buffer.from(own).toString('base64')
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Map || value instanceof Set) return [...value]
  return value
}
