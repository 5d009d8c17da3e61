/**
 * The limits drill: worker processes on one queue with a bound on its running jobs and one with a bound per group. They
 * are killed again and again with work in hand; then all at once. The audit shows the bounds, and how soon they can be
 * used whole again.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace, type StoreDescriptor } from 'millrace'
import type { AuditEntry } from 'millrace/store-testing'
import { Crew, leaseMs } from '../crew.js'
import { type OpenGround, sqliteGround } from '../ground.js'

export interface LimitsPlan {
  readonly processes: number
  /** How many workers are killed with SIGKILL. Each is replaced at once. */
  readonly kills: number
  readonly killedAtOnce: number
  readonly random: () => number
}

export interface LimitsOutcome {
  readonly seconds: number
  readonly kills: number
  readonly claims: number
  /** The largest number of current claims, of the bounded queue and of any group. */
  readonly mostRunning: number
  readonly mostInGroup: number
  /** From the death of all workers until as many claims as the bounds allow are current again. */
  readonly wholeAgainMs: number
}

export const maxRunning = 6
export const perGroup = 2
const groups = ['a', 'b', 'c', 'd', 'e']
/** At least this number of jobs wait, so that only the bounds hold claims back. */
const backlog = 60
const lookMs = 20

export const bounded = defineTask({ name: 'bounded', queue: 'bounded' })
/** The group is the first letter of the id. */
export const shared = defineTask({ name: 'shared', queue: 'shared' })
export const limitedQueues = {
  bounded: { maxRunning, lease: leaseMs, maxCrashes: 100 },
  shared: { maxRunning: { perGroup }, lease: leaseMs, maxCrashes: 100 },
} as const

export async function drillLimits(plan: LimitsPlan, open: OpenGround = sqliteGround): Promise<LimitsOutcome> {
  const ground = await open()
  const { store } = ground
  const mill = millrace({ store, tasks: [bounded, shared], queues: limitedQueues })
  const crew = new Crew('throttles/limits-worker.ts', [JSON.stringify(store)])
  const isOver = new AbortController()
  try {
    await mill.depths()
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: plan.processes }, () => crew.start()))
    const produced = { count: 0 }
    const producing = produce(mill, produced, isOver.signal)
    // If the drill fails, its own error is reported.
    producing.catch(() => {})
    for (let killed = 0; killed < plan.kills; killed += plan.killedAtOnce) {
      await Promise.all(Array.from({ length: plan.killedAtOnce }, () => crew.killOne(plan.random)))
    }
    const seconds = (performance.now() - startedAt) / 1_000
    crew.kill()
    const wholeAgainMs = await wholeAgain(mill, store, plan.processes, produced.count)
    isOver.abort()
    await producing
    const audit = await ground.audit()
    const kills = crew.faults.length
    return { seconds, kills, wholeAgainMs, ...judged(audit) }
  } finally {
    isOver.abort()
    crew.kill()
    await mill.close()
    await ground.close()
  }
}

async function produce(mill: Mill, produced: { count: number }, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    for (const { queue, ready } of await mill.depths()) {
      const task = queue === bounded.queue ? bounded : shared
      const missing = Array.from({ length: Math.max(0, backlog - ready) }, () => produced.count++)
      await mill.enqueueMany(task, missing, (input) => {
        const group = groups[Number(input) % groups.length]!
        return task === shared ? { id: `${group}-${input}`, group } : {}
      })
    }
    await delay(lookMs)
  }
}

/**
 * Starts workers that nobody kills. They take as much as they may, and keep the jobs that arrived since. First they
 * finish the jobs that the dead workers left: suspects run alone in a process, which takes nothing else meanwhile.
 */
async function wholeAgain(
  mill: Mill,
  store: StoreDescriptor,
  processes: number,
  producedBefore: number,
): Promise<number> {
  const diedAt = performance.now()
  const survivors = new Crew('throttles/limits-worker.ts', [JSON.stringify(store), String(producedBefore)])
  try {
    await Promise.all(Array.from({ length: processes }, () => survivors.start()))
    for (;;) {
      const running = (await mill.depths()).reduce((sum, depth) => sum + depth.running, 0)
      if (running === maxRunning + perGroup * groups.length) return performance.now() - diedAt
      if (performance.now() - diedAt > 60_000) return Number.POSITIVE_INFINITY
      await delay(lookMs)
    }
  } finally {
    survivors.kill()
  }
}

/** The entries of the audit are in the order in which the store acted. */
function judged(audit: readonly AuditEntry[]): Pick<LimitsOutcome, 'claims' | 'mostRunning' | 'mostInGroup'> {
  const running = new Map<string, number>()
  let [claims, mostRunning, mostInGroup] = [0, 0, 0]
  for (const { queue, id, from, to } of audit) {
    const what = queue === bounded.queue ? queue : `group ${id[0]}`
    const by = Number(to === 'running') - Number(from === 'running')
    const now = (running.get(what) ?? 0) + by
    running.set(what, now)
    claims += Math.max(0, by)
    if (queue === bounded.queue) mostRunning = Math.max(mostRunning, now)
    else mostInGroup = Math.max(mostInGroup, now)
  }
  return { claims, mostRunning, mostInGroup }
}
