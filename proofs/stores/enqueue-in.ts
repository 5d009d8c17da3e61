/** Orders and their jobs, written by processes of which many are killed, and the judgement of both afterwards. */

import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { defineTask, type Mill, millrace } from 'millrace'
import { forkedProgram } from '../forked-program.js'
import { type ProducerDriver, type ProducerWord, type Round, roundOf, ship } from './enqueue-in-words.js'

export interface EnqueueInOutcome {
  /** The number of rounds by how they ended. */
  readonly rounds: Readonly<Record<Round['end'], number>>
  readonly orders: number
  /** Jobs that ran. */
  readonly ran: number
  /** Committed orders whose job never ran, and jobs whose order was never committed. */
  readonly withoutJob: readonly string[]
  readonly withoutOrder: readonly string[]
  readonly ranTwice: readonly string[]
  /** Findings of fsck other than `ok`. */
  readonly findings: readonly string[]
}

/** Runs `rounds` rounds in one process after the other, while a worker of this process runs the jobs. */
export async function orders(driver: ProducerDriver, rounds: number, seed: number): Promise<EnqueueInOutcome> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-enqueue-in-'))
  const file = join(folder, 'jobs.db')
  const ran: string[] = []
  const task = defineTask({ name: ship.name, queue: ship.queue, run: async (order) => void ran.push(order as string) })
  const mill = millrace({ store: `sqlite:${file}`, tasks: [task] })
  try {
    await mill.ready()
    const db = new DatabaseSync(file, { timeout: 30_000 })
    db.exec('CREATE TABLE orders (id TEXT PRIMARY KEY)')
    const worker = mill.worker()
    await worker.start()
    for (let next = 0; next < rounds; ) next = await produce({ file, driver, seed, from: next, to: rounds })
    await idle(mill)
    await worker.stop()
    const committed = (db.prepare('SELECT id FROM orders').all() as { id: string }[]).map(({ id }) => id)
    db.close()
    const [hasRun, isCommitted] = [new Set(ran), new Set(committed)]
    const counts = { commit: 0, rollback: 0, savepoint: 0, refused: 0, alone: 0, kill: 0 }
    for (let number = 0; number < rounds; number += 1) counts[roundOf(seed, number).end] += 1
    const check = (await (await mill.health())?.check()) ?? []
    return {
      rounds: counts,
      orders: committed.length,
      ran: hasRun.size,
      withoutJob: committed.filter((id) => !hasRun.has(id)),
      withoutOrder: [...hasRun].filter((id) => !isCommitted.has(id)),
      ranTwice: ran.filter((id, i) => ran.indexOf(id) !== i),
      findings: check.filter(({ level }) => level !== 'ok').map(({ text }) => text),
    }
  } finally {
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Resolves to the number of the next round after this process. */
async function produce(settings: { readonly to: number; readonly [name: string]: unknown }): Promise<number> {
  let last = 0
  const producer = forkedProgram(join(import.meta.dirname, 'enqueue-in-producer.ts'), [JSON.stringify(settings)])
  producer.on('message', ({ begun }: ProducerWord) => {
    last = begun
  })
  const [code, signal] = await once(producer, 'exit')
  if (signal === 'SIGKILL') return last + 1
  if (code !== 0) throw new Error(`a producer ended with ${code ?? signal}`)
  return settings.to
}

async function idle(mill: Mill): Promise<void> {
  for (let looks = 0; looks < 1_000; looks += 1) {
    const [depth] = await mill.depths([ship.queue])
    if (depth!.ready + depth!.running + depth!.scheduled === 0) return
    await delay(20)
  }
  throw new Error('jobs are left that nobody runs')
}

/**
 * Measures how long an idle worker of this process takes to start a job that nobody rang for: another process commits
 * and is killed with SIGKILL right after. The time starts when this process learns of the death.
 */
export async function unrungStarts(count: number): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-unrung-'))
  const file = join(folder, 'jobs.db')
  let started: () => void = () => {}
  const task = defineTask({ name: ship.name, queue: ship.queue, run: async () => started() })
  const mill = millrace({ store: `sqlite:${file}`, tasks: [task] })
  try {
    await mill.ready()
    new DatabaseSync(file).exec('CREATE TABLE orders (id TEXT PRIMARY KEY)')
    await mill.worker().start()
    const times: number[] = []
    // Only rounds that are killed right after their commit.
    for (let number = 0; times.length < count; number += 1) {
      const { end, at } = roundOf(0, number)
      if (end !== 'kill' || at !== 3) continue
      const start = new Promise<number>((resolve) => {
        started = () => resolve(performance.now())
      })
      await produce({ file, driver: '@photostructure/sqlite', seed: 0, from: number, to: number + 1 })
      // The process was killed just before this process learnt of it.
      const deadAt = performance.now()
      times.push((await start) - deadAt)
    }
    return times
  } finally {
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
