/** Waiting on a SQLite store: for a queue that may have a job, for jobs to end, or for schedules to change. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { JobKey } from '../contract/job-records.js'
import { SqliteBell } from './bell/sqlite-bell.js'
import { SqliteWakeTokens, scheduleBell, tokenName } from './bell/sqlite-wake-token.js'
import type { SqliteThreadClient } from './thread/sqlite-thread-client.js'
import type { Reply } from './thread/sqlite-thread-messages.js'

/** The longest timer there is; whoever waits longer just looks once more in between. */
const longestTimerMs = 0x7fffffff
/** How long a job that a look comes upon is left to whoever was rung for it. */
const graceMs = 200
/** Least time between two looks for ended jobs: a busy store rings hundreds of times a second. */
const resultGapMs = 5

export class SqliteWait {
  readonly #inbox: SqliteThreadClient
  readonly #queues: SqliteBell
  readonly #results: SqliteBell
  readonly #tokens: SqliteWakeTokens

  constructor(file: string, inbox: SqliteThreadClient) {
    this.#inbox = inbox
    const dataVersion = () => inbox.call('dataVersion')
    this.#queues = new SqliteBell(file, 'queues', dataVersion)
    this.#results = new SqliteBell(file, 'results', dataVersion)
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** A commit of this process needs no watch to be noticed. */
  told(reply: Reply): void {
    for (const queue of reply.rung) this.#queues.ring(tokenName(queue))
    if (reply.hasEnds) this.#results.ring('ended')
    if (reply.hasMessages) this.#results.ring('messages')
  }

  /** Of what a connection of the user's has committed. */
  ring(queues: readonly string[]): void {
    this.#putBack(queues)
    for (const queue of queues) this.#queues.ring(tokenName(queue))
  }

  close(): void {
    this.#queues.close()
    this.#results.close()
  }

  async forQueues(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    const answer = await this.#rungOf(queues, forMs, signal)
    if (!signal.aborted && !this.#inbox.isClosed) return answer
    // Whoever asked has turned away: another one who waits is to have these.
    this.#putBack(answer)
    return []
  }

  async #rungOf(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    const until = performance.now() + forMs
    const byToken = new Map(queues.map((queue) => [tokenName(queue), queue]))
    const ear = new Ringing()
    let rung: string | undefined
    let mustLook = true
    let mayChange = true
    // A commit of our own changes no `data_version`: a ring that another one took, and may never answer, is looked after.
    let isUnanswered = false
    const take = (queue: string) => {
      // One is enough: the next is for somebody else.
      if (rung !== undefined || !this.#tokens.take(queue)) return
      rung = queue
      ear.ring()
    }
    const stop = await this.#queues.listen({
      rung(name) {
        const queue = byToken.get(name)
        if (queue === undefined) return
        isUnanswered = true
        take(queue)
      },
      look(hasChanged) {
        if (!hasChanged && !mayChange && !isUnanswered) return
        isUnanswered = false
        for (const queue of queues) take(queue)
        mustLook = true
        ear.ring()
      },
    })
    // Of rings that nobody waited for: with the token gone the next ring is heard, and the first look answers these.
    let missed = queues.filter((queue) => this.#tokens.take(queue))
    let isSure = true
    try {
      while (rung === undefined) {
        if (this.#inbox.isClosed) return missed
        if (mustLook) {
          mustLook = false
          const { found, changes } = await this.#inbox.call('peek', queues, missed)
          if (found.length > 0 && isSure) return rung === undefined ? found : [...new Set([rung, ...found])]
          missed = []
          mayChange = changes
          // Somebody else may be about to take it: later only what is there at a second look is worth waking up for.
          isSure = found.length > 0
          if (!isSure) continue
          await ear.heard(Math.min(graceMs, until - performance.now()), signal)
          mustLook = true
        } else if (!(await ear.heard(until - performance.now(), signal))) return []
        if (signal.aborted || performance.now() >= until) break
      }
      return rung === undefined ? [] : [rung]
    } catch (error) {
      this.#putBack(rung === undefined ? missed : [rung, ...missed])
      throw error
    } finally {
      stop()
    }
  }

  #putBack(queues: Iterable<string>): void {
    for (const queue of queues) this.#tokens.put(queue)
  }

  /** Resolves when a schedule was written, after `forMs`, or when aborted. */
  async forSchedules(forMs: number, signal: AbortSignal): Promise<void> {
    const ear = new Ringing()
    const take = () => {
      if (this.#tokens.take(scheduleBell)) ear.ring()
    }
    const stop = await this.#queues.listen({
      rung(name) {
        if (name === tokenName(scheduleBell)) take()
      },
      look: () => (this.#inbox.isClosed ? ear.ring() : take()),
    })
    // A ring that nobody waited for.
    take()
    try {
      await ear.heard(forMs, signal)
    } finally {
      stop()
    }
  }

  /** Calls `ring` when there may be live messages, until the function it resolves with is called. */
  listenForMessages(ring: () => void): Promise<() => void> {
    return this.#results.listen({
      rung: (name) => name !== 'ended' && ring(),
      look: (hasChanged) => hasChanged && ring(),
    })
  }

  async forResults(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    const until = performance.now() + forMs
    const ear = new Ringing()
    const stop = await this.#results.listen({
      rung: (name) => name !== 'messages' && ear.ring(),
      look: (hasChanged) => hasChanged && ear.ring(),
    })
    try {
      for (;;) {
        if (this.#inbox.isClosed) return []
        const ended = await this.#inbox.call('ended', jobs)
        if (ended.length > 0) return ended
        if (!(await ear.heard(until - performance.now(), signal))) return []
        await sleep(resultGapMs, undefined, { signal }).catch(() => {})
      }
    } finally {
      stop()
    }
  }
}

/** One waiter's ear: a ring that comes while he is busy is heard when he listens next. */
export class Ringing {
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
