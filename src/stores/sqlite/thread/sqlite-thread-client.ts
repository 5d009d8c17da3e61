/**
 * The client of a SQLite store's thread. Calls of one tick travel to the thread together, and their answers come back
 * with the commit. The thread is started at the first call, keeps the process alive only while calls are under way, and
 * is started anew if it dies.
 */

import { Worker } from 'node:worker_threads'
import { ClosedError, hasCode, StoreUnavailableError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { entryFile, startFailure } from '../../../core/package-files.js'
import { Roster } from '../../../core/values/roster.js'
import { rebuilt } from '../file/sqlite-errors.js'
import { exitGate } from './exit-gate.js'
import type { OperationAnswer, OperationArgs, OperationName } from './sqlite-thread-api.js'
import type { Reply, Request, ThreadCall, ThreadSettings } from './sqlite-thread-messages.js'

/** How long closing waits for a thread that answers nothing: a disk may keep it in an uninterruptible call. */
const stuckMs = 5_000

interface Pending {
  resolve(value: unknown): void
  reject(error: unknown): void
}

type OperationCalls<Names extends OperationName> = {
  readonly [Name in Names]: (...args: OperationArgs<Name>) => Promise<OperationAnswer<Name>>
}

/** The part of a worker thread that the client uses. */
export interface Thread extends Pick<Worker, 'postMessage' | 'ref' | 'unref' | 'terminate'> {
  on(event: 'message', listener: (reply: Reply) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  once(event: 'exit', listener: () => void): unknown
}

/** Starts the thread of a store. Throws if it cannot be started. */
export type StartThread = (settings: ThreadSettings) => Thread

export class SqliteThreadClient {
  readonly #settings: ThreadSettings
  readonly #closingFlag = new Int32Array(new SharedArrayBuffer(4))
  readonly #onReply: (reply: Reply) => void
  readonly #pending = new Roster<number, Pending>()
  #outgoing: ThreadCall[] = []
  readonly #startThread: StartThread
  #thread: Thread | undefined
  #number = 0
  #closing: Promise<void> | undefined

  constructor(
    settings: Omit<ThreadSettings, 'closing'>,
    onReply: (reply: Reply) => void,
    startThread: StartThread = ownThread,
  ) {
    this.#startThread = startThread
    this.#settings = { ...settings, closing: this.#closingFlag }
    this.#onReply = onReply
  }

  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  refuseClosed(): void {
    if (this.isClosed) throw new ClosedError('the SQLite store')
  }

  call<Name extends OperationName>(name: Name, ...args: OperationArgs<Name>): Promise<OperationAnswer<Name>> {
    if (this.isClosed) return Promise.reject(new ClosedError('the SQLite store'))
    return new Promise((resolve, reject) => {
      const number = ++this.#number
      this.#pending.set(number, { resolve: resolve as (value: unknown) => void, reject })
      this.#outgoing.push([number, name, args])
      if (this.#outgoing.length === 1) process.nextTick(() => this.#post())
    })
  }

  /** These operations as functions. */
  calls<Name extends OperationName>(...names: readonly Name[]): OperationCalls<Name> {
    const calls = names.map((name) => [name, (...args: OperationArgs<Name>) => this.call(name, ...args)])
    return Object.fromEntries(calls) as OperationCalls<Name>
  }

  /**
   * Calls that were sent are finished first, unless another process holds the write lock. After half a second of that,
   * or if the thread answers nothing for five seconds, they are rejected with `StoreUnavailableError`.
   */
  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  #finish(): Promise<void> {
    this.#post()
    const thread = this.#thread
    if (thread === undefined) return Promise.resolve()
    thread.ref()
    Atomics.store(this.#closingFlag, 0, 1)
    thread.postMessage('close' satisfies Request)
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => {
        this.#lose(thread, new Error(`it answered nothing for ${stuckMs} ms`))
        thread.unref()
        void thread.terminate()
        resolve()
      }, stuckMs)
      // As long as the thread answers, it is not stuck.
      thread.on('message', () => giveUp.refresh())
      thread.once('exit', () => {
        clearTimeout(giveUp)
        resolve()
      })
    })
  }

  #post(): void {
    const calls = this.#outgoing
    this.#outgoing = []
    if (calls.length === 0) return
    let thread: Thread
    try {
      thread = this.#started()
    } catch (error) {
      // An error thrown from here would end the process.
      for (const [number] of calls) this.#settle(number)?.reject(this.#unstarted(error))
      return
    }
    thread.ref()
    try {
      thread.postMessage(calls satisfies Request)
    } catch {
      for (const call of calls) this.#postAlone(thread, call)
    }
  }

  /** If a value cannot be copied to another thread, only its own call fails. */
  #postAlone(thread: Thread, call: ThreadCall): void {
    try {
      thread.postMessage([call] satisfies Request)
    } catch (error) {
      this.#settle(call[0])?.reject(error)
    }
  }

  #started(): Thread {
    if (this.#thread !== undefined) return this.#thread
    const thread = this.#startThread(this.#settings)
    let cause: unknown
    let hasAnswered = false
    thread.on('message', (reply) => {
      hasAnswered = true
      this.#receive(reply)
    })
    thread.on('error', (error) => {
      cause = hasAnswered ? error : startFailure(entryFile('sqlite-thread.js'), error)
    })
    thread.on('exit', () => this.#lose(thread, cause))
    this.#thread = thread
    return thread
  }

  #unstarted(error: unknown): unknown {
    if (hasCode(error, 'package-bundled')) return error
    return new StoreUnavailableError(
      `the thread of the SQLite store '${this.#settings.file}' cannot be started: ${messageOf(error)}. Nothing was sent.`,
      { cause: error },
    )
  }

  #receive(reply: Reply): void {
    for (const [number, value, error] of reply.answers) {
      const pending = this.#settle(number)
      if (error === undefined) pending?.resolve(value)
      else pending?.reject(rebuilt(error))
    }
    this.#onReply(reply)
  }

  #settle(number: number): Pending | undefined {
    const pending = this.#pending.get(number)
    this.#pending.delete(number)
    if (this.#pending.size === 0 && !this.isClosed) this.#thread?.unref()
    return pending
  }

  #lose(thread: Thread, cause: unknown): void {
    if (this.#thread === thread) this.#thread = undefined
    const unsent = new Set(this.#outgoing.map(([number]) => number))
    for (const [number, { reject }] of this.#pending) {
      if (unsent.has(number)) continue
      this.#pending.delete(number)
      const why = cause instanceof Error ? `: ${cause.message}` : ''
      reject(
        hasCode(cause, 'package-bundled')
          ? cause
          : new StoreUnavailableError(
              `the thread of the SQLite store '${this.#settings.file}' ended while the call was under way${why}. What was asked may be sent again.`,
              { cause },
            ),
      )
    }
  }
}

function ownThread(settings: ThreadSettings): Thread {
  // The thread shares the gate that exists when it is started.
  exitGate()
  return new Worker(entryFile('sqlite-thread.js'), {
    workerData: settings,
    name: 'millrace-sqlite',
    // The options of the main thread (loaders, inspectors) are not for this one.
    execArgv: [],
  })
}
