/** A size in bytes as users write it: `'512MB'`, `'2GB'`, or a number of bytes. 1 MB is 1,048,576 bytes. */

const unitBytes: Record<string, number> = { '': 1, KB: 1_024, MB: 1_048_576, GB: 1_073_741_824 }

export const byteSizeForm = "a size such as '512MB' or '2GB' (1 MB is 1,048,576 bytes), or a whole number of bytes"

/** The bytes of a size, or undefined if it is not one. Never 0, always whole. */
export function parseByteSize(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? value : undefined
  if (typeof value !== 'string') return undefined
  const [, amount, unit = ''] = /^(\d{1,15})([KMG]B)?$/i.exec(value) ?? []
  const bytes = Number(amount) * unitBytes[unit.toUpperCase()]!
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined
}
