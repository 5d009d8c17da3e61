/** The order of texts by their bytes in UTF-8: every store lists texts in this order. */

export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
