/** The facts by which `explain` decides, read from the store: a bounded number of calls, however long the queue is. */

import type { JobRecord } from '../../core/job/job.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import { groupRules } from '../../core/queue/throttle.js'
import { defined } from '../../core/values/defined.js'
import { pagesOf } from '../../core/values/pages.js'
import { type Attendance, attendanceOf } from '../../runtime/process/process-peers.js'
import type { Records, StoredJob } from '../../stores/contract/job-records.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Store } from '../../stores/contract/store.js'
import type { ThrottleState, Throttles } from '../../stores/contract/throttles.js'
import { slotAt, stepMs } from '../../stores/rules/history-slots.js'
import { noCounts } from '../../stores/rules/queue-counts.js'
import { recordsOf } from '../store-facets.js'
import { type ExplainedJob, explain, reason, unserved, type WaitFacts } from './explain.js'

/** Jobs of one page. */
const pageSize = 200
/** The most pages of running jobs that are read. */
const mostPages = 5
/** The most groups of a list for which the throttle is asked. */
const mostGroups = 20
/** The minutes whose ends give the pace. */
const paceMinutes = 5

const mayWait: readonly JobRecord['state'][] = ['ready', 'scheduled', 'waiting', 'running']

/**
 * Why each of these jobs of a queue has not begun, as `explain` says; an empty list for one that has. In a list of jobs
 * their places in the queue are not looked up, and the throttle is asked for the first 20 groups.
 */
export async function explained(
  store: Store,
  queue: string,
  jobs: readonly ExplainedJob[],
  now: number,
): Promise<WaitReason[][]> {
  const asked = jobs.filter(({ state, startedAt }) => mayWait.includes(state) && !(state === 'running' && startedAt))
  if (asked.length === 0) return jobs.map(() => [])
  const facts = await factsOf(store, queue, asked, now)
  return jobs.map((job) => explain(job, facts))
}

/** Why one job has not begun, with its place in the queue if nothing else keeps it. */
export async function explainedJob(store: Store, job: ExplainedJob, now: number): Promise<WaitReason[]> {
  if (!mayWait.includes(job.state)) return []
  const facts = await factsOf(store, job.queue, [job], now)
  const reasons = explain(job, facts)
  if (job.state !== 'ready' || reasons.some(({ why }) => why !== 'slots-full')) return reasons
  const place = await placeIn(store, job.queue, now)
  return explain(job, { ...facts, ...place })
}

/**
 * Why the first of the queue's ready jobs has not begun; a drain too, if there is one. `isGroupHidden`: whether its group
 * must not be named.
 */
export async function explainedQueue(
  store: Store,
  queue: string,
  now: number,
  isGroupHidden: (first: StoredJob) => boolean = () => false,
): Promise<WaitReason[]> {
  const records = recordsOf(store)
  const stored = (await records.queues()).find(({ name }) => name === queue)
  if (stored === undefined) return []
  const draining = stored.draining
    ? [reason('draining', `it refuses new jobs; \`millrace queues resume ${queue}\` lets it take them`)]
    : []
  const [first] = (await records.list(queue, { state: 'ready', by: 'time', limit: 1 })).jobs
  if (first !== undefined) {
    const job = { ...waitingJob(first), isGroupHidden: isGroupHidden(first) }
    return [...draining, ...(await explainedJob(store, job, now))]
  }
  const paused = stored.paused
    ? [reason('paused', `it is paused; \`millrace queues resume ${queue}\` lets it go on`)]
    : []
  return [...draining, ...paused]
}

/**
 * Why no worker can run jobs that were put back for later: that none knows their task. By task, of the first `most` scheduled
 * jobs, at most 200; `workers`: those that take jobs of the queue. Most of the time such a job is not ready, and neither
 * `explainedQueue` nor `explainedHead` sees it.
 */
export async function unknownTasks(
  store: Store,
  queue: string,
  workers: Attendance | undefined,
  most = pageSize,
): Promise<Map<string, WaitReason[]>> {
  const { jobs } = await recordsOf(store).list(queue, { state: 'scheduled', by: 'time', limit: most })
  const byTask = new Map<string, WaitReason[]>()
  for (const job of jobs) {
    const reason = job.error === undefined ? undefined : unserved(job, { workers })
    if (reason?.why === 'no-task') byTask.set(job.task, [...(byTask.get(job.task) ?? []), reason])
  }
  return byTask
}

/** A queue of which its settings, its counts and its workers are known already. */
interface KnownQueue {
  readonly queue: StoredQueue
  readonly depth: QueueDepth
  /** Those that take its jobs; absent if the store keeps no registry. */
  readonly workers: Attendance | undefined
}

/**
 * Why the first ready job of a known queue has not begun, for a reader of many queues: at most four calls of the store. Empty
 * if nothing keeps it.
 */
export async function explainedHead(store: Store, known: KnownQueue, now: number): Promise<WaitReason[]> {
  const { name } = known.queue
  const [first] = (await recordsOf(store).list(name, { state: 'ready', by: 'time', limit: 1 })).jobs
  if (first === undefined) return []
  const job = waitingJob(first)
  return explain(job, { ...known, ...(await limitFacts(store, known.queue, [job], 1)), now })
}

function waitingJob({ id, queue, task, state, attempt, runAt, group, suspect, expiresAt }: StoredJob): ExplainedJob {
  return {
    ...{ id, queue, task, state, attempt, runAt: new Date(runAt) },
    ...defined({ group, suspect, expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt) }),
  }
}

async function factsOf(store: Store, name: string, jobs: readonly ExplainedJob[], now: number): Promise<WaitFacts> {
  const queue = (await recordsOf(store).queues()).find((stored) => stored.name === name)
  if (queue === undefined) {
    const depth = { ...noCounts, paused: false, draining: false }
    return { queue, depth, workers: await workersOf(store, name), holds: [], throttles: new Map(), running: [], now }
  }
  const [{ depths }, workers, limits] = await Promise.all([
    store.depth([name]),
    workersOf(store, name),
    limitFacts(store, queue, jobs, mostPages),
  ])
  return { queue, depth: depths[0]!, workers, ...limits, now }
}

/** What the limits of a queue have counted of these jobs. `pages`: at most so many pages of running jobs are read. */
async function limitFacts(
  store: Store,
  queue: StoredQueue,
  jobs: readonly ExplainedJob[],
  pages: number,
): Promise<Pick<WaitFacts, 'holds' | 'throttles' | 'running'>> {
  const groups = [...new Set(jobs.flatMap(({ group }) => group ?? []))]
  const [held, throttles, running] = await Promise.all([
    store.throttles?.holds(queue.name, { groups, limit: 1 + 2 * groups.length }),
    throttleStates(store.throttles, queue, jobs),
    runningIn(recordsOf(store), queue, pages),
  ])
  return { holds: held?.holds ?? [], throttles, running }
}

/** The workers that take jobs of the queue; undefined if the store keeps no registry. */
export async function workersOf(store: Store, queue: string): Promise<Attendance | undefined> {
  const workers = await store.workers?.list()
  return workers && attendanceOf(workers.filter(({ queues }) => queues.includes(queue)))
}

/** By group, if the throttle counts by group; otherwise the same for all. */
async function throttleStates(
  throttles: Throttles | undefined,
  { name, throttle }: StoredQueue,
  jobs: readonly ExplainedJob[],
): Promise<ReadonlyMap<string, ThrottleState>> {
  const ready = [...new Set(jobs.filter(({ state }) => state === 'ready').map(({ group = '' }) => group))]
  if (throttles === undefined || throttle === undefined || ready.length === 0) return new Map()
  if (groupRules(throttle) === undefined) {
    const state = await throttles.state(name)
    return new Map(state === undefined ? [] : ready.map((group) => [group, state]))
  }
  const asked = ready.slice(0, mostGroups)
  const states = await Promise.all(asked.map((group) => throttles.state(name, group)))
  return new Map(states.flatMap((state, i) => (state === undefined ? [] : [[asked[i]!, state] as const])))
}

/** The running jobs, if a limit counts them. */
async function runningIn(records: Records, queue: StoredQueue, pages: number): Promise<WaitFacts['running']> {
  if (queue.maxRunning === undefined && queue.exclusive !== 'shard') return []
  const found: WaitFacts['running'][number][] = []
  const running = { state: 'running', by: 'time', limit: pageSize } as const
  let read = 0
  for await (const { jobs } of pagesOf((from) => records.list(queue.name, { ...running, ...from }))) {
    found.push(...jobs)
    read += 1
    if (read === pages) break
  }
  return found
}

/** The jobs at the head of the queue, and how many end in a minute. */
async function placeIn(store: Store, queue: string, now: number): Promise<Pick<WaitFacts, 'line' | 'endsPerMinute'>> {
  const toAt = slotAt('minute', now)
  const span = { step: 'minute', fromAt: toAt - paceMinutes * stepMs.minute, toAt } as const
  const [{ jobs }, histories] = await Promise.all([
    recordsOf(store).list(queue, { state: 'ready', by: 'time', limit: pageSize }),
    store.history?.read([queue], span),
  ])
  const ends = (histories?.[0] ?? []).reduce(
    (sum, { completed, dead, cancelled }) => sum + completed + dead + cancelled,
    0,
  )
  const line = jobs.map(({ id }) => id)
  return { line, ...(ends > 0 && { endsPerMinute: ends / paceMinutes }) }
}
