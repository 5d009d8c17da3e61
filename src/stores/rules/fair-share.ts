/** Fair share: how a claim goes round the lanes of a queue's groups. Every store deals by these rules. */

/** Most lanes that one claim looks into: those that turn out to be shut are passed over. */
export const mostVisits = 1_000

/**
 * How many jobs the lane whose turn it is may give, where `left` are still to be granted and so many lanes have not had
 * their turn in this round, itself included: its share, rounded up, so that a claim goes round once where it can.
 */
export function shareOf(left: number, lanes: number): number {
  return Math.ceil(left / lanes)
}
