/** The damaged queues of a claimer: those that the store cannot use and leaves out, told of whenever they were looked at. */

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

  /** `served`: all queues that the claimer asks. */
  constructor(served: readonly string[], events: Events, mono: () => number) {
    this.#served = served
    this.#events = events
    this.#mono = mono
  }

  /** Queues with a shard that is left out. */
  get names(): string[] {
    return [...new Set([...this.#known.values()].map(({ queue }) => queue))]
  }

  /** In how many ms one is worth asking again; Infinity where none is damaged. */
  get dueInMs(): number {
    if (this.#known.size === 0) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(...[...this.#known.values()].map(({ until }) => until)) - this.#mono())
  }

  /** A claim that asked `from` was told of these. Throws the error of one where no queue is left that can be used. */
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
    // Known since the last look: it has not been asked since.
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
