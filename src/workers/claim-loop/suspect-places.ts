/** The places of suspects: where claims left some behind, until an answer tells that none are there. */

import type { Claimed } from '../../stores/contract/claim.js'
import { type Place, placeName, placeOf } from '../shards/place.js'
import { mostPerTrip } from './draw.js'

export class SuspectPlaces {
  /** The one that was told of longest ago first. */
  readonly #places = new Map<string, Place>()

  get size(): number {
    return this.#places.size
  }

  /** Where the next claim alone asks, in order: as many as one can. */
  next(): Place[] {
    return [...this.#places.values()].slice(0, mostPerTrip)
  }

  /** Takes note of what a claim told. */
  told({ waits }: Pick<Claimed, 'waits'>): void {
    for (const wait of waits) this.#places.delete(placeName(wait))
    for (const wait of waits) if (wait.reason === 'suspect') this.#places.set(placeName(wait), placeOf(wait))
  }

  /**
   * Takes note of what a claim alone gave that asked these and was `told` of. It stops at the first that grants: those behind
   * it were not looked at, and stay.
   */
  answeredAlone(asked: readonly Place[], { queue, waits }: Pick<Claimed, 'queue' | 'waits'>): void {
    // Suspects that are not even given to a claim alone must not be asked for again and again.
    if (queue === undefined) for (const place of asked) this.#places.delete(placeName(place))
    // One that granted and is shut now tells the same as one before it that was denied: which of them it was cannot be seen.
    if (waits.some((wait) => wait.queue === queue && (wait.reason === 'throttled' || wait.reason === 'full'))) return
    const suspects = new Set(waits.filter(({ reason }) => reason === 'suspect').map(placeName))
    const others = new Set(waits.filter(({ reason }) => reason !== 'suspect').map(placeName))
    const granting = asked.find((place) => place.queue === queue && !others.has(placeName(place)))
    if (granting !== undefined && !suspects.has(placeName(granting))) this.#places.delete(placeName(granting))
  }

  clear(): void {
    this.#places.clear()
  }
}
