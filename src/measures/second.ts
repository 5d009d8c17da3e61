/** The second: the unit of time in metrics. */

export function seconds(ms: number): number {
  return ms / 1_000
}
