/** The order of texts by their bytes in UTF-8, in which every store lists them. */

export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
