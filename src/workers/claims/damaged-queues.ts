/** The damaged queues of a claimer: the store cannot use them and leaves them out. Each look at them is reported. */

import type { Events } from '../../core/events.js'
import type { ClaimFrom } from '../../stores/contract/claim.js'
import type { Damage } from '../../stores/contract/damage.js'

interface Known extends Damage {
  /** When the store looks at it again, on the monotonic clock. */
  readonly until: number
}

export class DamagedQueues {
  readonly #served: readonly string[]
  readonly #events: Events
  readonly #mono: () => number
  readonly #known = new Map<string, Known>()

  /** `served`: all queues of the claimer. */
  constructor(served: readonly string[], events: Events, mono: () => number) {
    this.#served = served
    this.#events = events
    this.#mono = mono
  }

  /** Queues with a shard that is left out. */
  get names(): string[] {
    return [...new Set([...this.#known.values()].map(({ queue }) => queue))]
  }

  /** Ms until one is worth asking again; Infinity if none is damaged. */
  get dueInMs(): number {
    if (this.#known.size === 0) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(...[...this.#known.values()].map(({ until }) => until)) - this.#mono())
  }

  /** Notes the damage that a claim on `from` reported. Throws a damage's error if no usable queue is left. */
  told(from: readonly ClaimFrom[], damaged: readonly Damage[] = []): void {
    if (this.#known.size === 0 && damaged.length === 0) return
    const now = this.#mono()
    const named = new Set(damaged.map(nameOf))
    const mended = [...this.#known].filter(([name, known]) => !named.has(name) && from.some(asks(known)))
    for (const one of damaged) this.#note(one, now)
    for (const [name, { queue }] of mended) this.#mend(name, queue)
    const whole = [...this.#known.values()].filter(({ isWhole }) => isWhole)
    if (this.#served.every((name) => whole.some(({ queue }) => queue === name))) throw whole[0]!.error
  }

  #note(damage: Damage, now: number): void {
    const { queue, shard, error, forMs } = damage
    const before = this.#known.get(nameOf(damage))
    this.#known.set(nameOf(damage), { ...damage, until: now + forMs })
    // Known from the last look, and not asked since.
    const isOld = before !== undefined && (forMs === 0 || before.until > now)
    if (!isOld) this.#events.emit('queue.damaged', { queue, shard, error, retryMs: forMs })
  }

  #mend(name: string, queue: string): void {
    this.#known.delete(name)
    for (const [other, known] of this.#known)
      if (known.queue === queue) this.#known.set(other, { ...known, isWhole: false })
    if (!this.names.includes(queue)) this.#events.emit('queue.mended', { queue })
  }
}

function asks(known: Damage) {
  return ({ queue, shard }: ClaimFrom) => queue === known.queue && (shard === undefined || shard === known.shard)
}

function nameOf({ queue, shard }: Damage): string {
  return `${queue} ${shard}`
}
