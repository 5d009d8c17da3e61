/**
 * A herd: many idle connections on one SQLite file, one job at a time, and the number of connections that wake up for
 * it.
 */

import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { forkedProgram, killed } from '../forked-program.js'

export interface HerdPlan {
  readonly processes: number
  /** Connections of each process. Each has a thread of its own, as that of a worker process. */
  readonly handlesEach: number
  /** Jobs. Each is enqueued when all connections wait. */
  readonly rounds: number
}

export interface HerdOutcome {
  readonly connections: number
  /** Claims of all connections that began between the enqueue of a job and its settle. */
  readonly claims: readonly number[]
  /** All claims of the round, including those after the settle. */
  readonly claimsInAll: readonly number[]
  /** From before the enqueue to the answer of the claim that got the job. */
  readonly wakeMs: readonly number[]
  /** CPU time per connection and second while nothing happens. */
  readonly idleCpuMs: number
  /** Resident memory of the largest process. */
  readonly rssMb: number
}

/**
 * The messages of a process of the herd: a job was settled, or the answer to a question, with all its claims so far.
 */
export type HerdWord =
  | { readonly kind: 'settled'; readonly claimedAt: number; readonly at: number }
  | {
      readonly kind: 'told'
      readonly waiting: number
      readonly claimsAt: number[]
      readonly cpuMs: number
      readonly rssMb: number
    }

type Told = Extract<HerdWord, { kind: 'told' }>

export const herdQueue: QueueSettings = { name: 'herd', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }

/** The time of a clock that all processes of the machine share, in ms. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

const idleMs = 2_000
const withinMs = 60_000

export async function herd({ processes, handlesEach, rounds }: HerdPlan): Promise<HerdOutcome> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-herd-'))
  const file = join(folder, 'jobs.db')
  const store = new SqliteStore({ file })
  const children: ChildProcess[] = []
  const connections = processes * handlesEach
  try {
    await store.open([herdQueue])
    for (let i = 0; i < processes; i += 1) children.push(startChild(file, handlesEach))
    await allWait(children, connections)
    const before = await askAll(children)
    await delay(idleMs)
    const after = await askAll(children)
    const idleCpuMs = (cpuOf(after) - cpuOf(before)) / connections / (idleMs / 1_000)

    const [claims, claimsInAll, wakeMs]: number[][] = [[], [], []]
    for (let round = 0; round < rounds; round += 1) {
      const settled = firstSettled(children)
      const enqueuedAt = machineMs()
      const job = { id: `job-${round}`, task: 'herd', payload: '{}', priority: 0, rememberMs: 0 }
      await store.enqueue([{ callId: job.id, queue: herdQueue.name, jobs: [job] }])
      const { claimedAt, at } = await settled
      await allWait(children, connections)
      const claimsAt = (await askAll(children)).flatMap((told) => told.claimsAt).filter((ms) => ms >= enqueuedAt)
      claimsInAll!.push(claimsAt.length)
      claims!.push(claimsAt.filter((ms) => ms <= at).length)
      wakeMs!.push(claimedAt - enqueuedAt)
    }
    const rssMb = Math.max(...(await askAll(children)).map((told) => told.rssMb))
    return { connections, claims: claims!, claimsInAll: claimsInAll!, wakeMs: wakeMs!, idleCpuMs, rssMb }
  } finally {
    await Promise.all(children.map(killed))
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

function startChild(file: string, handles: number): ChildProcess {
  const child = forkedProgram(join(import.meta.dirname, 'herd-worker.ts'), [file, String(handles)])
  // One listener for each open question.
  child.setMaxListeners(0)
  return child
}

/** Resolves when each connection waits and has looked before it waits. */
async function allWait(children: readonly ChildProcess[], connections: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const waiting = (await askAll(children)).reduce((sum, told) => sum + told.waiting, 0)
    if (waiting === connections) return
    if (performance.now() > deadline) throw new Error(`only ${waiting} of ${connections} connections wait`)
    await delay(20)
  }
}

function askAll(children: readonly ChildProcess[]): Promise<Told[]> {
  return Promise.all(
    children.map((child) => {
      const told = word(child, 'told')
      child.send('tell')
      return told
    }),
  )
}

function firstSettled(children: readonly ChildProcess[]): Promise<Extract<HerdWord, { kind: 'settled' }>> {
  return Promise.race(children.map((child) => word(child, 'settled')))
}

/** The next message of this kind. Rejects if the process ends first. */
function word<Kind extends HerdWord['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<HerdWord, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const hear = (word: HerdWord) => {
      if (word.kind !== kind) return
      done()
      resolve(word as Extract<HerdWord, { kind: Kind }>)
    }
    const lose = () => {
      done()
      reject(new Error('a process of the herd ended'))
    }
    const done = () => child.off('message', hear).off('exit', lose)
    child.on('message', hear).on('exit', lose)
  })
}

function cpuOf(told: readonly Told[]): number {
  return told.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
}
