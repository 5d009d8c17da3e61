/** The site of a drill with long jobs: a store, the workers started on it, and the log of the handlers. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { type Duration, defineTask, type Mill, millrace } from 'millrace'
import { Work } from '../workers/supervised.js'

const config = join(import.meta.dirname, 'long.config.ts')

/** The tasks as their producers know them. */
export const steady = defineTask({ name: 'steady', queue: 'long' })
export const bound = defineTask({ name: 'bound', queue: 'long' })
export const deaf = defineTask({ name: 'deaf', queue: 'long' })
export const dying = defineTask({ name: 'dying', queue: 'long' })
export const blank = defineTask({ name: 'blank', queue: 'long' })

/** An entry of a handler: `begun`, `told` (to stop) or `ended`, and the time by the machine's clock. */
export interface Entry {
  readonly what: string
  readonly id: string
  readonly pid: number
  readonly at: number
  /** The start of the handler's process. */
  readonly bornAt: number
}

export class LongSite {
  readonly folder = mkdtempSync(join(tmpdir(), 'millrace-long-'))
  readonly mill: Mill
  readonly store: string
  readonly #env: NodeJS.ProcessEnv
  readonly #log = join(this.folder, 'handlers.log')
  readonly #works: Work[] = []

  /** `store` is a URL. By default the store is a SQLite file of its own. */
  constructor(lease: Duration & string, store?: string) {
    const url = store ?? `sqlite:${join(this.folder, 'jobs.db')}`
    this.store = url
    this.#env = { ...process.env, MILLRACE_STORE: url, LONG_LOG: this.#log, LONG_LEASE: lease }
    this.mill = millrace({ store: url, queues: { long: { lease } }, tasks: [steady, bound, deaf, dying, blank] })
  }

  /** Starts `millrace work` and resolves when its worker takes jobs. */
  async work(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Work> {
    const work = new Work(args, { ...this.#env, ...env }, config)
    this.#works.push(work)
    await work.events('worker.started')
    return work
  }

  /** Kills the command and its worker with SIGKILL and starts it again. Resolves when the new worker takes jobs. */
  async restarted(work: Work, args: readonly string[]): Promise<Work> {
    const [started] = work.said('worker.started')
    work.signal('SIGKILL')
    process.kill(started!['pid'] as number, 'SIGKILL')
    await work.ended
    return this.work(args)
  }

  /** The first `count` entries of this kind, as soon as they exist. */
  async written(what: string, count: number, withinMs = 60_000): Promise<Entry[]> {
    for (const until = performance.now() + withinMs; ; await delay(20)) {
      const entries = this.entries().filter((entry) => entry.what === what)
      if (entries.length >= count) return entries.slice(0, count)
      if (performance.now() > until) throw new Error(`no ${count} × ${what} within ${withinMs} ms`)
    }
  }

  entries(): Entry[] {
    if (!existsSync(this.#log)) return []
    const lines = readFileSync(this.#log, 'utf8').trimEnd().split('\n')
    return lines
      .map((line) => line.split(' '))
      .map(([what, id, pid, at, bornAt]) => {
        return { what: what!, id: id!, pid: Number(pid), at: Number(at), bornAt: Number(bornAt) }
      })
  }

  /** Stops the group. A process that is stopped inside SQLite keeps the lock of the file: that one is stopped again. */
  async halt(group: number): Promise<void> {
    for (;;) {
      process.kill(-group, 'SIGSTOP')
      if (!this.store.startsWith('sqlite:') || isFree(this.store.slice('sqlite:'.length))) return
      process.kill(-group, 'SIGCONT')
      await delay(20)
    }
  }

  async close(): Promise<void> {
    for (const work of this.#works) await work.kill()
    await this.mill.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Whether somebody else can write to the file now. */
function isFree(file: string): boolean {
  const database = new DatabaseSync(file, { timeout: 500 })
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    return false
  } finally {
    database.close()
  }
}

/** Kills the worker process of a supervisor, which starts another. Resolves when the new one takes jobs. */
export async function killWorker(work: Work): Promise<void> {
  const started = work.said('worker.started')
  process.kill(started.at(-1)!['pid'] as number, 'SIGKILL')
  await work.events('worker.started', started.length + 1, 60_000)
}

/** The largest number of jobs that ran at one moment. */
export function mostAtOnce(entries: readonly Entry[]): number {
  let [running, most] = [0, 0]
  for (const { what } of entries.toSorted((a, b) => a.at - b.at || (a.what === 'ended' ? -1 : 1))) {
    running += what === 'begun' ? 1 : -1
    most = Math.max(most, running)
  }
  return most
}
