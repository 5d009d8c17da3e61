/** The site of a drill with long jobs: a store, the workers started on it, and the log that the handlers keep. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, type Mill, millrace } from 'millrace'
import { Work } from './supervised.js'

const config = join(import.meta.dirname, 'long.config.ts')

/** As their producers know them. */
export const steady = defineTask({ name: 'steady', queue: 'long' })
export const blank = defineTask({ name: 'blank', queue: 'long' })

/** What a handler has written: `begun` or `ended`, and when, by the machine's clock. */
export interface Entry {
  readonly what: string
  readonly id: string
  readonly pid: number
  readonly at: number
}

export class LongSite {
  readonly folder = mkdtempSync(join(tmpdir(), 'millrace-long-'))
  readonly mill: Mill
  readonly #env: NodeJS.ProcessEnv
  readonly #log = join(this.folder, 'handlers.log')
  readonly #works: Work[] = []

  /** `store`: a URL; on SQLite a file of its own where it is absent. */
  constructor(lease: string, store?: string) {
    const url = store ?? `sqlite:${join(this.folder, 'jobs.db')}`
    this.#env = { ...process.env, MILLRACE_STORE: url, LONG_LOG: this.#log, LONG_LEASE: lease }
    this.mill = millrace({ store: url, queues: { long: { lease } }, tasks: [steady, blank] })
  }

  /** Resolves when its worker takes jobs. */
  async work(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Work> {
    const work = new Work(args, { ...this.#env, ...env }, config)
    this.#works.push(work)
    await work.events('worker.started')
    return work
  }

  entries(): Entry[] {
    if (!existsSync(this.#log)) return []
    const lines = readFileSync(this.#log, 'utf8').trimEnd().split('\n')
    return lines
      .map((line) => line.split(' '))
      .map(([what, id, pid, at]) => ({ what: what!, id: id!, pid: Number(pid), at: Number(at) }))
  }

  async close(): Promise<void> {
    for (const work of this.#works) await work.kill()
    await this.mill.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Kills the worker process of a supervisor, which starts another; resolves when that takes jobs. */
export async function killWorker(work: Work): Promise<void> {
  const started = work.said('worker.started')
  process.kill(started.at(-1)!['pid'] as number, 'SIGKILL')
  await work.events('worker.started', started.length + 1, 60_000)
}

/** The most that were at work at one moment. */
export function mostAtOnce(entries: readonly Entry[]): number {
  let [running, most] = [0, 0]
  for (const { what } of entries.toSorted((a, b) => a.at - b.at || (a.what === 'ended' ? -1 : 1))) {
    running += what === 'begun' ? 1 : -1
    most = Math.max(most, running)
  }
  return most
}
