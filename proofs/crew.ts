/** The crew: the worker processes of a run, some of which are killed, stopped or relieved. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forkedProgram } from './forked-program.js'

/** The messages of a worker to its parent. */
export type WorkerWord =
  | { readonly kind: 'ready'; readonly worker: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly call: string }
  | { readonly kind: 'slowest'; readonly ms: number }

/** A short lease, so that jobs of a killed worker are back before the run is over. */
export const leaseMs = 3_000
/** The duration of a stop, in leases: the least and the most. */
export type StopLeases = readonly [least: number, most: number]
const usualStop: StopLeases = [1.2, 2]
/** How often at most, and how far apart, a fault looks for a worker with something in hand. */
const [mostLooks, lookMs] = [1_000, 20]

export interface Fault {
  readonly kind: 'kill' | 'stop'
  readonly worker: string
  readonly at: number
  /** The time at which a stopped worker was continued. */
  endedAt?: number
}

export class Crew {
  readonly failedCalls: string[] = []
  longestWaitMs = 0
  refused = 0
  readonly faults: Fault[] = []
  readonly #program: string
  readonly #args: readonly string[]
  readonly #holdsAny: (worker: string) => Promise<boolean>
  readonly #passed: () => Promise<void>
  readonly #workers = new Map<ChildProcess, string>()
  readonly #stopped = new Set<ChildProcess>()

  /**
   * `program` is the path of a file from this folder, started with `args`. It says when it is ready, and ends on SIGTERM.
   * `holdsAny` says whether a worker holds anything, according to the store; kills and stops hit only such workers.
   * `passed` is called after a worker that held nothing was continued. Only then may the caller write to the store: a
   * stopped worker may have its write lock.
   */
  constructor(
    program: string,
    args: readonly string[],
    holdsAny: (worker: string) => Promise<boolean> = async () => true,
    passed: () => Promise<void> = async () => {},
  ) {
    this.#program = program
    this.#args = args
    this.#holdsAny = holdsAny
    this.#passed = passed
  }

  async start(): Promise<void> {
    const worker = forkedProgram(join(import.meta.dirname, this.#program), [...this.#args])
    this.#workers.set(worker, '')
    const ready = new Promise<void>((resolve) => {
      worker.on('message', (word: WorkerWord) => {
        if (word.kind === 'ready') {
          this.#workers.set(worker, word.worker)
          resolve()
        } else this.#hear(word)
      })
    })
    await Promise.race([ready, once(worker, 'exit').then(() => Promise.reject(new Error('a worker did not start')))])
  }

  #hear(word: Exclude<WorkerWord, { kind: 'ready' }>): void {
    if (word.kind === 'failed') this.failedCalls.push(word.call)
    else if (word.kind === 'refused') this.refused += 1
    else this.longestWaitMs = Math.max(this.longestWaitMs, word.ms)
  }

  async killOne(random: () => number): Promise<void> {
    const { victim } = await this.#halted('kill', random)
    this.#workers.delete(victim)
    victim.kill('SIGKILL')
    await Promise.all([once(victim, 'exit'), this.start()])
  }

  async stopOne(random: () => number, [least, most] = usualStop): Promise<void> {
    const { victim, fault } = await this.#halted('stop', random)
    this.#stopped.add(victim)
    await delay(leaseMs * (least + random() * (most - least)))
    fault.endedAt = Date.now()
    victim.kill('SIGCONT')
    this.#stopped.delete(victim)
  }

  /** Stops a worker before it looks, so that the worker still holds its jobs when the fault hits it. */
  async #halted(kind: Fault['kind'], random: () => number): Promise<{ victim: ChildProcess; fault: Fault }> {
    for (let looks = 0; looks < mostLooks; looks += 1) {
      const victim = this.#oneOf(random)
      const worker = this.#workers.get(victim)!
      const at = Date.now()
      this.#stopped.add(victim)
      victim.kill('SIGSTOP')
      const isHit = await this.#holdsAny(worker)
      this.#stopped.delete(victim)
      if (isHit) {
        const fault: Fault = { kind, worker, at }
        this.faults.push(fault)
        return { victim, fault }
      }
      victim.kill('SIGCONT')
      await this.#passed()
      await delay(lookMs)
    }
    throw new Error(`no worker had anything in hand in ${mostLooks} looks`)
  }

  /** Lets one worker end in order, after the jobs that it has begun. Another replaces it. */
  async relieveOne(random: () => number): Promise<void> {
    const leaving = this.#oneOf(random)
    this.#workers.delete(leaving)
    leaving.kill('SIGTERM')
    await Promise.all([once(leaving, 'exit'), this.start()])
  }

  #oneOf(random: () => number): ChildProcess {
    // A starting worker is left alone: its starter reports its death.
    const ready = [...this.#workers].filter(([, name]) => name !== '').map(([worker]) => worker)
    const going = ready.filter((worker) => !this.#stopped.has(worker))
    return going[Math.floor(random() * going.length)]!
  }

  async end(): Promise<void> {
    await Promise.all(
      [...this.#workers.keys()].map(async (worker) => {
        if (worker.exitCode !== null || worker.signalCode !== null) return
        worker.kill('SIGTERM')
        await once(worker, 'exit')
      }),
    )
  }

  kill(): void {
    for (const worker of this.#workers.keys()) worker.kill('SIGKILL')
  }
}
