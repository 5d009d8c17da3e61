/**
 * The drill of the chains: parents die between their calls, some of them real processes by SIGKILL. Each child must
 * exist exactly once.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace, type QueueAdmin, type QueueDepth } from 'millrace'
import { type Chain, logOf } from './chain-log.js'

/** The outcome for one kind of parent. */
export interface ChainsSeen {
  readonly kind: 'parent' | 'apart'
  /** Runs of the parent. All of them were killed, except the last. */
  readonly runs: number
  /** Children that should exist, children that ran, and children that ran under more than one id. */
  readonly wanted: number
  readonly ran: number
  readonly repeated: number
  /** Completed children, as the store counts them. */
  readonly completed: number
  readonly seconds: number
}

const jiti = '--import=jiti/register'
const longestMs = 900_000

/** The tasks as their producers know them. */
const parent = defineTask({ name: 'parent', queue: 'parents' })
const apart = defineTask({ name: 'apart', queue: 'apart', isolate: 'process', module: import.meta.url })

/** Runs one parent of each kind on the store at this URL. By default that is a new SQLite file. */
export async function chains(chain: Chain, store?: string): Promise<ChainsSeen[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chains-'))
  const url = store ?? `sqlite:${join(folder, 'jobs.db')}`
  const env = { ...process.env, MILLRACE_STORE: url, CHAIN_FOLDER: folder }
  const crew = [new Lasting(['parents'], env), new Lasting(['apart', 'children'], env)]
  const queues = { parents: { maxCrashes: 1_000 }, children: {} }
  const mill = millrace({ store: url, queues, tasks: [parent, apart], tasksElsewhere: ['child'] })
  try {
    const seen: ChainsSeen[] = []
    for (const task of [parent, apart]) {
      const startedAt = performance.now()
      const before = await mill.queue('children').depth()
      const job = await mill.enqueue(task, chain)
      const runs = (await job.result({ timeout: longestMs })) as number
      const completed = (await drained(mill.queue('children'))).processed - before.processed
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      seen.push({ kind: task.name, runs, completed, ...childrenOf(job.id, folder, chain), seconds })
    }
    return seen
  } finally {
    await Promise.all(crew.map((one) => one.end()))
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A worker process that is started again whenever it dies. */
class Lasting {
  readonly #queues: readonly string[]
  readonly #env: NodeJS.ProcessEnv
  #process: ChildProcess
  #isOver = false

  constructor(queues: readonly string[], env: NodeJS.ProcessEnv) {
    this.#queues = queues
    this.#env = env
    this.#process = this.#start()
  }

  #start(): ChildProcess {
    const started = fork(join(import.meta.dirname, 'chain-worker.ts'), this.#queues, {
      env: this.#env,
      execArgv: [jiti],
    })
    started.once('exit', () => {
      if (!this.#isOver) this.#process = this.#start()
    })
    return started
  }

  async end(): Promise<void> {
    this.#isOver = true
    const running = this.#process
    const ended = once(running, 'exit')
    running.kill('SIGTERM')
    await ended
  }
}

async function drained(queue: QueueAdmin): Promise<QueueDepth> {
  let left = await queue.depth()
  for (; left.ready + left.running > 0; left = await queue.depth()) await delay(50)
  return left
}

/** The children, according to their own records. */
function childrenOf(
  parent: string,
  folder: string,
  { children }: Chain,
): Pick<ChainsSeen, 'wanted' | 'ran' | 'repeated'> {
  const ids = new Map<string, Set<string>>()
  for (const line of readFileSync(logOf(folder, 'children'), 'utf8').trimEnd().split('\n')) {
    const [id, input] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
    if (JSON.parse(input).of === parent) ids.set(input, (ids.get(input) ?? new Set()).add(id))
  }
  const repeated = [...ids.values()].filter(({ size }) => size > 1).length
  return { wanted: children + 2 * Math.floor(children / 5), ran: ids.size, repeated }
}
