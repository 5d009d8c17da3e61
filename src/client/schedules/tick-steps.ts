/** The steps of a schedule over its due ticks: each step enqueues some of them and goes on to the next. Pure. */

import type { Packing } from '../../core/packing/packing.js'
import type { DueTicks } from '../../core/schedule/due-ticks.js'
import { payloadBytes } from '../../core/values/codec.js'
import type { ScheduleTick, StoredSchedule } from '../../stores/contract/schedules.js'
import { tickId } from '../../stores/rules/schedule-tick.js'
import { scheduledJob } from './scheduled-job.js'

/** The most jobs that one step enqueues. */
const mostJobs = 100
const mostBytes = 524_288

/** A step, and the instants of its jobs. */
export interface TickStep {
  readonly tick: ScheduleTick
  readonly instants: readonly number[]
}

/** `most`: the jobs of a step. Throws `CodecError` for a job that cannot be sealed here. */
export function tickSteps(
  stored: StoredSchedule,
  due: DueTicks,
  packing: Packing,
  newId: () => string,
  most = mostJobs,
): TickStep[] {
  const { definition, revision, shards, lastId } = stored
  const { name, queue, overlap, job } = definition
  const { ticks, leftOut, areMissed, latestAt } = due
  const some = Math.max(1, Math.min(most, Math.floor(mostBytes / Math.max(1, payloadBytes(job.payload)))))
  const parts = Array.from({ length: Math.max(1, Math.ceil(ticks.length / some)) }, (_, i) =>
    ticks.slice(i * some, (i + 1) * some),
  )
  const unless = overlap === 'skip' ? lastId : undefined
  return parts.map((instants, i) => {
    const [dueAt, nextAt] = [i === 0 ? stored.nextAt : instants[0], parts[i + 1]?.[0] ?? due.nextAt]
    return {
      instants,
      tick: {
        ...{ name, queue, revision, callId: newId() },
        ...(dueAt === undefined ? {} : { dueAt }),
        ...(nextAt === undefined ? {} : { nextAt }),
        lastAt: parts[i + 1] === undefined ? latestAt : instants.at(-1)!,
        jobs: instants.map((at) => scheduledJob(stored, tickId(name, at, shards), packing)),
        ...(unless === undefined ? {} : { unless }),
        ...(i > 0
          ? { skips: 0, misses: 0 }
          : areMissed
            ? { skips: 0, misses: leftOut }
            : { skips: leftOut, misses: 0 }),
      },
    }
  })
}
