/**
 * Contention: several worker processes on one store, some of them killed or stopped, and the judgement of the audit
 * afterwards.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace, type QueueDepth } from 'millrace'
import { type AuditEntry, auditBreaches } from 'millrace/store-testing'
import { EnqueueManyError, StoreUnavailableError } from '#src/core/errors.js'
import { attack } from '../attack.js'
import { Crew, type Fault, leaseMs } from '../crew.js'
import { type OpenGround, sqliteGround } from '../ground.js'

export interface ContentionPlan {
  readonly jobs: number
  readonly processes: number
  /** The average time of a job. By default most jobs take no time. */
  readonly jobMs?: number
  /** How many workers are killed with SIGKILL during the work. Each is replaced at once. */
  readonly kills: number
  /** How many workers are stopped with SIGSTOP for longer than the lease, and then continued. */
  readonly stops?: number
  /** How often the server of the store is killed with SIGKILL and started again on its data. */
  readonly crashes?: number
  readonly random: () => number
  /** The time limit of the run. */
  readonly withinMs: number
}

export interface ContentionOutcome {
  readonly seconds: number
  readonly completed: number
  /** Accepted jobs that are missing. */
  readonly lost: number
  readonly completedTwice: number
  /** Claims made while another claim of the same job was current. */
  readonly overlaps: number
  /** Other things that the audit must never show, such as a fence that does not grow. */
  readonly breaches: readonly string[]
  readonly redelivered: number
  readonly kills: number
  readonly stops: number
  readonly crashes: number
  /** The longest time from a kill, or from the begin of a stop, until the last job in hand was back in its queue. */
  readonly slowestReturnMs: number
  /** Jobs that ended in the morgue. */
  readonly buried: number
  /** Settles that were refused because their claim was lost. */
  readonly refused: number
  /** Failed store calls that a user would have seen. */
  readonly failedCalls: readonly string[]
  /** The longest single store call of any worker. */
  readonly longestWaitMs: number
  /** Jobs claimed by each worker, in ascending order. */
  readonly shares: readonly number[]
}

export const contended = defineTask({ name: 'contended' })
/** The largest lead of the producer over the workers, in jobs, so that both run for the same time. */
const mostAhead = 2_000

const lookMs = 20

export async function contend(plan: ContentionPlan, open: OpenGround = sqliteGround): Promise<ContentionOutcome> {
  const ground = await open()
  const { store } = ground
  const mill = millrace({ store, tasks: [contended], queues: { default: { lease: leaseMs } } })
  const crew = new Crew('workers/contention-worker.ts', [JSON.stringify(store), String(plan.jobMs ?? 0)])
  try {
    await mill.depths()
    await Promise.all(Array.from({ length: plan.processes }, () => crew.start()))
    const startedAt = performance.now()
    const { kills, stops = 0, crashes = 0, random, jobs, withinMs } = plan
    const deeds = [
      { times: kills, make: () => crew.killOne(random) },
      { times: stops, make: () => crew.stopOne(random), lasts: true },
      { times: crashes, make: () => ground.crash!() },
    ] as const
    const [accepted] = await Promise.all([
      enqueueAll(mill, plan),
      attack(deeds, random, (share) => reached(mill, share * jobs, withinMs)),
    ])
    await finished(mill, jobs, withinMs - (performance.now() - startedAt))
    const seconds = (performance.now() - startedAt) / 1_000
    await crew.end()
    await mill.close()
    const audit = await ground.audit()
    const { failedCalls, longestWaitMs, refused, faults } = crew
    return {
      seconds,
      kills: faults.filter(({ kind }) => kind === 'kill').length,
      stops: faults.filter(({ kind }) => kind === 'stop').length,
      crashes,
      slowestReturnMs: slowestReturn(audit, faults),
      failedCalls,
      longestWaitMs,
      refused,
      ...judged(audit, accepted),
    }
  } finally {
    crew.kill()
    await mill.close()
    await ground.close()
  }
}

/**
 * Enqueues in calls of 50, one after the other, so that producer and workers contend all along. Returns the ids of the
 * accepted jobs.
 */
async function enqueueAll(mill: Mill, { jobs, withinMs }: ContentionPlan): Promise<string[]> {
  const accepted: string[] = []
  while (accepted.length < jobs) {
    const size = Math.min(50, jobs - accepted.length)
    const inputs = Array.from({ length: size }, (_, n) => accepted.length + n)
    // A call that stays in doubt is made again. If both calls were stored, these are two jobs, and the first was never
    // accepted.
    const handles = await mill.enqueueMany(contended, inputs).catch((error: Error) => {
      if (error instanceof EnqueueManyError && error.cause instanceof StoreUnavailableError) return []
      throw error
    })
    accepted.push(...handles.map(({ id }) => id))
    await reached(mill, accepted.length - mostAhead, withinMs)
  }
  return accepted
}

/** The slowest return among all jobs that a worker had in hand when it was killed or stopped. */
export function slowestReturn(audit: readonly AuditEntry[], faults: readonly Fault[]): number {
  const returns = faults.flatMap(({ worker, at }) => {
    const held = new Map<string, number>()
    return audit.flatMap((entry) => {
      if (entry.worker !== worker) return []
      if (entry.kind === 'claim' && entry.at <= at) held.set(entry.id, entry.fence)
      // A job that the worker itself settled, before or after, did not return.
      const isReturn = entry.kind === 'requeue' && entry.at >= at && held.get(entry.id) === entry.fence
      return isReturn ? [entry.at - at] : []
    })
  })
  return Math.max(0, ...returns)
}

function reached(mill: Mill, processed: number, withinMs: number): Promise<void> {
  return until(mill, (depth) => depth.processed >= processed, withinMs)
}

/**
 * Calls in doubt may have enqueued more jobs than the plan asks for. So the last job has ended only when none is left.
 */
function finished(mill: Mill, jobs: number, withinMs: number): Promise<void> {
  const isOver = ({ processed, ready, scheduled, running }: QueueDepth) =>
    processed >= jobs && ready + scheduled + running === 0
  return until(mill, isOver, withinMs)
}

/** Asks again while the store is away. */
async function until(mill: Mill, isSo: (depth: QueueDepth) => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const [depth] = await mill.depths(['default']).catch((error: Error) => {
      if (error instanceof StoreUnavailableError) return []
      throw error
    })
    if (depth !== undefined && isSo(depth)) return
    if (performance.now() > deadline)
      throw new Error(`not so within ${withinMs} ms: ${isSo}; the last was ${JSON.stringify(depth)}`)
    await delay(lookMs)
  }
}

/** Judges the accepted jobs by the audit, which is written inside the atomic steps themselves. */
export function judged(audit: readonly AuditEntry[], accepted: readonly string[]) {
  const ends = new Map<string, number>()
  const holders = new Map<string, number>()
  const shares = new Map<string, number>()
  let overlaps = 0
  let buried = 0
  let claims = 0
  for (const { kind, id, from, worker, fence } of audit) {
    if (kind === 'claim') {
      claims += 1
      if (holders.has(id)) overlaps += 1
      holders.set(id, fence)
      shares.set(worker!, (shares.get(worker!) ?? 0) + 1)
    } else if (from === 'running') {
      if (holders.get(id) !== fence) overlaps += 1
      holders.delete(id)
      if (kind === 'bury') buried += 1
      if (kind === 'leave' || kind === 'keep') ends.set(id, (ends.get(id) ?? 0) + 1)
    }
  }
  const completedTwice = [...ends.values()].filter((times) => times > 1).length
  return {
    completed: ends.size,
    lost: accepted.filter((id) => !ends.has(id)).length,
    completedTwice,
    overlaps,
    breaches: auditBreaches(audit),
    redelivered: claims - ends.size,
    buried,
    shares: [...shares.values()].sort((a, b) => a - b),
  }
}
