/**
 * The lease thread as the lease keeper holds it: the keeper starts it, sends it messages, and starts it again if it
 * dies.
 */

import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import { endsWithin } from '../with-timeout.js'
import {
  type Hello,
  type Letter,
  type Order,
  type Report,
  type SentLetter,
  sharedMono,
  type ThreadReport,
} from './lease-messages.js'

interface LeaseThreadParts {
  readonly startThread: () => Worker
  readonly hello: Omit<Hello, 'kind' | 'letters' | 'up' | 'aheadMs'>
  /** The clock of the letters. The thread cannot see it; every instant is translated on its way. */
  readonly mono: () => number
  readonly report: (report: Report) => void
  /** It was started and can receive letters. It keeps nothing yet. */
  readonly onStart: () => void
  /** It has died, whether or not it was up, and is started again after `retryMs`. */
  readonly onDeath: (error: unknown, retryMs: number) => void
}

const firstRetryMs = 1_000
/** A thread that cannot live costs a start now and then, not one each second for ever. */
const mostRetryMs = 60_000
/** How long a stop waits for the thread to close its store, and then for its forced end. */
const closeMs = 500
const endMs = 400
/**
 * How long a stop first waits for a thread that is not up yet: cutting off a thread that loads a driver aborts the
 * process.
 */
const startMs = 10_000

export class LeaseThread {
  readonly #parts: LeaseThreadParts
  #worker: Worker | undefined
  #letters: MessagePort | undefined
  #up = new Int32Array(new SharedArrayBuffer(4))
  /** Leases in the thread once it has read every letter. While there are none it sleeps, or is about to. */
  #keeping = 0
  #deaths = 0
  #retry: NodeJS.Timeout | undefined
  #started: (() => void) | undefined

  constructor(parts: LeaseThreadParts) {
    this.#parts = parts
  }

  /** Whether it has reported that it renews its leases. */
  get isUp(): boolean {
    return this.#worker !== undefined && Atomics.load(this.#up, 0) === 1
  }

  /** Resolves when the thread is up, or has died and will be started again. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#started = resolve
      this.#spawn()
    })
  }

  /** Does nothing while there is no thread. A thread that is not up yet reads its letters once it is. */
  post(letter: Letter): void {
    if (this.#letters === undefined) return
    this.#letters.postMessage({ letter, aheadMs: this.#ahead() } satisfies SentLetter)
    const wasKeeping = this.#keeping
    for (const { first, last } of letter.kept ?? []) this.#keeping += last - first + 1
    for (const { first, last } of letter.forgotten ?? []) this.#keeping -= last - first + 1
    // After the letter, so that the woken thread finds it.
    if (wasKeeping === 0 && this.#keeping > 0) this.#order({ kind: 'wake' })
  }

  /** Ends it within a second, by force if its store hangs; if it is not up yet, once it is. */
  async stop(): Promise<void> {
    clearTimeout(this.#retry)
    this.#started?.()
    const worker = this.#worker
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const isUp = this.isUp
    const up = new Promise<void>((resolve) =>
      worker.on('message', ({ kind }: ThreadReport) => kind === 'up' && resolve()),
    )
    this.#order({ kind: 'stop' })
    this.#forget()
    worker.ref()
    if (!isUp) await endsWithin(startMs, Promise.race([up, ended]))
    if (await endsWithin(closeMs, ended)) return
    await endsWithin(endMs, worker.terminate())
  }

  #spawn(): void {
    let worker: Worker
    try {
      worker = this.#parts.startThread()
    } catch (error) {
      this.#died(error)
      return
    }
    const { port1, port2 } = new MessageChannel()
    this.#worker = worker
    this.#letters = port1
    this.#up = new Int32Array(new SharedArrayBuffer(4))
    this.#keeping = 0
    let cause: unknown
    worker.on('message', (report: ThreadReport) => this.#onReport(report))
    worker.once('error', (error) => {
      cause = error
    })
    worker.once('exit', (code) => {
      if (this.#worker === worker) this.#died(cause ?? new Error(`the lease thread ended with code ${code}`))
    })
    const hello = { kind: 'hello', ...this.#parts.hello, letters: port2, up: this.#up, aheadMs: this.#ahead() } as const
    worker.postMessage(hello satisfies Order, [port2])
    this.#parts.onStart()
  }

  #onReport(report: ThreadReport): void {
    if (this.#worker === undefined) return
    if (report.kind === 'up') {
      this.#deaths = 0
      // The kept leases keep the process alive, not the thread.
      this.#worker.unref()
      this.#started?.()
    } else if (report.kind === 'renewed') {
      const ahead = this.#ahead()
      const { sentAt, answeredAt } = report
      this.#parts.report({ ...report, sentAt: sentAt - ahead, answeredAt: answeredAt - ahead })
    } else {
      this.#parts.report(report.kind === 'failed' ? { ...report, error: rebuilt(report.error) } : report)
    }
  }

  #died(error: unknown): void {
    this.#forget()
    const retryMs = Math.min(firstRetryMs * 2 ** this.#deaths, mostRetryMs)
    this.#deaths += 1
    this.#retry = setTimeout(() => this.#spawn(), retryMs).unref()
    this.#parts.onDeath(error, retryMs)
    this.#started?.()
  }

  #forget(): void {
    this.#letters?.close()
    this.#letters = undefined
    this.#worker = undefined
  }

  #order(order: Order): void {
    this.#worker?.postMessage(order)
  }

  /** How far the shared clock is ahead of ours. */
  #ahead(): number {
    return sharedMono() - this.#parts.mono()
  }
}

function rebuilt(error: unknown): Error {
  const { message, ...code } = error as { message: string; code?: string }
  return Object.assign(new Error(message), code)
}
