/** The differences between two plain values: the paths at which they differ, with both values. */

export function differences(expected: unknown, found: unknown, path = ''): string[] {
  if (Object.is(expected, found)) return []
  const isList = Array.isArray(expected)
  if (!isObject(expected) || !isObject(found) || isList !== Array.isArray(found)) {
    return [`${path || 'the value'}: ${text(expected)} ≠ ${text(found)}`]
  }
  const keys = new Set([...Object.keys(expected), ...Object.keys(found)])
  return [...keys].flatMap((key) =>
    differences(expected[key], found[key], isList ? `${path}[${key}]` : `${path}.${key}`),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function text(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value)
}
