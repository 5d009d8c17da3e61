/**
 * The suspects of a process: the queues and shards in which jobs wait that may have killed a process, and how long this
 * one tries to be alone for one of them.
 */

import type { Claimed } from '../../stores/contract/claim.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { type ClaimTarget, targetName, targetOf } from './claim-calls.js'

/** Queues and shards in which claims left suspects behind, until an answer shows that none are there. */
export class SuspectTargets {
  /** The target reported longest ago is first. */
  readonly #targets = new Map<string, ClaimTarget>()
  /** Targets that a throttle or a hold had shut when a claim alone asked them. */
  readonly #shut = new Map<string, ClaimTarget>()

  get size(): number {
    return this.#targets.size
  }

  /** The targets of the next claim made alone, in order: as many as one claim can ask. */
  next(): ClaimTarget[] {
    return [...this.#targets.values()].slice(0, mostPerTrip)
  }

  /** Notes the suspects in a claim's answer. */
  onAnswer({ waits }: Pick<Claimed, 'waits'>): void {
    for (const wait of waits) this.#targets.delete(targetName(wait))
    for (const wait of waits) if (wait.reason === 'suspect') this.#targets.set(targetName(wait), targetOf(wait))
  }

  /**
   * Notes the answer to a claim made alone on `asked`. The claim stops at the first target that grants: it did not look
   * at those behind, so they stay.
   */
  answeredAlone(asked: readonly ClaimTarget[], { queue, waits }: Pick<Claimed, 'queue' | 'waits'>): void {
    // Suspects that even a claim made alone does not receive must not be asked for again and again.
    if (queue === undefined) for (const target of asked) this.#targets.delete(targetName(target))
    const shut = new Set(waits.filter(({ reason }) => reason === 'throttled').map(targetName))
    for (const target of asked)
      if (queue === undefined && shut.has(targetName(target))) this.#shut.set(targetName(target), target)
      else this.#shut.delete(targetName(target))
    // A target that granted and is shut now answers like an earlier one that was denied: the answer does not say which
    // it was.
    if (waits.some((wait) => wait.queue === queue && (wait.reason === 'throttled' || wait.reason === 'full'))) return
    const suspects = new Set(waits.filter(({ reason }) => reason === 'suspect').map(targetName))
    const others = new Set(waits.filter(({ reason }) => reason !== 'suspect').map(targetName))
    const granting = asked.find((target) => target.queue === queue && !others.has(targetName(target)))
    if (granting !== undefined && !suspects.has(targetName(granting))) this.#targets.delete(targetName(granting))
  }

  /** These targets may be open now. Returns whether a claim alone has to ask one of them before others take what it grants. */
  opened(targets: readonly ClaimTarget[]): boolean {
    const were = targets.filter((target) => this.#shut.delete(targetName(target)))
    for (const target of were) this.#targets.set(targetName(target), target)
    return were.length > 0
  }

  clear(): void {
    this.#targets.clear()
    this.#shut.clear()
  }
}

/**
 * The first try lasts this long. After it another process, whose jobs may end sooner, may try; this one waits for the
 * same time. Each failure doubles the time, so that it grows as long as the longest job.
 */
const firstPatienceMs = 30_000

/** How long a process tries to be alone for a suspect, and when it may try again. */
export class SoloPatience {
  readonly #mono: () => number
  #patienceMs = firstPatienceMs
  /** The earliest instant of the next try. */
  #from = 0

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** Ms until it may try again; 0: now. */
  get dueInMs(): number {
    return Math.max(0, this.#from - this.#mono())
  }

  /** The instant at which a try that begins now gives up, on the monotonic clock. */
  get until(): number {
    return this.#mono() + this.#patienceMs
  }

  gaveUp(): void {
    this.#from = this.#mono() + this.#patienceMs
    this.#patienceMs *= 2
  }

  admitted(): void {
    this.#patienceMs = firstPatienceMs
  }

  /** The process was alone. `isDenied`: a limit denies the suspect, perhaps for long, so others go on without it. */
  ended(isDenied: boolean, restMs: number): void {
    this.#from = this.#mono() + Math.max(isDenied ? firstPatienceMs : 0, restMs)
  }
}
