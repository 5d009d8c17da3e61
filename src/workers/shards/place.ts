/** A place: where a claim asks. */

/** A queue, or a shard of an ordered one. */
export interface Place {
  readonly queue: string
  readonly shard?: number
}

export function placeOf({ queue, shard }: Place): Place {
  return shard === undefined ? { queue } : { queue, shard }
}

/** The same text for the same place. */
export function placeName({ queue, shard }: Place): string {
  return shard === undefined ? queue : `${queue}\0${shard}`
}
