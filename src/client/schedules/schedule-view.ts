/** The schedule for users, made from the store's record. */

import type { JobMeta } from '../../core/job/job.js'
import type { Packing } from '../../core/packing/packing.js'
import type { OnMissed, Overlap } from '../../core/schedule/due-ticks.js'
import { defined } from '../../core/values/defined.js'
import type { StoredSchedule } from '../../stores/contract/schedules.js'
import { placeOf } from '../../stores/rules/schedule-record.js'
import { givenMeta } from '../jobs/job-record.js'
import { partsOf } from './schedule-definition.js'

/** Everything that is known of a schedule. An absent field does not apply, or not yet. */
export interface ScheduleRecord {
  readonly name: string
  readonly task: string
  readonly queue: string
  /** Absent if this mill cannot read it, or there is none. */
  readonly input?: unknown
  readonly meta?: JobMeta
  readonly cron?: string
  readonly everyMs?: number
  readonly timeZone: string
  readonly from?: Date
  readonly until?: Date
  readonly onMissed: OnMissed
  readonly overlap: Overlap
  readonly jitterMs: number
  /** Whether a configuration declares it; others were set at run time. */
  readonly isDeclared: boolean
  /** The `schedulesOf` of the configuration that declares it. */
  readonly declaredBy?: string
  readonly isPaused: boolean
  /** Absent while it is paused, and after it has ended. */
  readonly nextAt?: Date
  /** The instant of its last tick, whether it was enqueued or left out. */
  readonly lastAt?: Date
  /** The last job that it enqueued, by a tick or by `runNow()`. */
  readonly lastId?: string
  /** The number of enqueued jobs. */
  readonly ticked: number
  /** Ticks left out because the job before waited or ran. */
  readonly skipped: number
  /** Ticks left out because no worker was there in time. */
  readonly missed: number
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** The change that a reconciliation made to a schedule. */
export interface ScheduleDifference {
  readonly schedule: string
  readonly change: 'added' | 'changed' | 'removed'
  /** The `schedulesOf` of the configuration that had declared it. Absent if that is the same, or there was none. */
  readonly takenFrom?: string
}

export function scheduleRecordOf(stored: StoredSchedule, packing: Packing): ScheduleRecord {
  const { definition, paused, nextAt, lastAt, lastId, ticked, skipped, missed, createdAt, updatedAt } = stored
  const { name, queue, rule, onMissed, overlap, jitterMs, declaredBy, job } = definition
  const { cron, everyMs, timeZone, fromAt, untilAt } = rule
  const owner = { ...job, queue, id: placeOf(definition) }
  const [payloadPart, metaPart] = partsOf(job)
  return defined({
    ...{ name, task: job.task, queue },
    input: ifReadable(() => packing.unpack(job.payload, job.codec, payloadPart, owner)),
    meta: givenMeta(ifReadable(() => packing.unpackMeta(job, metaPart, owner)) as JobMeta | undefined),
    ...{ cron, everyMs, timeZone, from: dateOf(fromAt), until: dateOf(untilAt) },
    ...{ onMissed, overlap, jitterMs, isDeclared: declaredBy !== undefined, declaredBy, isPaused: paused },
    ...{ nextAt: dateOf(nextAt), lastAt: dateOf(lastAt), lastId, ticked, skipped, missed },
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  })
}

/** Undefined if it cannot be read here. */
function ifReadable(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}

function dateOf(at: number | undefined): Date | undefined {
  return at === undefined ? undefined : new Date(at)
}
