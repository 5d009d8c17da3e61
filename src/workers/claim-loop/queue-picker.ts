/**
 * The queue picker: which queues the next claim asks, by the selector, leaving out those found empty, or denied by their limits,
 * since they were last heard of.
 */

import { ConfigError } from '../../core/errors.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue } from '../../core/queue/queue.js'
import { messageOf } from '../../core/values/describe.js'
import type { Candidate, Selector } from '../../selectors/selector.js'
import type { Claimed } from '../../stores/contract/claim.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { type Denial, denialsIn } from './denial.js'
import type { LimitedQueues } from './limited-queues.js'

/**
 * So long a worker that never rests, and so hears no rings, leaves alone an ordered queue that it found empty, where asking
 * them all again after every grant would take several trips.
 */
const leftAloneMs = 100

interface QueuePickerParts {
  readonly selector: Selector
  readonly queues: readonly Queue[]
  /** How many entries of a claim ask all that there is of a queue: its shards. */
  readonly placesOf: (queue: string) => number
  /** Whether this worker is to leave a queue to others for as long as queues of its own have work. */
  readonly isForOthers: (queue: string) => boolean
  readonly limited: LimitedQueues
  readonly mono: () => number
  readonly random: Random
}

/** A queue that had nothing to give. Instants are on the monotonic clock. */
interface Tried {
  /** When that was last known. */
  readonly at: number
  /** Until when its limits deny all that is ready, and perhaps what comes; -Infinity where they do not. */
  readonly shutUntil: number
  /** So long it is taken to be shut by a worker that hears no rings, and so of no other rules. */
  readonly shutForMs: number
}

export class QueuePicker {
  readonly #selector: Selector
  readonly #queues: readonly Queue[]
  readonly #placesOf: (queue: string) => number
  readonly #isForOthers: (queue: string) => boolean
  readonly #limited: LimitedQueues
  readonly #mono: () => number
  readonly #random: Random
  /** Found empty or denied, the one that was asked longest ago first. */
  readonly #tried = new Map<string, Tried>()
  /** Something was granted since the last rest: what comes into a queue found empty is heard of in the next only. */
  #isBusy = false
  readonly #rung = new Set<string>()
  readonly #heads = new Map<string, number>()
  /** Drawn and not asked yet: what is not used is not drawn again. */
  #drawn: string[] | undefined
  #staying: { readonly queue: string; left: number } | undefined

  constructor({ selector, queues, placesOf, isForOthers, limited, mono, random }: QueuePickerParts) {
    this.#selector = selector
    this.#queues = queues
    this.#placesOf = placesOf
    this.#isForOthers = isForOthers
    this.#limited = limited
    this.#mono = mono
    this.#random = random
  }

  /** The queues to ask next, in order: those that were rung first. None when every queue that the selector names was found empty. */
  next(): string[] {
    if (this.#isBusy) this.#forgetOld()
    this.#drawn ??= this.#staying === undefined ? this.#order() : [this.#staying.queue]
    return this.#drawn
  }

  #order(): string[] {
    // Leaving out what was found empty is drawing again until a queue comes up that was not.
    const candidates = this.#candidates()
    if (candidates.length === 0) return []
    const drawn = new Set(this.#selected(candidates))
    const untried = [...drawn].filter((name) => !this.#tried.has(this.#known(name)))
    if (this.#rung.size === 0) return untried.slice(0, mostPerTrip)
    const isRung = (name: string) => this.#rung.has(name)
    return [...untried.filter(isRung), ...untried.filter((name) => !isRung(name))].slice(0, mostPerTrip)
  }

  /** Takes note of the ages of heads. */
  told(heads: NonNullable<Claimed['heads']>): void {
    for (const [name, ageMs] of oldestHeads(heads)) {
      if (ageMs === undefined) this.#heads.delete(name)
      else this.#heads.set(name, ageMs)
    }
    this.#drawn = undefined
  }

  /** Takes note of what a claim gave that asked all there is of these queues. */
  answered(asked: readonly string[], answer: Claimed): void {
    const { queue, heads } = answer
    this.told(heads ?? [])
    this.#rung.clear()
    this.#drawn = undefined
    if (queue === undefined) {
      for (const name of asked) this.#nothingIn({ queue: name })
      this.#staying = undefined
    } else {
      this.#isBusy = true
      this.#forgetCheap()
      this.#stay(queue)
    }
    for (const denial of denialsIn(answer, this.#limited, this.#placesOf)) this.#deniedBy(denial, queue)
  }

  /** The queues found empty or denied: those worth waiting for. */
  get tried(): string[] {
    return [...this.#tried.keys()]
  }

  /** These may have work: they were rung, or something in them has fallen due. */
  heard(queues: readonly string[]): void {
    this.#drawn = undefined
    for (const name of queues) {
      this.#tried.delete(name)
      this.#rung.add(name)
    }
  }

  /**
   * A job of this queue was put back for another worker: this one asks it again when it has rested, or other queues have
   * had their turn.
   */
  passOver(queue: string): void {
    this.#drawn = undefined
    this.#rung.delete(queue)
    if (this.#staying?.queue === queue) this.#staying = undefined
    this.#nothingIn({ queue })
  }

  /** Nothing was heard for long enough to look again, at as many as one claim can ask. What is shut would be denied again. */
  sweep(): void {
    this.#drawn = undefined
    const now = this.#mono()
    const open = [...this.#tried].filter(([, { shutUntil }]) => shutUntil <= now)
    for (const [name] of open.slice(0, mostPerTrip)) this.#tried.delete(name)
  }

  /** A rest on those found empty is over: the store would have told of anything in them. */
  rested(): void {
    this.#isBusy = false
    const at = this.#mono()
    for (const [name, tried] of this.#tried) this.#tried.set(name, { ...tried, at })
  }

  /** Any may have work. */
  again(): void {
    this.#drawn = undefined
    this.#tried.clear()
  }

  #nothingIn({ queue, forMs }: Denial): void {
    const at = this.#mono()
    const shutUntil = forMs === undefined ? Number.NEGATIVE_INFINITY : at + forMs
    // Where groups are counted, others than those that are ready may come.
    const isWhole = this.#limited.isWhole(queue, 'throttled')
    this.#tried.set(queue, { at, shutUntil, shutForMs: isWhole ? this.#queueNamed(queue).longPollMs : 0 })
  }

  /** Where another queue was `granted` something, the next claim may ask this one too, unless that is known to be in vain. */
  #deniedBy(denial: Denial, granted: string | undefined): void {
    const { queue, forMs } = denial
    const isShut = forMs !== undefined && this.#limited.isWhole(queue, 'throttled')
    if (granted !== undefined && granted !== queue && !isShut) return
    this.#nothingIn(denial)
    if (this.#staying?.queue === queue) this.#staying = undefined
  }

  /** Whether asking again would be in vain: it is shut, and by rules that are known well enough. */
  #isShut({ at, shutUntil, shutForMs }: Tried): boolean {
    return this.#mono() < Math.min(shutUntil, at + shutForMs)
  }

  /** After a grant all are asked again, as far as that costs no more than it would of plain queues. */
  #forgetCheap(): void {
    const names = [...this.#tried].filter(([, tried]) => !this.#isShut(tried)).map(([name]) => name)
    const fitOneTrip = names.reduce((sum, name) => sum + this.#placesOf(name), 0) <= mostPerTrip
    for (const name of names) if (fitOneTrip || this.#placesOf(name) === 1) this.#tried.delete(name)
  }

  #forgetOld(): void {
    const oldest = this.#mono() - leftAloneMs
    for (const [name, tried] of this.#tried) {
      if (tried.at > oldest || this.#isShut(tried)) continue
      this.#tried.delete(name)
      this.#drawn = undefined
    }
  }

  #stay(queue: string): void {
    const left = this.#staying === undefined ? this.#queueNamed(queue).iterations - 1 : this.#staying.left - 1
    this.#staying = left > 0 ? { queue, left } : undefined
  }

  #queueNamed(name: string): Queue {
    return this.#queues.find((queue) => queue.name === name)!
  }

  #candidates() {
    const open = this.#queues.filter(({ name }) => !this.#tried.has(name))
    // One that was rung is asked in any case: nobody else was.
    const own = open.filter(({ name }) => this.#rung.has(name) || !this.#isForOthers(name))
    return (own.length > 0 ? own : open).map(({ name, weight }) => {
      const headAgeMs = this.#heads.get(name)
      return headAgeMs === undefined ? { name, weight } : { name, weight, headAgeMs }
    })
  }

  #selected(candidates: readonly Candidate[]): readonly string[] {
    try {
      return this.#selector(candidates, this.#random)
    } catch (error) {
      throw new ConfigError('selector', [{ path: 'selector', message: `threw: ${messageOf(error)}` }], { cause: error })
    }
  }

  #known(name: string): string {
    if (this.#queues.some((queue) => queue.name === name)) return name
    throw new ConfigError('selector', [
      {
        path: 'selector',
        message: `named queue '${name}', which this worker does not serve; it serves ${this.#queues.map((queue) => queue.name).join(', ')}`,
      },
    ])
  }
}

/** By queue the age of its oldest head: of an ordered queue each shard has one. */
function oldestHeads(heads: NonNullable<Claimed['heads']>): Map<string, number | undefined> {
  const oldest = new Map<string, number | undefined>()
  for (const { queue, ageMs } of heads) {
    const known = oldest.get(queue)
    oldest.set(queue, known === undefined || (ageMs ?? -1) > known ? ageMs : known)
  }
  return oldest
}
