/**
 * The block watch: concludes from the signs of life of an event loop that it is blocked. Pure; it knows neither loop
 * nor thread.
 */

import type { JobRef } from '../../core/events.js'
import { tickMs } from './lease-messages.js'

interface BlockNews {
  /**
   * `'given-up'`: silent for `maxBlockMs`; reported again if that has become longer and is over too. `'back'`: a sign
   * of life after a reported block.
   */
  readonly kind: 'blocked' | 'given-up' | 'back'
  readonly forMs: number
}

/** A longer silence is reported; or half of `maxBlockMs`, if that is shorter. */
const longestSilenceMs = 5_000
const mostNamed = 5

export class BlockWatch {
  #tickedAt: number
  #silentMs = 0
  #told: 'blocked' | 'given-up' | undefined
  /** The longest `maxBlockMs` that was reported to be over. */
  #givenUpMs = 0

  constructor(now: number) {
    this.#tickedAt = now
  }

  /** `heardAt`: the loop's latest sign of life, if there was one since the last tick. */
  tick(now: number, heardAt: number | undefined, maxBlockMs: number): BlockNews | undefined {
    // A stopped process, or a machine that slept, silences the watch too: only the time awake counts.
    const awakeMs = Math.min(now - this.#tickedAt, tickMs)
    const silentMs = this.#silentMs + awakeMs
    this.#tickedAt = now
    if (heardAt !== undefined) {
      this.#silentMs = Math.min(Math.max(now - heardAt, 0), awakeMs)
      if (this.#told === undefined) return undefined
      this.#told = undefined
      this.#givenUpMs = 0
      return { kind: 'back', forMs: silentMs }
    }
    this.#silentMs = silentMs
    if (this.#told === undefined && silentMs > Math.min(longestSilenceMs, maxBlockMs / 2)) return this.#tell('blocked')
    if (this.#told === undefined || silentMs < maxBlockMs || maxBlockMs <= this.#givenUpMs) return undefined
    this.#givenUpMs = maxBlockMs
    return this.#tell('given-up')
  }

  #tell(kind: 'blocked' | 'given-up'): BlockNews {
    this.#told = kind
    return { kind, forMs: this.#silentMs }
  }
}

/** One line for the person who reads the output of a process that cannot speak for itself. */
export function blockedLine(pid: number, forMs: number, jobs: readonly JobRef[]): string {
  const named = jobs.slice(0, mostNamed).map(({ queue, id, task }) => `${queue}/${id} (${task})`)
  const more = jobs.length > mostNamed ? [`and ${jobs.length - mostNamed} more`] : []
  const inHand = jobs.length === 0 ? 'No handler has begun.' : `In hand: ${[...named, ...more].join(', ')}.`
  return line(pid, forMs, `The leases of its jobs are kept for now. ${inHand}`)
}

export function givenUpLine(pid: number, forMs: number, leases: number): string {
  const given =
    leases === 1
      ? '1 lease is let go, and its job runs elsewhere'
      : `${leases} leases are let go, and their jobs run elsewhere`
  return line(pid, forMs, `That is longer than maxBlock: ${given}.`)
}

function line(pid: number, forMs: number, rest: string): string {
  const text = `millrace: the event loop of process ${pid} has been blocked for ${(forMs / 1_000).toFixed(1)} s. ${rest}`
  // Users choose ids, which may hold control characters of a terminal.
  return `${text.replace(/\p{Cc}/gu, '�')}\n`
}
