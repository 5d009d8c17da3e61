/** The shared words of the proof of starts: its queue, its throttle, and the messages to its server. */

export const visits = 'visits'
export const limit = 5
export const windowMs = 2_000

export function throttleOf(moderate: boolean) {
  return { limit, window: windowMs, by: 'group', ...(moderate ? { moderate } : {}) } as const
}

/** The largest number of instants in any closed window. */
export function mostWithin(instants: readonly number[], ms: number): number {
  let from = 0
  let most = 0
  for (const [i, at] of instants.entries()) {
    while (instants[from]! < at - ms) from += 1
    most = Math.max(most, i - from + 1)
  }
  return most
}
