/** The order of texts by their bytes in UTF-8, as every store has it. */

export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
