/**
 * The context of a mill's handlers: the value of its `context`, opened before the first job of a process and closed after
 * the last.
 */

import { ConfigError, ContextError } from '../core/errors.js'
import { messageOf } from '../core/messages/describe.js'
import type { Clock, Random } from '../core/platform/clock.js'
import { formatDuration } from '../core/values/duration.js'
import { onceThere } from '../runtime/outage.js'
import { endsWithin } from '../runtime/with-timeout.js'

/** Less than the time that the process of an isolated job has to begin. */
const tryForMs = 30_000
/** How long a close waits for it to open. */
const openingMs = 5_000

/** A start that waits for the context. */
interface ContextWait {
  /** Whether nobody waits any more. */
  readonly isOver: () => boolean
  /** Called with each failure; `retryMs` undefined: it is not tried again. */
  readonly failed: (error: unknown, retryMs: number | undefined) => void
}

export class HandlerContext {
  readonly #make: (() => unknown) | undefined
  readonly #clock: Pick<Clock, 'mono'>
  readonly #random: Random
  /** Resolves with the value of the call of `context` that was made last; undefined if it is closed. */
  #opening: Promise<unknown> | undefined
  #opened: { readonly value: unknown } | undefined

  constructor(make: (() => unknown) | undefined, clock: Pick<Clock, 'mono'>, random: Random) {
    this.#make = make
    this.#clock = clock
    this.#random = random
  }

  /** What `context` has returned. Throws `ConfigError` if there is none. */
  get value(): unknown {
    if (this.#opened !== undefined) return this.#opened.value
    const message =
      this.#make === undefined
        ? 'must be given, as a handler reads ctx.context: `context: async () => ({ db })`'
        : 'was not opened in this process, which runs no handlers of its own'
    throw new ConfigError('the mill', [{ path: 'context', message }])
  }

  /** Opens it, unless it is open: tries again, and waits, for half a minute. Then throws `ContextError`. */
  async ready({ isOver, failed }: ContextWait): Promise<void> {
    const from = this.#clock.mono()
    const spentMs = () => this.#clock.mono() - from
    const mayMend = () => spentMs() < tryForMs
    const open = async () => {
      const isOpen = await endsWithin(Math.max(0, tryForMs - spentMs()), this.open())
      if (!isOpen) throw new Error('the promise that `context` returned has not settled')
    }
    try {
      await onceThere(open, { isOver, random: this.#random, failed, mayMend })
    } catch (error) {
      failed(error, undefined)
      throw new ContextError(formatDuration(Math.round(spentMs())), messageOf(error), { cause: error })
    }
  }

  /** Opens it, unless it is open. All who ask meanwhile share one call. Throws the error of `context`. */
  async open(): Promise<void> {
    if (this.#make === undefined) return
    this.#opening ??= this.#open(this.#make)
    await this.#opening
  }

  #open(make: () => unknown): Promise<unknown> {
    const opening = (async () => make())()
    // One that was closed meanwhile is no longer the context: another may be open.
    const isCurrent = () => this.#opening === opening
    opening.then(
      (value) => {
        if (isCurrent()) this.#opened = { value }
      },
      () => {
        if (isCurrent()) this.#opening = undefined
      },
    )
    return opening
  }

  /**
   * Closes it, if it is open; the next `open` opens another. One that has been opening for longer than a moment is closed
   * once it is open. Throws the errors of its disposal.
   */
  async close(): Promise<void> {
    const opening = this.#opening
    // Its value stays: a handler that was given up may still look at it.
    this.#opening = undefined
    if (opening === undefined) return
    const closed = opening.then(disposed, () => {})
    const isOpened = opening.catch(() => {})
    if (await endsWithin(openingMs, isOpened)) await closed
    else closed.catch(() => {})
  }
}

async function disposed(value: unknown): Promise<void> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now } = value as Partial<AsyncDisposable & Disposable>
  await (later ?? now)?.call(value)
}
