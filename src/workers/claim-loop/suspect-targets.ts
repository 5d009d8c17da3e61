/** Suspect targets: queues and shards where claims left suspects behind, until an answer tells that none are there. */

import type { Claimed } from '../../stores/contract/claim.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { type ClaimTarget, targetName, targetOf } from '../shards/claim-target.js'

export class SuspectTargets {
  /** The one that was told of longest ago first. */
  readonly #places = new Map<string, ClaimTarget>()

  get size(): number {
    return this.#places.size
  }

  /** Where the next claim alone asks, in order: as many as one can. */
  next(): ClaimTarget[] {
    return [...this.#places.values()].slice(0, mostPerTrip)
  }

  /** Takes note of what a claim told. */
  told({ waits }: Pick<Claimed, 'waits'>): void {
    for (const wait of waits) this.#places.delete(targetName(wait))
    for (const wait of waits) if (wait.reason === 'suspect') this.#places.set(targetName(wait), targetOf(wait))
  }

  /**
   * Takes note of what a claim alone gave that asked these and was `told` of. It stops at the first that grants: those behind
   * it were not looked at, and stay.
   */
  answeredAlone(asked: readonly ClaimTarget[], { queue, waits }: Pick<Claimed, 'queue' | 'waits'>): void {
    // Suspects that are not even given to a claim alone must not be asked for again and again.
    if (queue === undefined) for (const place of asked) this.#places.delete(targetName(place))
    // One that granted and is shut now tells the same as one before it that was denied: which of them it was cannot be seen.
    if (waits.some((wait) => wait.queue === queue && (wait.reason === 'throttled' || wait.reason === 'full'))) return
    const suspects = new Set(waits.filter(({ reason }) => reason === 'suspect').map(targetName))
    const others = new Set(waits.filter(({ reason }) => reason !== 'suspect').map(targetName))
    const granting = asked.find((place) => place.queue === queue && !others.has(targetName(place)))
    if (granting !== undefined && !suspects.has(targetName(granting))) this.#places.delete(targetName(granting))
  }

  clear(): void {
    this.#places.clear()
  }
}
