/**
 * `millrace work` as users run it: the supervisor and its processes on the ground of a drill, with a log of handler
 * calls.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { type Duration, type Mill, millrace } from 'millrace'
import { type Ground, type OpenGround, sqliteGround } from '../ground.js'
import { hazards } from './hazards.config.js'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export type Line = Readonly<Record<string, unknown>>

const command = join(import.meta.dirname, '../../dist/cli/main.js')
const config = join(import.meta.dirname, 'hazards.config.ts')
const lookMs = 20

/** A place for one scenario: the ground, a mill to enqueue with, and the commands started on it. */
export class Supervised {
  readonly ground: Ground
  readonly mill: Mill
  readonly #log: string
  readonly #env: NodeJS.ProcessEnv
  readonly #works: Work[] = []

  private constructor(ground: Ground, lease: Duration & string) {
    this.ground = ground
    const { store } = ground
    this.#log = join(ground.folder, 'handlers.log')
    this.#env = { ...process.env, HAZARD_STORE: JSON.stringify(store), HAZARD_LEASE: lease, HAZARD_LOG: this.#log }
    this.mill = millrace({ store, ...hazards(lease) })
  }

  static async on(open: OpenGround = sqliteGround, lease: Duration & string = '3s'): Promise<Supervised> {
    return new Supervised(await open(), lease)
  }

  /** Starts `millrace work` and resolves when `processes` of its workers have started. */
  async work(
    args: readonly string[] = [],
    { processes = 1, env = {} }: { processes?: number; env?: NodeJS.ProcessEnv } = {},
  ) {
    const work = new Work(['--processes', String(processes), ...args], { ...this.#env, ...env })
    this.#works.push(work)
    await work.events('worker.started', processes)
    return work
  }

  /** The lines of the handlers: the call, the id of the job and the pid. */
  handlerCalls(what: string): { id: string; pid: number }[] {
    if (!existsSync(this.#log)) return []
    return readFileSync(this.#log, 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .flatMap(([kind, id, pid]) => (kind === what ? [{ id: id!, pid: Number(pid) }] : []))
  }

  /** Resolves when `condition` holds. It is checked again and again. */
  async until(condition: () => boolean | Promise<boolean>, what: string, withinMs = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms\n${this.said()}`)
      await delay(lookMs)
    }
  }

  /** The last output of the commands. */
  said(): string {
    return this.#works.map(({ output }) => output.slice(-30).join('\n')).join('\n--\n')
  }

  async close(): Promise<void> {
    for (const work of this.#works) await work.kill()
    await this.mill.close()
    await this.ground.close()
  }
}

/** One `millrace work --json`. */
export class Work {
  readonly output: string[] = []
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  readonly #lines: Line[] = []

  constructor(args: readonly string[], env: NodeJS.ProcessEnv, configFile = config) {
    this.#child = spawn(process.execPath, [command, 'work', '--config', configFile, '--json', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    createInterface({ input: this.#child.stderr! }).on('line', (line) => this.output.push(line))
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.output.push(line)
      this.#lines.push(JSON.parse(line) as Line)
    })
    this.ended = once(this.#child, 'exit').then(([code, signal]) => ({ code, signal }) as Ended)
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** The output about this event so far. */
  said(event: string): Line[] {
    return this.#lines.filter((line) => line['event'] === event)
  }

  /** The first `count` lines about this event, as soon as they exist. */
  async events(event: string, count = 1, withinMs = 30_000): Promise<Line[]> {
    const deadline = performance.now() + withinMs
    while (this.said(event).length < count) {
      if (performance.now() > deadline || this.#child.exitCode !== null)
        throw new Error(`no ${count} × ${event}; it said:\n${this.output.slice(-40).join('\n')}`)
      await delay(lookMs)
    }
    return this.said(event).slice(0, count)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Sends a signal. Resolves to how the command ended, and after how long. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended & { readonly ms: number }> {
    const at = performance.now()
    this.signal(signal)
    return { ...(await this.ended), ms: performance.now() - at }
  }

  /** Ends the command in any state. Its processes stop by themselves. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGTERM')
    const isOver = await Promise.race([this.ended.then(() => true), delay(5_000).then(() => false)])
    if (isOver) return
    // A second signal ends the processes too.
    this.#child.kill('SIGTERM')
    await this.ended
  }
}
