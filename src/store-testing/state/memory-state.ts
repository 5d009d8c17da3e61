/** The memory store's canonical state. */

import { longestCountedMs, ruleText } from '../../core/queue/throttle.js'
import type { JobRemains } from '../../stores/contract/job-records.js'
import type { MemoryData } from '../../stores/memory/memory-store.js'
import { type MemoryJob, type RememberedJob, remainsOf } from '../../stores/memory/queue/memory-job.js'
import { MemoryOrderedQueue } from '../../stores/memory/queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../../stores/memory/queue/memory-queue.js'
import { memoryOf } from '../../stores/memory/queue/memory-retention.js'
import type { MemoryThrottle } from '../../stores/memory/queue/memory-throttle.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import {
  byId,
  type CanonicalJob,
  type CanonicalLanes,
  type CanonicalMemory,
  type CanonicalQueue,
  type CanonicalRemains,
  type CanonicalState,
  type CanonicalThrottle,
  canonicalContent,
  canonicalCounter,
  canonicalEntry,
  canonicalLead,
  canonicalResult,
  canonicalStep,
  canonicalTurn,
  inMs,
} from './canonical-state.js'

export function memoryState(data: MemoryData, now: number): CanonicalState {
  const queues = data.queues.all().map((queue) => canonicalQueue(queue, now))
  return {
    now,
    queues: queues.sort((a, b) => compareBytes(a.name, b.name) || a.shard! - b.shard!),
    throttles: data.queues
      .throttles()
      .map((throttle) => canonicalThrottle(throttle, now))
      .sort((a, b) => compareBytes(a.scope, b.scope)),
  }
}

function canonicalThrottle(throttle: MemoryThrottle, now: number): CanonicalThrottle {
  const { told, recovery, sharing } = throttle
  const { scope, by, rules, eachGroup = null } = told
  const at = Math.max(now, recovery?.lastAt ?? now)
  const quietForMs = throttle.quietForMs(now)
  return {
    scope,
    by,
    rules: rules.map(ruleText),
    eachGroup: eachGroup?.map(ruleText) ?? null,
    own: told.own ?? null,
    rates: [...throttle.rates]
      .sort(([a], [b]) => compareBytes(a, b))
      .map(([group, own]) => [group, own.map(ruleText).join(' ')] as const),
    queues: [...new Set(sharing.map(({ settings }) => settings.name))].sort(compareBytes),
    recoveries: recovery?.count ?? 0,
    quietInMs: quietForMs > 0 ? quietForMs : null,
    counters: throttle
      .subjects(now)
      .sort(compareBytes)
      .map((group) => [group, throttle.counter(group, at)] as const)
      .filter(([, { log }]) => log.length > 0)
      .map(([group, counter]) => canonicalCounter(group, counter, now, at - longestCountedMs(throttle.rulesOf(group)))),
  }
}

function canonicalLanes({ lanes, limits }: MemoryQueue, now: number): CanonicalLanes {
  const { turns, shut, held } = lanes
  const told = (groups: Map<string, number>) =>
    [...groups].map(([group, until]) => ({ group, inMs: until - now })).sort((a, b) => compareBytes(a.group, b.group))
  const paused = [...limits.pausedGroups].sort(compareBytes)
  return {
    turns: turns.map((group) => canonicalTurn(group, lanes.had.get(group))),
    shut: told(shut),
    held: told(held).filter(({ inMs }) => inMs > 0),
    paused,
  }
}

function canonicalQueue(queue: MemoryQueue, now: number): CanonicalQueue {
  const { name, kind, order, exclusive, merge, maxPending, maxCrashes, resultsCount, dead } = queue.settings
  const jobs = queue.kept()
  const hiddenMemories = jobs
    .filter((job) => queue.isHidden(job, now))
    .flatMap((job) => memoryOf(queue, job.spec.id, now) ?? [])
  return {
    name,
    shard: queue instanceof MemoryOrderedQueue ? queue.shard : null,
    kind,
    order,
    exclusive: exclusive ?? 'id',
    merge: merge ?? 'all',
    maxPending: maxPending ?? null,
    maxCrashes,
    resultsCount: resultsCount ?? null,
    deadAgeMs: dead.ageMs ?? null,
    deadCount: dead.count ?? null,
    maxRunning: queue.limits.maxRunning ?? null,
    throttle: queue.limits.throttle?.told.scope ?? null,
    heldInMs: inMs(queue.heldUntil, now),
    shutInMs: inMs(queue.shutUntil, now),
    sparesInMs: inMs(queue.sparesUntil, now),
    lanes: canonicalLanes(queue, now),
    paused: queue.paused,
    draining: queue.draining,
    processed: queue.processed,
    failed: queue.failed,
    crashed: queue.crashed,
    expired: queue.expired,
    lead: canonicalLead(queue.lead, now),
    suspectLead: canonicalLead(queue.suspectLead, now),
    lastStamp: queue.lastStamp,
    lastFence: queue.lastFence,
    lastScore: queue instanceof MemoryOrderedQueue ? queue.lastScore : 0,
    // Sorting keeps the live job before the dead one of its id.
    jobs: byId(jobs.filter((job) => !queue.isHidden(job, now)).map((job) => canonicalJob(job, now))),
    remembered: byId([...queue.remembered.list(now), ...hiddenMemories].map(canonicalMemory)),
    calls: byId(queue.calls.list(now).map(({ id, at }) => ({ id, at }))),
  }
}

function canonicalJob(job: MemoryJob, now: number): CanonicalJob {
  const { id, task, priority, rememberMs } = job.spec
  const { payloads = job.inHand, successor } = job
  return {
    id,
    task,
    state: job.state,
    ...canonicalRemains(remainsOf(job)),
    payloads: job.payloads === undefined && job.inHand.length === 0 ? null : [...payloads].map(canonicalEntry),
    successor: successor === undefined ? null : { ...successor, payloads: [...successor.payloads].map(canonicalEntry) },
    priority,
    stamp: job.stamp,
    attempt: job.attempt,
    crashes: job.crashes,
    suspect: job.suspect,
    rememberMs,
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    finishedAt: job.finishedAt ?? null,
    expiresAt: job.expiresAt ?? null,
    result: canonicalResult(job.result),
    reason: job.reason ?? null,
    steps: job.steps.map(canonicalStep),
    awaits: job.awaits === undefined ? null : { signal: job.awaits.signal, until: job.awaits.until ?? null },
    claim:
      job.state === 'running'
        ? {
            fence: job.fence,
            leaseMs: job.leaseUntil - now,
            alone: job.alone,
            cancelRequested: job.cancelRequested,
          }
        : null,
  }
}

function canonicalMemory(job: RememberedJob): CanonicalMemory {
  const { seq: _, reason, remains, ...known } = job
  return {
    ...known,
    reason: reason ?? null,
    remains: remains === undefined ? null : canonicalRemains(remains),
  }
}

function canonicalRemains(remains: JobRemains): CanonicalRemains {
  const { group, startedAt, worker, host, boot, pidns, pid, ticks } = remains
  const { progress, checkpoint, log, fields, error } = remains
  return {
    ...canonicalContent(remains),
    group: group ?? null,
    startedAt: startedAt ?? null,
    worker: worker ?? null,
    host: host ?? null,
    boot: boot ?? null,
    pidns: pidns ?? null,
    pid: pid ?? null,
    ticks: ticks ?? null,
    progress: progress ?? null,
    checkpoint: canonicalResult(checkpoint),
    log: log ?? '',
    fields: fields ?? null,
    error: error ?? null,
  }
}
