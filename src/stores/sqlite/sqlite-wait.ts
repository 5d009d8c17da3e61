/** Waiting on a SQLite store: for a queue that may have a job, for jobs to end, or for schedules to change. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { JobKey } from '../contract/job-records.js'
import { SqliteBell } from './sqlite-bell.js'
import { SqliteWakeTokens, scheduleBell, tokenName } from './sqlite-wake-token.js'
import type { SqliteThreadClient } from './thread/sqlite-thread-client.js'
import type { Reply } from './thread/sqlite-thread-messages.js'

/** The longest timer there is. A longer wait looks once more in between. */
const longestTimerMs = 0x7fffffff
/** How long a job that a look finds is left to the waiter that was rung for it. */
const graceMs = 200
/** The least time between two looks for ended jobs: a busy store rings hundreds of times a second. */
const resultGapMs = 5
/** The most jobs that one call looks for. Its thread does the other calls of the store in between. */
const mostLooked = 1_000

export class SqliteWait {
  readonly #thread: SqliteThreadClient
  readonly #queues: SqliteBell
  readonly #results: SqliteBell
  readonly #tokens: SqliteWakeTokens

  constructor(file: string, thread: SqliteThreadClient) {
    this.#thread = thread
    const dataVersion = () => thread.call('dataVersion')
    this.#queues = new SqliteBell(file, 'queues', dataVersion)
    this.#results = new SqliteBell(file, 'results', dataVersion)
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** Rings the waiters of this process for one of its own commits, which need no watch to be noticed. */
  told(reply: Reply): void {
    for (const queue of reply.rung) this.#queues.ring(tokenName(queue))
    if (reply.hasEnds) this.#results.ring('ended')
    if (reply.hasMessages) this.#results.ring('messages')
  }

  /** Rings queues for a commit on a user's connection. */
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
    if (!signal.aborted && !this.#thread.isClosed) return answer
    // The caller has gone away: another waiter must get these.
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
    // A commit of our own does not change `data_version`. So a ring that another waiter took, and may never answer,
    // makes the next look a real one.
    let isUnanswered = false
    const take = (queue: string) => {
      // One is enough: the next is for another waiter.
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
    // Rings for which nobody waited. Once their tokens are gone, the next ring is heard; the first look answers these.
    let missed = queues.filter((queue) => this.#tokens.take(queue))
    let isSure = true
    try {
      while (rung === undefined) {
        if (this.#thread.isClosed) return missed
        if (mustLook) {
          mustLook = false
          const { found, changes } = await this.#thread.call('peek', queues, missed)
          if (found.length > 0 && isSure) return rung === undefined ? found : [...new Set([rung, ...found])]
          missed = []
          mayChange = changes
          // Another waiter may be about to take the job. From now on, only a job that is still there at a second look
          // ends the wait.
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
      look: () => (this.#thread.isClosed ? ear.ring() : take()),
    })
    // A ring for which nobody waited.
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
        if (this.#thread.isClosed) return []
        const ended = await this.#endedOf(jobs)
        if (ended.length > 0) return ended
        if (!(await ear.heard(until - performance.now(), signal))) return []
        await sleep(resultGapMs, undefined, { signal }).catch(() => {})
      }
    } finally {
      stop()
    }
  }

  async #endedOf(jobs: readonly JobKey[]): Promise<JobKey[]> {
    const ended: JobKey[] = []
    for (let from = 0; from < jobs.length && !this.#thread.isClosed; from += mostLooked)
      ended.push(...(await this.#thread.call('ended', jobs.slice(from, from + mostLooked))))
    return ended
  }
}

/** The ear of one waiter: a ring that comes while the waiter is busy is heard when it listens next. */
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
