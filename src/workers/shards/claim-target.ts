/** A claim target: a queue, or one shard of an ordered queue, as an entry of a claim. */

/** A queue, or a shard of an ordered one. */
export interface ClaimTarget {
  readonly queue: string
  readonly shard?: number
}

export function targetOf({ queue, shard }: ClaimTarget): ClaimTarget {
  return shard === undefined ? { queue } : { queue, shard }
}

/** The same text for the same target. */
export function targetName({ queue, shard }: ClaimTarget): string {
  return shard === undefined ? queue : `${queue}\0${shard}`
}
