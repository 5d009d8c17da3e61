/**
 * The loop of the lease thread. It reads letters at its own tick while it keeps a lease, and sleeps without a timer
 * while it keeps none. It notices when the worker's loop has gone silent: it then writes a line, and lets leases go if
 * that lasts.
 */

import { write } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { JobRef } from '../../core/events.js'
import { messageOf } from '../../core/messages/describe.js'
import { systemRandom } from '../../core/platform/clock.js'
import { timerMs } from '../../core/platform/timer.js'
import type { Store } from '../../stores/contract/store.js'
import { LeaseBeats } from './lease-beats.js'
import {
  type Hello,
  type Letter,
  type Order,
  type SentLetter,
  sharedMono,
  type ThreadReport,
  tickMs,
} from './lease-messages.js'

/**
 * Follows the orders that come over `orders`, with a store of its own, which is opened after `openAfterMs`: a process
 * that has ended by then is spared a tenth of a second of processor time. Any error ends the thread: its keeper starts
 * another.
 */
export function runLeaseThread(orders: MessagePort, create: () => Promise<Store>, openAfterMs: number): void {
  let opening: Promise<Store> | undefined
  const opened = () => {
    opening ??= create()
    return opening
  }
  const report = (news: ThreadReport) => orders.postMessage(news.kind === 'failed' ? carried(news) : news)
  let loop: BeatLoop | undefined
  let up: Promise<unknown> | undefined

  const obey = async (order: Order) => {
    if (order.kind === 'hello') {
      loop = new BeatLoop(order, opened, report)
      up = delay(timerMs(openAfterMs), undefined, { ref: false }).then(async () => {
        // The keeper does not rely on a thread whose store has not answered.
        await (await opened()).depth([])
      })
      await up
      Atomics.store(order.up, 0, 1)
      report({ kind: 'up' })
    } else if (order.kind === 'wake') {
      await up
      loop!.wake()
    } else {
      loop!.stop()
      if (opening !== undefined) await (await opening).close()
      orders.close()
    }
  }
  orders.on('message', (order: Order) => {
    obey(order).catch((error: unknown) => {
      // Thrown outside any promise, so that it ends the thread whatever Node does with rejections.
      setImmediate(() => {
        throw error
      })
    })
  })
}

class BeatLoop {
  readonly #hello: Hello
  readonly #report: (news: ThreadReport) => void
  readonly #beats: LeaseBeats
  #watch: BlockWatch | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #block: { readonly jobs: readonly JobRef[]; givenUp: boolean } | undefined

  constructor(hello: Hello, connect: () => Promise<Store>, report: (news: ThreadReport) => void) {
    const { host, pid } = hello
    this.#hello = hello
    this.#report = report
    this.#beats = new LeaseBeats({ connect, mono: sharedMono, host, pid, report, announces: true })
  }

  wake(): void {
    if (this.#isStopped || this.#timer !== undefined) return
    this.#watch = new BlockWatch(sharedMono())
    // Anywhere in the first tick: the processes of a fleet that were woken together must not beat together.
    this.#timer = setTimeout(() => this.#tick(), systemRandom() * tickMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#beats.clear()
    this.#hello.letters.close()
  }

  #tick(): void {
    const heardAt = this.#read()
    const { latestBegun, aheadMs } = this.#hello
    this.#beats.begin(latestBegun[0]!, latestBegun[1]! + aheadMs)
    this.#watchLoop(heardAt)
    void this.#beats.tick()
    // When the keeper keeps a lease again it wakes this loop, for the loop itself reported that nothing is kept.
    this.#timer = this.#beats.size === 0 ? undefined : setTimeout(() => this.#tick(), tickMs)
  }

  #read(): number | undefined {
    const { letters } = this.#hello
    let heardAt: number | undefined
    for (let next = receiveMessageOnPort(letters); next !== undefined; next = receiveMessageOnPort(letters)) {
      const { letter, aheadMs } = next.message as SentLetter
      this.#beats.take(translated(letter, aheadMs))
      heardAt = letter.at + aheadMs
    }
    return heardAt
  }

  #watchLoop(heardAt: number | undefined): void {
    const { pid } = this.#hello
    const news = this.#watch!.tick(sharedMono(), heardAt, this.#beats.shortestMaxBlockMs)
    if (news === undefined) return
    if (news.kind === 'blocked') {
      this.#block = { jobs: this.#beats.running(), givenUp: false }
      this.#say(blockedLine(pid, news.forMs, this.#block.jobs))
    } else if (news.kind === 'given-up') {
      this.#block!.givenUp = true
      this.#say(givenUpLine(pid, news.forMs, this.#beats.giveUp(news.forMs)))
    } else {
      this.#report({ kind: 'blocked', forMs: Math.round(news.forMs), ...this.#block! })
      this.#block = undefined
    }
  }

  /** Without waiting: the loop may be blocked because nobody reads its output, and the beats must go on. */
  #say(line: string): void {
    if (this.#hello.blockedTo !== undefined) write(this.#hello.blockedTo, line, () => {})
  }
}

/** The letter with its instants on the shared clock. */
function translated({ kept, begun, renewed, ...letter }: Letter, aheadMs: number): Letter {
  return {
    ...letter,
    ...(kept && { kept: kept.map((batch) => ({ ...batch, sentAt: batch.sentAt + aheadMs })) }),
    ...(begun && { begun: begun.map(([number, at]) => [number, at + aheadMs] as const) }),
    ...(renewed && { renewed: renewed.map(({ leases, sentAt }) => ({ leases, sentAt: sentAt + aheadMs })) }),
  }
}

/** Errors lose their class and code between threads, or cannot be sent at all. */
function carried({ kind, error }: Extract<ThreadReport, { kind: 'failed' }>): ThreadReport {
  const code = (error as { code?: unknown } | null)?.code
  return { kind, error: { message: messageOf(error), ...(typeof code === 'string' ? { code } : {}) } }
}

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

/**
 * The block watch: concludes from the signs of life of an event loop that it is blocked. Pure; it knows neither loop
 * nor thread.
 */
export class BlockWatch {
  #tickedAt: number
  #silentMs = 0
  #reported: 'blocked' | 'given-up' | undefined
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
      if (this.#reported === undefined) return undefined
      this.#reported = undefined
      this.#givenUpMs = 0
      return { kind: 'back', forMs: silentMs }
    }
    this.#silentMs = silentMs
    if (this.#reported === undefined && silentMs > Math.min(longestSilenceMs, maxBlockMs / 2))
      return this.#tell('blocked')
    if (this.#reported === undefined || silentMs < maxBlockMs || maxBlockMs <= this.#givenUpMs) return undefined
    this.#givenUpMs = maxBlockMs
    return this.#tell('given-up')
  }

  #tell(kind: 'blocked' | 'given-up'): BlockNews {
    this.#reported = kind
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
