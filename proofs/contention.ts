/** Contention: several worker processes on one store, some of them killed or stopped, and what the audit says of it afterwards. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Depth,
  defineTask,
  EnqueueManyError,
  type Mill,
  millrace,
  type StoreDescriptor,
  StoreUnavailableError,
} from 'millrace'
import { type AuditEntry, auditBreaches } from 'millrace/testing'
import { type Ground, type OpenGround, sqliteGround } from './ground.js'

export interface ContentionPlan {
  readonly jobs: number
  readonly processes: number
  /** How long a job takes on average; most take no time where this is absent. */
  readonly jobMs?: number
  /** Workers killed with SIGKILL while there is work, each replaced at once. */
  readonly kills: number
  /** Workers stopped with SIGSTOP for longer than the lease, and then let go on. */
  readonly stops?: number
  /** Times the server of the store is killed with SIGKILL and started again on its data. */
  readonly crashes?: number
  readonly random: () => number
  /** Gives up after so long. */
  readonly withinMs: number
}

export interface ContentionOutcome {
  readonly seconds: number
  readonly completed: number
  /** Of the jobs that were accepted. */
  readonly lost: number
  readonly completedTwice: number
  /** Claims made while another one of the same job was current. */
  readonly overlaps: number
  /** What else the audit must never show, such as a fence that does not grow. */
  readonly breaches: readonly string[]
  readonly redelivered: number
  readonly kills: number
  readonly stops: number
  readonly crashes: number
  /** Longest time from a kill, or the begin of a stop, to the moment when the last job in hand was back in its queue. */
  readonly slowestReturnMs: number
  /** Jobs that ended in the morgue. */
  readonly buried: number
  /** Settles that came when the claim was lost, and were refused. */
  readonly refused: number
  /** Store calls that failed where a user would have seen it. */
  readonly failedCalls: readonly string[]
  /** Longest single store call of any worker. */
  readonly longestWaitMs: number
  /** Jobs claimed by each process slot, smallest to largest. */
  readonly shares: readonly number[]
}

/** What a worker says to its parent. */
export type WorkerWord =
  | { readonly kind: 'ready'; readonly worker: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly call: string }
  | { readonly kind: 'slowest'; readonly ms: number }

export const contended = defineTask({ name: 'contended' })
/** The producer is ahead of the workers by so many jobs at most, so that it goes on as long as they do. */
const mostAhead = 2_000
/** Short, so that what a killed worker held is back before the run is over. */
export const leaseMs = 3_000
/** Stopped for so many leases, at least and at most. */
const stopLeases = [1.2, 2] as const
/** Stopped at the same time, at most. */
const stoppedAtOnce = 3

const lookMs = 20

export async function contend(plan: ContentionPlan, open: OpenGround = sqliteGround): Promise<ContentionOutcome> {
  const ground = await open()
  const { store } = ground
  const mill = millrace({ store, tasks: [contended], queues: { default: { lease: leaseMs } } })
  const crew = new Crew(store, plan.jobMs)
  try {
    await mill.depths()
    await Promise.all(Array.from({ length: plan.processes }, () => crew.start()))
    const startedAt = performance.now()
    const [accepted] = await Promise.all([enqueueAll(mill, plan), attack(plan, mill, crew, ground)])
    await finished(mill, plan.jobs, plan.withinMs - (performance.now() - startedAt))
    const seconds = (performance.now() - startedAt) / 1_000
    await crew.end()
    await mill.close()
    const audit = await ground.audit()
    const { failedCalls, longestWaitMs, refused, faults } = crew
    return {
      seconds,
      kills: faults.filter(({ kind }) => kind === 'kill').length,
      stops: faults.filter(({ kind }) => kind === 'stop').length,
      crashes: plan.crashes ?? 0,
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

/** In calls of 50, one after the other, so that producer and workers contend all along. The ids of what was accepted. */
async function enqueueAll(mill: Mill, { jobs, withinMs }: ContentionPlan): Promise<string[]> {
  const accepted: string[] = []
  while (accepted.length < jobs) {
    const size = Math.min(50, jobs - accepted.length)
    const inputs = Array.from({ length: size }, (_, n) => accepted.length + n)
    // A call that stays in doubt is made again: what is there twice is two jobs, and the first was never accepted.
    const handles = await mill.enqueueMany(contended, inputs).catch((error: Error) => {
      if (error instanceof EnqueueManyError && error.cause instanceof StoreUnavailableError) return []
      throw error
    })
    accepted.push(...handles.map(({ id }) => id))
    await reached(mill, accepted.length - mostAhead, withinMs)
  }
  return accepted
}

interface Fault {
  readonly kind: 'kill' | 'stop'
  readonly worker: string
  readonly at: number
}

/** The worker processes of a run. */
class Crew {
  readonly failedCalls: string[] = []
  longestWaitMs = 0
  refused = 0
  readonly faults: Fault[] = []
  readonly #store: StoreDescriptor
  readonly #jobMs: number
  readonly #workers = new Map<ChildProcess, string>()
  readonly #stopped = new Set<ChildProcess>()

  constructor(store: StoreDescriptor, jobMs = 0) {
    this.#store = store
    this.#jobMs = jobMs
  }

  async start(): Promise<void> {
    const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')
    const args = [JSON.stringify(this.#store), String(this.#jobMs)]
    const worker = fork(join(import.meta.dirname, 'contention-worker.ts'), args, { execArgv: [jiti] })
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
    const victim = this.#oneOf(random)
    this.faults.push({ kind: 'kill', worker: this.#workers.get(victim)!, at: Date.now() })
    this.#workers.delete(victim)
    victim.kill('SIGKILL')
    await Promise.all([once(victim, 'exit'), this.start()])
  }

  async stopOne(random: () => number): Promise<void> {
    const victim = this.#oneOf(random)
    const [least, most] = stopLeases
    this.#stopped.add(victim)
    this.faults.push({ kind: 'stop', worker: this.#workers.get(victim)!, at: Date.now() })
    victim.kill('SIGSTOP')
    await delay(leaseMs * (least + random() * (most - least)))
    victim.kill('SIGCONT')
    this.#stopped.delete(victim)
  }

  #oneOf(random: () => number): ChildProcess {
    const going = [...this.#workers.keys()].filter((worker) => !this.#stopped.has(worker))
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

/** Kills and stops at random points of progress, so that no run ends before its last fault. */
async function attack(plan: ContentionPlan, mill: Mill, crew: Crew, ground: Ground): Promise<void> {
  const { kills, stops = 0, crashes = 0, random, jobs, withinMs } = plan
  const kinds = [...Array(kills).fill('kill'), ...Array(stops).fill('stop'), ...Array(crashes).fill('crash')]
  const faults = (kinds as ('kill' | 'stop' | 'crash')[])
    .map((kind) => ({ kind, at: random() * jobs * 0.9 }))
    .sort((a, b) => a.at - b.at)
  const stopped = new Set<Promise<void>>()
  for (const { kind, at } of faults) {
    await reached(mill, at, withinMs)
    if (kind === 'kill') await crew.killOne(random)
    else if (kind === 'crash') await ground.crash!()
    else {
      const stop = crew.stopOne(random).finally(() => stopped.delete(stop))
      stopped.add(stop)
      if (stopped.size >= stoppedAtOnce) await Promise.race(stopped)
    }
  }
  await Promise.all(stopped)
}

/** Of all jobs that were in the hands of a worker when it was killed or stopped. */
export function slowestReturn(audit: readonly AuditEntry[], faults: readonly Fault[]): number {
  const returns = faults.flatMap(({ worker, at }) => {
    const held = new Map<string, number>()
    return audit.flatMap((entry) => {
      if (entry.worker !== worker) return []
      if (entry.kind === 'claim' && entry.at <= at) held.set(entry.id, entry.fence)
      // What it settled itself, before or after, did not come back.
      const isReturn = entry.kind === 'requeue' && entry.at >= at && held.get(entry.id) === entry.fence
      return isReturn ? [entry.at - at] : []
    })
  })
  return Math.max(0, ...returns)
}

function reached(mill: Mill, processed: number, withinMs: number): Promise<void> {
  return until(mill, (depth) => depth.processed >= processed, withinMs)
}

/** Jobs that were sent twice in doubt are more than were asked for: the last has ended when none is left. */
function finished(mill: Mill, jobs: number, withinMs: number): Promise<void> {
  const isOver = ({ processed, ready, scheduled, running }: Depth) =>
    processed >= jobs && ready + scheduled + running === 0
  return until(mill, isOver, withinMs)
}

/** A store that is away is asked again. */
async function until(mill: Mill, isSo: (depth: Depth) => boolean, withinMs: number): Promise<void> {
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

/** What the audit says, which was written inside the atomic steps themselves, of the jobs that were accepted. */
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
