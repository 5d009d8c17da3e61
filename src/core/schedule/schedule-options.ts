/** The options of a schedule, and their check. */

import * as v from 'valibot'
import { lettersOff } from '../messages/spelling.js'
import { type AnyTask, isTask } from '../task/any-task.js'
import type { AnyEnqueueOptions, EnqueueOptionsOf } from '../task/enqueue-options.js'
import type { TaskInput } from '../task/task-definition.js'
import { defined } from '../values/defined.js'
import type { Duration } from '../values/duration.js'
import { instantMistake, parseInstant } from '../values/instant.js'
import { anyRecord, duration, exactly } from '../values/option-check.js'
import { cronMistake } from './cron-text.js'
import type { OnMissed, Overlap } from './due-ticks.js'
import type { ScheduleRule } from './schedule-rule.js'

/** When a schedule ticks, and what happens to ticks that are missed or overlap a job. */
interface ScheduleTiming {
  /**
   * A cron text: 5 fields, 6 with seconds before them, or a nickname such as `'@daily'`. `L` and `#` are allowed. Given a
   * day of month and a day of week, one match is enough unless one of them begins with `*`. Give this or `every`.
   */
  readonly cron?: string | undefined
  /**
   * The time between ticks, at least 1 s. Ticks are multiples of it since `from`, by default since 1970-01-01T00:00Z.
   * Give this or `cron`.
   */
  readonly every?: Duration | undefined
  /**
   * The time zone in which `cron` is read. When its clocks change, a text whose hour is `*` goes on as time passes, and
   * each other local time ticks once. Default `'UTC'`.
   */
  readonly timeZone?: string | undefined
  /**
   * What happens to ticks that were missed because no worker ran: none of them runs, only the latest, or all of them,
   * at most 1,000. Default `'latest'`.
   */
  readonly onMissed?: OnMissed | undefined
  /** Whether a tick is skipped while the job of the tick before waits or runs. Default `'allow'`: it is not skipped. */
  readonly overlap?: Overlap | undefined
  /**
   * The most by which the job of a tick is delayed, at most a day. The id of the job decides by how much. Default 0.
   */
  readonly jitter?: Duration | undefined
  /** The first possible moment of a tick: a Date, or ISO-8601 text with a zone. Default: now. */
  readonly from?: Date | string | undefined
  /** The last possible moment of a tick. Default: never ends. */
  readonly until?: Date | string | undefined
}

/**
 * The enqueue options for jobs of a schedule. The schedule sets their times, and the ids of plain jobs follow from
 * their ticks.
 */
type ScheduledEnqueueOptions<T extends AnyTask> = Omit<
  EnqueueOptionsOf<T>,
  T extends { readonly kind: 'ordered' } ? 'runAt' : 'runAt' | 'id' | 'ifWaiting' | 'atMost'
>

/** The input of each job; optional if the task takes none. */
type ScheduledInput<T extends AnyTask> =
  undefined extends TaskInput<T> ? { readonly input?: TaskInput<T> | undefined } : { readonly input: TaskInput<T> }

/** A schedule: which task, with what input, and when. */
export type ScheduleOptions<T extends AnyTask = AnyTask> = ScheduleTiming & {
  readonly task: T
  /** Enqueue options of its jobs. Default: none. */
  readonly enqueue?: ScheduledEnqueueOptions<T> | undefined
} & ScheduledInput<T>

/** Schedules by name, each with the input of its own task. */
export type SchedulesOf<Tasks extends Readonly<Record<string, AnyTask>>> = {
  readonly [Name in keyof Tasks]: ScheduleOptions<Tasks[Name]>
}

/**
 * A schedule with every default filled in.
 * @internal
 */
export interface CheckedSchedule {
  readonly task: AnyTask
  readonly input: unknown
  readonly enqueue: AnyEnqueueOptions
  readonly rule: ScheduleRule
  readonly onMissed: OnMissed
  readonly overlap: Overlap
  readonly jitterMs: number
}

const leastEveryMs = 1_000
const mostJitterMs = 86_400_000

const instant = v.pipe(
  v.custom<Date | string>(
    (value) => parseInstant(value) !== undefined,
    ({ input }) => instantMistake(input),
  ),
  v.transform((value) => parseInstant(value)!),
)

/** @internal */
export const scheduleSchema = v.pipe(
  exactly({
    cron: v.optional(
      v.custom<string>(
        (text) => cronMistake(text) === undefined,
        ({ input }) => cronMistake(input) ?? '',
      ),
    ),
    every: v.optional(duration(leastEveryMs)),
    timeZone: v.optional(
      v.custom<string>(
        (zone) => timeZoneMistake(zone) === undefined,
        ({ input }) => timeZoneMistake(input) ?? '',
      ),
    ),
    task: v.custom<AnyTask>(isTask, 'must be a task made by defineTask() or defineOrderedTask()'),
    input: v.optional(v.unknown()),
    enqueue: v.optional(anyRecord(), {}),
    onMissed: v.optional(v.picklist(['skip', 'latest', 'all'], "must be 'skip', 'latest' or 'all'"), 'latest'),
    overlap: v.optional(v.picklist(['allow', 'skip'], "must be 'allow' or 'skip'"), 'allow'),
    jitter: v.optional(duration(0, mostJitterMs), 0),
    from: v.optional(instant),
    until: v.optional(instant),
  }),
  v.check(
    ({ cron, every }) => (cron === undefined) !== (every === undefined),
    'must have `cron` or `every`, and not both',
  ),
  v.check(
    ({ every, timeZone }) => every === undefined || timeZone === undefined,
    'must not have `timeZone` with `every`, which counts from an instant; give `cron`',
  ),
  v.check(
    ({ from, until }) => from === undefined || until === undefined || from < until,
    'must have a `from` before its `until`',
  ),
  v.check(
    ({ enqueue }) => enqueue['runAt'] === undefined,
    'must not have `enqueue.runAt`: its ticks say when; `enqueue.delay` counts from each',
  ),
  v.check(
    ({ enqueue }) => enqueue['ifWaiting'] === undefined,
    "must not have `enqueue.ifWaiting`: no two ticks have the same id; `overlap: 'skip'` leaves out what would pile up",
  ),
  v.check(
    ({ task, enqueue }) => task.kind === 'ordered' || enqueue['id'] === undefined,
    'must not have `enqueue.id`: each of its jobs is named by the schedule and the tick',
  ),
  v.transform(
    ({ cron, every, timeZone = 'UTC', from, until, jitter, enqueue, ...rest }): CheckedSchedule => ({
      ...{ task: rest.task, input: rest.input, onMissed: rest.onMissed, overlap: rest.overlap, jitterMs: jitter },
      enqueue: enqueue as AnyEnqueueOptions,
      rule: { ...defined({ cron, everyMs: every }), timeZone, ...defined({ fromAt: from, untilAt: until }) },
    }),
  ),
)

/** Undefined for a time zone that this system knows; otherwise the expected form, with similar names. */
function timeZoneMistake(value: unknown): string | undefined {
  if (isTimeZone(value)) return undefined
  const near = typeof value === 'string' ? namesNear(value) : []
  const meant = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`
  return `must be the name of a time zone, such as 'UTC' or 'Europe/Zurich'${meant}`
}

/** Names only, because an offset such as '+01:00' has no daylight saving time. */
function isTimeZone(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[A-Za-z]/.test(value)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: value })
    return true
  } catch {
    return false
  }
}

/** At most three names: zones of the same place first, then names that differ by a few letters. */
function namesNear(value: string): string[] {
  const given = plain(value)
  const scored = Intl.supportedValuesOf('timeZone').map((name) => {
    const place = plain(name.slice(name.lastIndexOf('/') + 1))
    const slips = Math.min(
      lettersOff(given, plain(name)),
      lettersOff(plain(value.slice(value.lastIndexOf('/') + 1)), place),
    )
    return { name, slips }
  })
  const near = scored.filter(({ slips }) => slips <= 2 && slips < given.length / 2)
  return near
    .sort((a, b) => a.slips - b.slips)
    .slice(0, 3)
    .map(({ name }) => name)
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z/]/g, '')
}
