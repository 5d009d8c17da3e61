/**
 * Suspect targets: queues and shards in which claims left suspects behind, until an answer shows that none are there.
 */

import type { Claimed } from '../../stores/contract/claim.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { type ClaimTarget, targetName, targetOf } from '../shards/claim-target.js'

export class SuspectTargets {
  /** The target reported longest ago is first. */
  readonly #places = new Map<string, ClaimTarget>()

  get size(): number {
    return this.#places.size
  }

  /** The targets of the next claim made alone, in order: as many as one claim can ask. */
  next(): ClaimTarget[] {
    return [...this.#places.values()].slice(0, mostPerTrip)
  }

  /** Notes the suspects in a claim's answer. */
  told({ waits }: Pick<Claimed, 'waits'>): void {
    for (const wait of waits) this.#places.delete(targetName(wait))
    for (const wait of waits) if (wait.reason === 'suspect') this.#places.set(targetName(wait), targetOf(wait))
  }

  /**
   * Notes the answer to a claim made alone on `asked`. The claim stops at the first target that grants: it did not look
   * at those behind, so they stay.
   */
  answeredAlone(asked: readonly ClaimTarget[], { queue, waits }: Pick<Claimed, 'queue' | 'waits'>): void {
    // Suspects that even a claim made alone does not receive must not be asked for again and again.
    if (queue === undefined) for (const place of asked) this.#places.delete(targetName(place))
    // A target that granted and is shut now answers like an earlier one that was denied: the answer does not say which
    // it was.
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
