/** Explains why a job has not begun: the decision, from the facts that the store knows. Pure. */

import type { JobRecord } from '../../core/job/job.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import { groupRules, type ThrottleRule } from '../../core/queue/throttle.js'
import { defined } from '../../core/values/defined.js'
import { formatDuration } from '../../core/values/duration.js'
import type { Attendance } from '../../runtime/process/process-peers.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { StoredHold, ThrottleState } from '../../stores/contract/throttles.js'
import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { runningBounds } from '../../stores/rules/limit-rules.js'
import { shardOf } from '../../stores/rules/payloads.js'

/** The facts about a queue. Of workers and limits only those that concern its jobs. */
export interface WaitFacts {
  /** Absent: the queue is declared, and not stored yet. */
  readonly queue: StoredQueue | undefined
  readonly depth: Pick<QueueDepth, 'running' | 'paused' | 'draining'>
  /** Those that take jobs of the queue; absent if the store keeps no registry. */
  readonly workers: Attendance | undefined
  readonly holds: readonly StoredHold[]
  /** The states of the throttle by group; `''`: of jobs without one. Empty if it has none. */
  readonly throttles: ReadonlyMap<string, ThrottleState>
  /** The running jobs, if a limit counts them; the first of them if they are many. */
  readonly running: readonly Pick<StoredJob, 'queue' | 'id' | 'group'>[]
  /** The jobs that are ready, in the order in which they are taken; the first 200. Absent: nobody looked. */
  readonly line?: readonly string[]
  /** Jobs that ended in a minute, of late; absent if that is not known. */
  readonly endsPerMinute?: number
  /** The wall clock, in ms. */
  readonly now: number
}

/** The most jobs that a reason names. */
const mostNamed = 10

/** A job that may wait. Its queue's jobs that have a group are bounded apart. */
export type ExplainedJob = Pick<
  JobRecord,
  'id' | 'queue' | 'task' | 'state' | 'group' | 'attempt' | 'runAt' | 'error' | 'suspect' | 'host' | 'worker'
> &
  Partial<Pick<JobRecord, 'expiresAt' | 'startedAt' | 'join' | 'awaits' | 'steps'>> & {
    /** Who asks must not learn its group: reasons do not name it. Default false. */
    readonly isGroupHidden?: boolean
  }

/**
 * Why the job has not begun, the most decisive reason first. Empty if it has begun, or has ended. A job that is not due
 * gets the reasons for which it would not begin then either.
 */
export function explain(job: ExplainedJob, facts: WaitFacts): WaitReason[] {
  switch (job.state) {
    case 'running':
      return job.startedAt === undefined ? [reserved(job)] : []
    case 'scheduled':
      return [expired(job, facts) ?? later(job, facts), ...standstill(job, facts)]
    case 'waiting':
      return [expired(job, facts), joined(job), signalled(job, facts), ...standstill(job, facts)].filter(isReason)
    case 'ready': {
      const kept = [expired(job, facts), ...standstill(job, facts), ...bounded(job, facts)].filter(isReason)
      return kept.length > 0 ? kept : [slotsFull(job, facts), behind(job, facts)].filter(isReason)
    }
    default:
      return []
  }
}

function isReason(reason: WaitReason | undefined): reason is WaitReason {
  return reason !== undefined
}

/** The reasons that stop the queue, or all its workers, until somebody acts. */
function standstill(job: ExplainedJob, facts: WaitFacts): WaitReason[] {
  const { queue, depth, holds } = facts
  const { queue: name, group, isGroupHidden } = job
  const isGroupPaused = holds.some(
    (hold) => hold.group !== undefined && hold.group === group && hold.forMs === undefined,
  )
  return [
    depth.paused
      ? reason('paused', `its queue is paused; \`millrace queues resume ${name}\` lets it go on`)
      : undefined,
    isGroupPaused
      ? reason(
          'paused',
          `its group is paused; \`millrace queues resume ${name} --group ${isGroupHidden ? '<group>' : group}\` lets it go on`,
          { group: isGroupHidden ? undefined : group },
        )
      : undefined,
    queue?.resharding === undefined
      ? undefined
      : reason(
          'resharding',
          `the jobs of its queue move to ${queue.resharding} shards, and none begins until all have; \`millrace queues reshard ${name} ${queue.resharding}\` goes on with it`,
        ),
    unserved(job, facts),
  ].filter(isReason)
}

/** That no worker takes jobs of its queue, or none knows its task. Undefined if one does, or nobody can know. */
export function unserved(
  { queue, task }: Pick<ExplainedJob, 'queue' | 'task'>,
  { workers }: Pick<WaitFacts, 'workers'>,
): WaitReason | undefined {
  if (workers === undefined) return undefined
  const taking = workers.serving.filter(({ state }) => state !== 'stopping')
  if (taking.length === 0) {
    const others = [
      counted(workers.serving.length, 'worker is stopping', 'workers are stopping'),
      counted(workers.silent.length, 'worker has not reported for 30s', 'workers have not reported for 30s'),
    ].filter((text) => text !== undefined)
    return reason(
      'no-worker',
      `no worker takes jobs of queue '${queue}'${others.length > 0 ? `: ${others.join(', ')}` : ''}; start one, such as by \`millrace work --queues ${queue}\``,
    )
  }
  if (taking.some((worker) => hasTask(worker, task))) return undefined
  return reason(
    'no-task',
    `${taking.length === 1 ? 'the worker of its queue does not know' : `none of the ${taking.length} workers of its queue knows`} the task '${task}'; start one that does`,
  )
}

/** A worker that does not report its tasks may have it. */
function hasTask({ taskNames }: SeenWorker, task: string): boolean {
  return taskNames === undefined || taskNames.includes(task)
}

/** The reasons that its limits give. They end by themselves. */
function bounded(job: ExplainedJob, facts: WaitFacts): WaitReason[] {
  const suspect = job.suspect
    ? reason('suspect', 'its worker died while it held the job, so it waits until a worker can run it alone')
    : undefined
  return [suspect, held(job, facts), throttled(job, facts), full(job, facts), shut(job, facts)].filter(isReason)
}

/** The hold of its queue or its group, whichever ends later. */
function held({ group, isGroupHidden }: ExplainedJob, { holds, now }: WaitFacts): WaitReason | undefined {
  const own = holds.filter((hold) => hold.forMs !== undefined && (hold.group === undefined || hold.group === group))
  const longest = own.toSorted((a, b) => b.forMs! - a.forMs!)[0]
  if (longest === undefined) return undefined
  const shown = isGroupHidden ? undefined : longest.group
  const whose = longest.group === undefined ? 'its queue' : shown === undefined ? 'its group' : `its group '${shown}'`
  return reason('held', `${whose} is held for another ${formatDuration(longest.forMs!)}`, {
    group: shown,
    until: new Date(now + longest.forMs!),
  })
}

function throttled(
  { group, isGroupHidden, queue }: ExplainedJob,
  { throttles, holds, now }: WaitFacts,
): WaitReason | undefined {
  const state = throttles.get(group ?? '')
  if (state === undefined) return undefined
  const heldMs = holds
    .filter((hold) => hold.group === undefined || hold.group === group)
    .map(({ forMs = 0 }) => forMs)
    .reduce((a, b) => Math.max(a, b), 0)
  // `forMs` covers holds, which are a reason of their own.
  if (state.forMs <= heldMs) return undefined
  const until = new Date(now + state.forMs)
  const next = `the throttle permits the next start in ${formatDuration(state.forMs)}`
  if (state.quietForMs > 0)
    return reason('throttled', `${next}: the store may have forgotten starts, and waits until none can count`, {
      until,
    })
  const byQueue = state.throttle.by === 'queue' ? fullest(state.throttle.rules, state.hits) : undefined
  const ofGroup = fullest(
    state.rate ?? groupRules(state.throttle) ?? [],
    (state.throttle.by === 'group' ? state.hits : state.groupHits) ?? [],
  )
  const isOfGroup = byQueue === undefined && ofGroup !== undefined
  const used = byQueue ?? ofGroup
  const starter = isGroupHidden ? 'its group' : group === undefined ? 'jobs without a group' : `group '${group}'`
  const whose = isOfGroup ? ` by ${starter}` : ''
  const others = state.queues.filter((name) => name !== queue)
  const shared = others.length > 0 ? ` with queue ${others.join(', ')}` : ''
  const why = used === undefined ? '' : `: ${used}${whose}${shared}`
  return reason('throttled', `${next}${why}`, { until, ...(isOfGroup && !isGroupHidden && { group: group ?? '' }) })
}

/** The window that is used up, in words; undefined if none is: starts are spaced then, or were held back. */
function fullest(rules: readonly ThrottleRule[], hits: readonly number[]): string | undefined {
  const [window] = rules
    .map((rule, i) => ({ ...rule, used: hits[i] ?? 0 }))
    .sort((a, b) => b.used / b.limit - a.used / a.limit)
  if (window === undefined || window.used === 0) return undefined
  const { used, limit, windowMs, moderate } = window
  if (used < limit && !moderate) return undefined
  return `${used} of ${limit} starts in ${formatDuration(windowMs)} are used${used < limit ? ', evenly spaced' : ''}`
}

/** Its `maxRunning`. */
function full(job: ExplainedJob, { queue, depth, running }: WaitFacts): WaitReason | undefined {
  const { group = '', isGroupHidden, id, queue: name } = job
  const { total, perGroup } = runningBounds(queue?.maxRunning)
  const shards = queue?.shards ?? 1
  const shard = shardOf(id, shards)
  // Bounds are divided by the shards.
  const inShard = shards === 1 ? running : running.filter((other) => shardOf(other.id, shards) === shard)
  // The list of running jobs is bounded, their count is not.
  const countInShard = shards === 1 ? depth.running : inShard.length
  const ofGroup = running.filter((other) => (other.group ?? '') === group)
  const whoseGroup = isGroupHidden ? ' of its group' : group === '' ? ' that have no group' : ` of group '${group}'`
  const [bound, count, jobs, whose] =
    perGroup !== undefined && ofGroup.length >= perGroup
      ? [perGroup, ofGroup.length, ofGroup, whoseGroup]
      : total !== undefined && countInShard >= Math.ceil(total / shards)
        ? [Math.ceil(total / shards), countInShard, inShard, shards === 1 ? '' : ' of its shard']
        : []
  if (bound === undefined) return undefined
  return reason(
    'max-running',
    `${count} of at most ${bound} ${bound === 1 ? 'job' : 'jobs'}${whose} run in queue '${name}'`,
    {
      ...(jobs === ofGroup && perGroup !== undefined && !isGroupHidden && { group }),
      jobs: named(jobs!),
    },
  )
}

/** Another job of its shard, if its queue runs one of each at a time. */
function shut({ id }: ExplainedJob, { queue, running }: WaitFacts): WaitReason | undefined {
  if (queue?.exclusive !== 'shard' || queue.kind !== 'ordered') return undefined
  const shard = shardOf(id, queue.shards)
  const jobs = running.filter((job) => shardOf(job.id, queue.shards) === shard)
  return jobs.length === 0
    ? undefined
    : reason('exclusive', `a job of its shard runs, and the queue runs one of a shard at a time`, { jobs: named(jobs) })
}

function slotsFull({ task }: ExplainedJob, { workers, depth }: WaitFacts): WaitReason | undefined {
  const able = workers?.serving.filter((worker) => worker.state !== 'stopping' && hasTask(worker, task)) ?? []
  if (able.length === 0 || depth.running === 0) return undefined
  const slots = able.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const used = able.reduce((sum, { running }) => sum + running, 0)
  if (used < slots) return undefined
  return reason(
    'slots-full',
    `all ${slots} slots of the ${able.length === 1 ? 'worker that can' : `${able.length} workers that can`} take it are in use`,
  )
}

function behind({ id }: ExplainedJob, { line, endsPerMinute, now }: WaitFacts): WaitReason | undefined {
  if (line === undefined) return undefined
  const place = line.indexOf(id)
  if (place === 0) return reason('next', 'nothing keeps it: the next free slot takes it')
  const ahead = place === -1 ? line.length : place
  const more = place === -1 ? 'at least ' : ''
  const jobs = `${more}${ahead} ${ahead === 1 ? 'job is' : 'jobs are'} before it`
  if (!endsPerMinute) return reason('behind', jobs, { ahead })
  const forMs = (ahead / endsPerMinute) * 60_000
  return reason(
    'behind',
    `${jobs}; at the present pace of ${figure(endsPerMinute)} a minute it begins in ${more}about ${formatDuration(Math.max(1_000, forMs))}`,
    { ahead, ...(place !== -1 && { until: new Date(now + forMs) }) },
  )
}

function figure(n: number): string {
  return n < 10 ? String(Number(n.toFixed(1))) : String(Math.round(n))
}

function expired({ expiresAt }: ExplainedJob, { now }: WaitFacts): WaitReason | undefined {
  if (expiresAt === undefined || expiresAt.getTime() > now) return undefined
  return reason('expired', 'its time to begin is over: the next claim on its queue cancels it')
}

/** A job that is due later. */
function later({ attempt, runAt, error, steps = [] }: ExplainedJob, { now }: WaitFacts): WaitReason {
  const due = `due in ${formatDuration(Math.max(0, runAt.getTime() - now))}`
  const sleep = steps.findLast(({ kind, until }) => kind === 'sleep' && until !== undefined && until.getTime() > now)
  if (sleep !== undefined) return reason('asleep', `it sleeps in '${sleep.name}', and is ${due}`, { until: runAt })
  if (attempt > 1) {
    const [first = ''] = (error ?? '').split('\n', 1)
    return reason('retry', `its attempt ${attempt} is ${due}${first === '' ? '' : `; the last failed: ${first}`}`, {
      until: runAt,
    })
  }
  return reason('delayed', `it is ${due}`, { until: runAt })
}

function joined({ join }: ExplainedJob): WaitReason | undefined {
  if (join === undefined) return undefined
  const left = join.sets.flatMap(({ queue, oldest }) => (oldest === undefined ? [] : [{ queue, id: oldest }]))
  const sets = join.sets.map(({ name, done, size, added }) => `${done} of ${size ?? added} in '${name}'`)
  const open = join.sets.some(({ size }) => size === undefined)
  return reason(
    'joins',
    `it waits for other jobs: ${sets.join(', ')} have ended${open ? ', and more may be added' : ''}`,
    { jobs: named(left), until: join.waitsUntil },
  )
}

function signalled({ awaits }: ExplainedJob, { now }: WaitFacts): WaitReason | undefined {
  if (awaits === undefined) return undefined
  const { signal, until } = awaits
  const most = until === undefined ? '' : `, for at most another ${formatDuration(Math.max(0, until.getTime() - now))}`
  return reason('signal', `it waits for the signal '${signal}'${most}`, { until })
}

function reserved({ worker, host }: ExplainedJob): WaitReason {
  const where = worker === undefined ? 'a worker' : `worker ${worker}`
  return reason('reserved', `${where}${host === undefined ? '' : ` on ${host}`} holds it, and has not begun it yet`)
}

function named(jobs: readonly { readonly queue: string; readonly id: string }[]) {
  return jobs.slice(0, mostNamed).map(({ queue, id }) => ({ queue, id }))
}

function counted(n: number, one: string, many: string): string | undefined {
  return n === 0 ? undefined : `${n} ${n === 1 ? one : many}`
}

type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }

export function reason(
  why: WaitReason['why'],
  text: string,
  more: Loose<Omit<WaitReason, 'why' | 'text'>> = {},
): WaitReason {
  return { why, text, ...(standing.includes(why) && { standing: true as const }), ...defined(more) }
}

/** The causes that only a person or a deploy ends. */
const standing: readonly WaitReason['why'][] = ['paused', 'draining', 'resharding', 'no-worker', 'no-task']
