/** Record JSON: records as programs read them, with plain JSON for what is none. */

/** JSON of what a record may hold beside JSON: big integers as text, maps and sets as arrays, bytes as base64. */
export function recordJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, plain, indent) ?? 'null'
}

function plain(this: unknown, key: string, value: unknown): unknown {
  // Buffers have a toJSON, which was called already: look at the value itself.
  const own = (this as Record<string, unknown>)[key]
  if (own instanceof Uint8Array) return Buffer.from(own).toString('base64')
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Map || value instanceof Set) return [...value]
  return value
}
