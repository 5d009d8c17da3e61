/** The second: the unit of time in which metrics are told. */

export function seconds(ms: number): number {
  return ms / 1_000
}
