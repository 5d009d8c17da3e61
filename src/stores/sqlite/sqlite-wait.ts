/** Waiting on a SQLite store: for a queue that may have a job, or for jobs to end. */

import { setTimeout as sleep } from 'node:timers/promises'
import { SqliteBell } from './sqlite-bell.js'
import type { SqliteInbox } from './sqlite-inbox.js'
import type { Reply } from './sqlite-message.js'

/** The longest timer there is; whoever waits longer just looks once more in between. */
const longestTimerMs = 0x7fffffff
/** Least time between two looks for ended jobs: a busy store rings hundreds of times a second. */
const resultGapMs = 5

type JobKey = { readonly queue: string; readonly id: string }

export class SqliteWait {
  readonly #inbox: SqliteInbox
  readonly #queues: SqliteBell
  readonly #results: SqliteBell

  constructor(file: string, inbox: SqliteInbox) {
    this.#inbox = inbox
    const dataVersion = () => inbox.call<number>('dataVersion')
    this.#queues = new SqliteBell(file, 'queues', dataVersion)
    this.#results = new SqliteBell(file, 'results', dataVersion)
  }

  /** A commit of this process needs no watch to be noticed. */
  told(reply: Reply): void {
    if (reply.rung.length > 0) this.#queues.ring(new Set(reply.rung.map((name) => name.toLowerCase())))
    if (reply.hasEnds) this.#results.ring(new Set())
  }

  close(): void {
    this.#queues.close()
    this.#results.close()
  }

  async forQueues(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    const until = performance.now() + forMs
    const rung = new Set<string>()
    let mustLook = true
    const bell = new Ringing()
    const stop = await this.#queues.listen((names) => {
      if (names === undefined) mustLook = true
      else for (const name of queues) if (names.has(name.toLowerCase())) rung.add(name)
      if (mustLook || rung.size > 0) bell.ring()
    })
    try {
      for (;;) {
        if (rung.size > 0) return [...rung]
        if (mustLook) {
          mustLook = false
          if (this.#inbox.isClosed) return []
          const found = await this.#inbox.call<string[]>('peek', queues)
          if (found.length > 0) return found
          continue
        }
        if (!(await bell.heard(until - performance.now(), signal))) return []
      }
    } finally {
      stop()
    }
  }

  async forResults(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    const until = performance.now() + forMs
    const bell = new Ringing()
    const stop = await this.#results.listen(() => bell.ring())
    try {
      for (;;) {
        if (this.#inbox.isClosed) return []
        const ended = await this.#inbox.call<JobKey[]>('ended', jobs)
        if (ended.length > 0) return ended
        if (!(await bell.heard(until - performance.now(), signal))) return []
        await sleep(resultGapMs, undefined, { signal }).catch(() => {})
      }
    } finally {
      stop()
    }
  }
}

/** One waiter's ear: a ring that comes while he is busy is heard when he listens next. */
class Ringing {
  #isRung = false
  #wake: (() => void) | undefined

  ring(): void {
    this.#isRung = true
    this.#wake?.()
  }

  /** True when rung, false after `forMs` or when aborted. */
  async heard(forMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isRung && forMs > 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', done)
          this.#wake = undefined
          resolve()
        }
        const timer = setTimeout(done, Math.min(forMs, longestTimerMs))
        signal.addEventListener('abort', done)
        this.#wake = done
      })
    }
    const isRung = this.#isRung
    this.#isRung = false
    return isRung
  }
}
