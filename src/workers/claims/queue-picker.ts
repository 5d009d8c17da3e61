/**
 * The queue picker: chooses the queues for the next claim by the selector. It leaves out queues that were found empty,
 * or whose limits denied them, until there is news of them.
 */

import { ConfigError } from '../../core/errors.js'
import { messageOf } from '../../core/messages/describe.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue } from '../../core/queue/queue.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { Candidate, Selector } from '../../selectors/selector.js'
import type { Claimed } from '../../stores/contract/claim.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import type { LimitedQueues } from './limited-queues.js'
import type { ShardPicker } from './shard-picker.js'

/**
 * A worker that never rests, and so hears no rings, leaves alone for this long an ordered queue that it found empty.
 * Only for queues whose shards would take several trips after every grant.
 */
const leftAloneMs = 100

/** A queue that granted nothing. Instants are on the monotonic clock. */
interface Tried {
  /** When that was last known. */
  readonly at: number
  /** Until when limits deny all ready jobs, and perhaps new ones; -Infinity if they do not. */
  readonly shutUntil: number
  /** For how many ms a worker that never rests, and so hears of no new rules, takes it to be shut. */
  readonly shutForMs: number
}

export class QueuePicker {
  readonly #selector: Selector
  readonly #queues: readonly Queue[]
  readonly #shards: Pick<ShardPicker, 'entriesOf' | 'isForOthers'>
  readonly #limited: LimitedQueues
  readonly #mono: () => number
  readonly #random: Random
  /** Queues found empty or denied; the one asked longest ago is first. */
  readonly #tried = new Map<string, Tried>()
  /**
   * Something was granted since the last rest. The worker hears of new jobs in an empty queue only in the next rest.
   */
  #isBusy = false
  readonly #rung = new Set<string>()
  /** Queues that it neither asks nor rests on, and until when. */
  readonly #left = new Map<string, number>()
  readonly #heads = new Map<string, number>()
  /** Queues drawn and not asked yet: an unused draw is kept. */
  #drawn: string[] | undefined
  #staying: { readonly queue: string; left: number } | undefined

  constructor(
    { clock, random }: Pick<Surroundings, 'clock' | 'random'>,
    queues: readonly Queue[],
    selector: Selector,
    limited: LimitedQueues,
    shards: Pick<ShardPicker, 'entriesOf' | 'isForOthers'>,
  ) {
    this.#selector = selector
    this.#queues = queues
    this.#shards = shards
    this.#limited = limited
    this.#mono = () => clock.mono()
    this.#random = random
  }

  /** The queues to ask next, in order, rung ones first. None if every queue of the selector was found empty. */
  next(): string[] {
    if (this.#isBusy) this.#forgetOld()
    this.#drawn ??= this.#staying === undefined ? this.#order() : [this.#staying.queue]
    return this.#drawn
  }

  /** The queues that came up last have been asked: the next claim, which may not wait for their answer, draws anew. */
  asked(): void {
    this.#drawn = undefined
  }

  #order(): string[] {
    // Leaving out empty queues equals drawing again until another queue comes up.
    const candidates = this.#candidates()
    if (candidates.length === 0) return []
    const drawn = new Set(this.#selected(candidates))
    const untried = [...drawn].filter((name) => !this.#tried.has(this.#known(name)))
    if (this.#rung.size === 0) return untried.slice(0, mostPerTrip)
    const isRung = (name: string) => this.#rung.has(name)
    return [...untried.filter(isRung), ...untried.filter((name) => !isRung(name))].slice(0, mostPerTrip)
  }

  /** Notes the ages of heads. */
  onHeads(heads: NonNullable<Claimed['heads']>): void {
    for (const [name, ageMs] of oldestHeads(heads)) {
      if (ageMs === undefined) this.#heads.delete(name)
      else this.#heads.set(name, ageMs)
    }
    this.#drawn = undefined
  }

  /** Notes the answer to a claim that covered these queues whole. */
  answered(asked: readonly string[], answer: Claimed): void {
    const { queue, heads } = answer
    this.onHeads(heads ?? [])
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
    if (queue !== undefined && this.#shards.entriesOf(queue) === 1 && isEmptied(queue, answer))
      this.#deniedBy({ queue }, queue)
    for (const denial of denialsIn(answer, this.#limited, this.#shards)) this.#deniedBy(denial, queue)
  }

  /** The queues found empty or denied: those to rest on. */
  get tried(): string[] {
    return [...this.#tried.keys()].filter((name) => !this.#left.has(name))
  }

  /** Ms until it may ask a queue again that it left to others; Infinity if there is none. */
  get backInMs(): number {
    return this.#left.size === 0
      ? Number.POSITIVE_INFINITY
      : Math.max(1, Math.min(...this.#left.values()) - this.#mono())
  }

  /** Leaves a queue to others for so long: a job of it was put back that they are to be rung for. */
  leave(queue: string, forMs: number): void {
    this.passOver(queue)
    this.#left.set(queue, this.#mono() + forMs)
  }

  /** Asks the queues again that it left to others for long enough. */
  return(): void {
    const back = [...this.#left].filter(([, until]) => until <= this.#mono()).map(([name]) => name)
    for (const name of back) this.#left.delete(name)
    if (back.length > 0) this.heard(back)
  }

  /** These queues may have work: they were rung, or something in them has fallen due. */
  heard(queues: readonly string[]): void {
    this.#drawn = undefined
    for (const name of queues) {
      this.#tried.delete(name)
      this.#rung.add(name)
    }
  }

  /**
   * A job of this queue was put back for another worker. This one asks the queue again after a rest, or after the turns
   * of other queues.
   */
  passOver(queue: string): void {
    this.#drawn = undefined
    this.#rung.delete(queue)
    if (this.#staying?.queue === queue) this.#staying = undefined
    this.#nothingIn({ queue })
  }

  /** Asks again as many quiet queues as fit one claim. It skips shut ones, which would be denied again. */
  sweep(): void {
    this.#drawn = undefined
    const now = this.#mono()
    const open = [...this.#tried].filter(([, { shutUntil }]) => shutUntil <= now)
    for (const [name] of open.slice(0, mostPerTrip)) this.#tried.delete(name)
  }

  /** A rest on the empty queues is over: the store would have rung if they had work. */
  rested(): void {
    this.#isBusy = false
    const at = this.#mono()
    for (const [name, tried] of this.#tried) this.#tried.set(name, { ...tried, at })
  }

  /** Any queue may have work. */
  again(): void {
    this.#drawn = undefined
    this.#tried.clear()
  }

  #nothingIn({ queue, forMs }: Denial): void {
    const at = this.#mono()
    const shutUntil = forMs === undefined ? Number.NEGATIVE_INFINITY : at + forMs
    // If groups are counted, jobs of other groups may arrive.
    const isWhole = this.#limited.isWhole(queue, 'throttled')
    this.#tried.set(queue, { at, shutUntil, shutForMs: isWhole ? this.#queueNamed(queue).longPollMs : 0 })
  }

  /** Another queue was `granted` jobs, so the next claim may ask this one too, unless that is known to be in vain. */
  #deniedBy(denial: Denial, granted: string | undefined): void {
    const { queue, forMs } = denial
    const isShut = forMs !== undefined && this.#limited.isWhole(queue, 'throttled')
    if (granted !== undefined && granted !== queue && !isShut) return
    this.#nothingIn(denial)
    if (this.#staying?.queue === queue) this.#staying = undefined
  }

  /** Whether asking again would be in vain: the queue is shut, by rules that are recent enough. */
  #isShut({ at, shutUntil, shutForMs }: Tried): boolean {
    return this.#mono() < Math.min(shutUntil, at + shutForMs)
  }

  /** After a grant all queues are asked again, if that costs no more trips than plain queues would. */
  #forgetCheap(): void {
    const names = [...this.#tried].filter(([, tried]) => !this.#isShut(tried)).map(([name]) => name)
    const fitOneTrip = names.reduce((sum, name) => sum + this.#shards.entriesOf(name), 0) <= mostPerTrip
    for (const name of names) if (fitOneTrip || this.#shards.entriesOf(name) === 1) this.#tried.delete(name)
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
    const open = this.#queues.filter(({ name }) => !this.#tried.has(name) && !this.#left.has(name))
    // A rung queue is asked in any case: nobody else was rung for it.
    const own = open.filter(({ name }) => this.#rung.has(name) || !this.#shards.isForOthers(name))
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

/** Whether the queue granted jobs, and no more are ready. */
function isEmptied(queue: string, { waits }: Claimed): boolean {
  return waits.some((wait) => wait.queue === queue && (wait.reason === 'empty' || wait.reason === 'scheduled'))
}

/** For each queue the age of its oldest head: an ordered queue has a head in each shard. */
function oldestHeads(heads: NonNullable<Claimed['heads']>): Map<string, number | undefined> {
  const oldest = new Map<string, number | undefined>()
  for (const { queue, ageMs } of heads) {
    const known = oldest.get(queue)
    oldest.set(queue, known === undefined || (ageMs ?? -1) > known ? ageMs : known)
  }
  return oldest
}

/** A queue has ready jobs that limits deny. */
interface Denial {
  readonly queue: string
  /** Ms until the limit opens by itself; absent if running jobs must end first. */
  readonly forMs?: number
}

/** The denials in a claim's answer. */
export function denialsIn(
  { waits }: Pick<Claimed, 'waits'>,
  limited: LimitedQueues,
  shards: Pick<ShardPicker, 'entriesOf'>,
): Denial[] {
  const denying = waits.filter(({ reason }) => reason === 'throttled' || reason === 'full')
  return [...new Set(denying.map(({ queue }) => queue))].flatMap((queue) => {
    const of = denying.filter((wait) => wait.queue === queue)
    const isWhole = of.some(({ reason }) => limited.isWhole(queue, reason as 'throttled' | 'full'))
    // The answer is silent about some of its shards: there may be jobs in them.
    const told = waits.filter((wait) => wait.queue === queue && wait.reason !== 'suspect')
    if (!isWhole && told.length < shards.entriesOf(queue)) return []
    const times = of.flatMap(({ reason, forMs }) => (reason === 'throttled' && forMs !== undefined ? [forMs] : []))
    return [times.length === 0 ? { queue } : { queue, forMs: Math.min(...times) }]
  })
}
