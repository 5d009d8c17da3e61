/** The crew of everything: worker processes of two versions of the package, which are killed, stopped, relieved and replaced. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forkedProgram } from '../forked-program.js'
import { monotonicMs } from './effect-lines.js'
import type { EverythingWord } from './everything-worker.js'

/** A process did nothing from the one instant to the other; a killed one to the end of time. */
export interface Halt {
  readonly pid: number
  readonly kind: 'kill' | 'stop'
  readonly from: number
  readonly until: number
}

export interface Leave {
  readonly pid: number
  readonly at: number
}

const mostStarts = 30
const betweenStartsMs = 1_000

export class EverythingCrew {
  readonly halts: Halt[] = []
  /** When each process was told to leave in order. */
  readonly leaves: Leave[] = []
  readonly failedCalls = new Map<string, number>()
  refused = 0
  /** Processes that ended although nobody had told them to. */
  readonly deaths: string[] = []
  /** How many processes each version had. */
  readonly started = new Map<string, number>()
  readonly #workers = new Set<ChildProcess>()
  readonly #held = new Set<ChildProcess>()
  readonly #version: () => string

  /** `version`: the folder of the package that the next process is to use. */
  constructor(version: () => string) {
    this.#version = version
  }

  /** Starts a worker; again if it ends before it is ready, as one does whose changed schedule a full store refuses. */
  async start(): Promise<void> {
    for (let tries = 1; !(await this.#started()); tries += 1) {
      if (tries === mostStarts) throw new Error(`a worker did not start in ${mostStarts} tries`)
      await delay(betweenStartsMs)
    }
  }

  async #started(): Promise<boolean> {
    const version = this.#version()
    this.started.set(version, (this.started.get(version) ?? 0) + 1)
    const worker = forkedProgram(join(import.meta.dirname, 'everything-worker.ts'), [], {
      env: { EVERYTHING_PACKAGE: join(version, 'dist/index.js') },
    })
    worker.on('message', (word: EverythingWord) => this.#hear(word))
    const ready = new Promise<void>((resolve) => {
      worker.on('message', ({ kind }: EverythingWord) => {
        if (kind === 'ready') resolve()
      })
    })
    worker.once('exit', (code, signal) => {
      if (this.#workers.delete(worker)) this.deaths.push(`${worker.pid} ended with ${code ?? signal}`)
    })
    const died = once(worker, 'exit').then(() => false)
    const isReady = await Promise.race([ready.then(() => true), died])
    if (isReady) this.#workers.add(worker)
    else this.failedCalls.set('start', (this.failedCalls.get('start') ?? 0) + 1)
    return isReady
  }

  #hear(word: EverythingWord): void {
    if (word.kind === 'refused') this.refused += 1
    if (word.kind !== 'failed') return
    // Told by their beginnings: the rest names ports and keys.
    const what = word.call.slice(0, 100)
    this.failedCalls.set(what, (this.failedCalls.get(what) ?? 0) + 1)
  }

  async killOne(random: () => number): Promise<void> {
    const victim = this.#oneOf(random)
    if (victim === undefined) return
    this.#kill(victim)
    await this.start()
  }

  /** As when the machine loses its power. */
  async killAll(): Promise<void> {
    const victims = [...this.#workers].filter((worker) => !this.#held.has(worker))
    for (const victim of victims) this.#kill(victim)
    for (const _ of victims) await this.start()
  }

  #kill(victim: ChildProcess): void {
    this.#workers.delete(victim)
    victim.kill('SIGKILL')
    this.halts.push({ pid: victim.pid!, kind: 'kill', from: monotonicMs(), until: Number.POSITIVE_INFINITY })
  }

  async stopOne(random: () => number, ms: number): Promise<void> {
    const victim = this.#oneOf(random)
    if (victim === undefined) return
    this.#held.add(victim)
    const from = monotonicMs()
    victim.kill('SIGSTOP')
    await delay(ms)
    this.halts.push({ pid: victim.pid!, kind: 'stop', from, until: monotonicMs() })
    victim.kill('SIGCONT')
    this.#held.delete(victim)
  }

  /** One leaves in order; another comes, before it has gone. */
  async relieveOne(random: () => number): Promise<void> {
    const leaving = this.#oneOf(random)
    if (leaving === undefined) return
    this.#workers.delete(leaving)
    this.leaves.push({ pid: leaving.pid!, at: monotonicMs() })
    leaving.kill('SIGTERM')
    await Promise.all([once(leaving, 'exit'), this.start()])
  }

  #oneOf(random: () => number): ChildProcess | undefined {
    const going = [...this.#workers].filter((worker) => !this.#held.has(worker))
    return going[Math.floor(random() * going.length)]
  }

  async end(): Promise<void> {
    const leaving = [...this.#workers]
    this.#workers.clear()
    await Promise.all(
      leaving.map(async (worker) => {
        const gone = once(worker, 'exit')
        this.leaves.push({ pid: worker.pid!, at: monotonicMs() })
        worker.kill('SIGTERM')
        await gone
      }),
    )
  }

  kill(): void {
    for (const worker of this.#workers) worker.kill('SIGKILL')
    this.#workers.clear()
  }
}
