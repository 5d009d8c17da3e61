/** The enqueue of due ticks: a schedule is stepped past them, and what became of each is reported. */

import { hasCode } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import { type DueTicks, dueTicks, punctualMs } from '../../core/schedule/due-ticks.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import type { Surroundings } from '../../core/surroundings.js'
import { payloadBytes } from '../../core/values/codec.js'
import type { Enqueued } from '../../stores/contract/new-job.js'
import type { Schedules, ScheduleTick, StoredSchedule } from '../../stores/contract/schedules.js'
import { tickId } from '../../stores/rules/schedule-record.js'
import { scheduledJob } from './schedule-definition.js'

type Ticking = Pick<Surroundings, 'events' | 'packing' | 'newId'>

/**
 * `'done'`: nothing is due any more. `'lost'`: somebody else ticks it, or it was changed. `'too many'`: the queue has no
 * room for as many jobs at once; try again with `room`. `'full'`, `'draining'`: the queue takes none.
 */
type DueOutcome =
  | { readonly outcome: 'done'; readonly nextAt: number | undefined }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'too many'; readonly room: number }
  | { readonly outcome: 'full' | 'draining'; readonly hasStepped: boolean }

/**
 * Enqueues the due ticks of a schedule, as its policy has it. `room`: the most jobs of one step. Any process may call it
 * at any time: each tick is enqueued once. Throws `CodecError` for jobs that cannot be sealed here.
 */
export async function enqueueDue(
  { events, packing, newId }: Ticking,
  schedules: Pick<Schedules, 'tick'>,
  schedule: StoredSchedule & { readonly nextAt: number },
  now: number,
  room?: number,
): Promise<DueOutcome> {
  const { definition, nextAt } = schedule
  const { name, queue, rule } = definition
  const ticks = ticksOf(rule)
  const due = dueTicks(ticks, definition, nextAt, now)
  let hasStepped = false
  let enqueued = 0
  try {
    for (const step of tickSteps(schedule, due, packing, newId, room)) {
      const passedAt = step.tick.skips > 0 ? ticks.latest(step.instants[0]! - 1, nextAt - 1) : undefined
      const outcome = await enqueueStep(events, schedules, schedule, step, now, passedAt)
      if (outcome === 'too many') return { outcome, room: Math.floor(step.instants.length / 2) }
      if (outcome === 'lost') return { outcome }
      if (outcome === 'full' || outcome === 'draining') return { outcome, hasStepped }
      hasStepped = true
      enqueued += outcome
    }
    return { outcome: 'done', nextAt: due.nextAt }
  } finally {
    // Also if a later step was refused: the next look knows nothing of those before it.
    if (due.areMissed && hasStepped)
      events.emit('schedule.missed', {
        ...{ schedule: name, queue, tickAt: nextAt, enqueued, leftOut: due.leftOut, reason: 'late' },
      })
  }
}

/** The most jobs that one step enqueues. */
const mostJobs = 100
const mostBytes = 524_288

/** A step, and the instants of its jobs. */
interface TickStep {
  readonly tick: ScheduleTick
  readonly instants: readonly number[]
}

/**
 * The steps of a schedule over its due ticks: each enqueues some of them and goes on to the next. `most`: the jobs of a
 * step. Throws `CodecError` for a job that cannot be sealed here.
 */
function tickSteps(
  stored: StoredSchedule,
  due: DueTicks,
  packing: Surroundings['packing'],
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

/** `passedAt`: the last tick that the step leaves out before those that it enqueues. Resolves with the number of those. */
async function enqueueStep(
  events: Events,
  schedules: Pick<Schedules, 'tick'>,
  { definition: { name, queue } }: StoredSchedule,
  { tick, instants }: TickStep,
  now: number,
  passedAt: number | undefined,
): Promise<number | 'lost' | 'too many' | 'full' | 'draining'> {
  const answer = await schedules.tick(tick)
  if (answer.outcome === 'lost') return 'lost'
  if (answer.outcome === 'full' || answer.outcome === 'draining')
    // A step enqueues all or nothing: a queue with less room would be full for ever.
    return answer.outcome === 'full' && instants.length > 1 ? 'too many' : answer.outcome
  const skipped = tick.skips + (answer.outcome === 'skipped' ? instants.length : 0)
  if (skipped > 0)
    events.emit('schedule.skipped', {
      ...{ schedule: name, queue, lastId: tick.unless, ticks: skipped },
      tickAt: answer.outcome === 'skipped' ? tick.lastAt! : passedAt!,
    })
  if (answer.outcome === 'ticked') events.counter?.enqueued(queue, answer.enqueued.filter(isStored).length)
  if (answer.outcome === 'ticked' && events.has('schedule.ticked'))
    for (const [i, { id, task }] of tick.jobs.entries())
      events.emit('schedule.ticked', {
        ...{ schedule: name, queue, id, task, tickAt: instants[i]!, lateMs: now - instants[i]! },
        outcome: isStored(answer.enqueued[i]!) ? (answer.enqueued[i] as 'added' | 'merged') : 'duplicate',
      })
  return answer.outcome === 'ticked' ? instants.length : 0
}

function isStored(answer: Enqueued): boolean {
  return answer !== 'duplicate' && answer !== 'dead'
}

/**
 * Before a schedule stops to tick as it did, enqueues the ticks that are due: the worker that leads the schedules may have
 * been away for a moment. A pause makes up for none that were missed. What is left is given up, as well as ticks that the queue does
 * not take, and reported as missed for this reason. Returns the schedule as it is then; undefined if somebody else
 * changed it meanwhile.
 */
export async function enqueueDueBefore(
  surroundings: Ticking,
  schedules: Pick<Schedules, 'tick' | 'get'>,
  schedule: StoredSchedule,
  now: number,
  reason: 'paused' | 'changed',
): Promise<StoredSchedule | undefined> {
  const { definition, revision, nextAt } = schedule
  if (nextAt === undefined || nextAt > now) return schedule
  const { name, queue } = definition
  if (reason === 'changed' || now - nextAt <= punctualMs)
    await enqueuePatiently(surroundings, schedules, { ...schedule, nextAt }, now)
  const left = await schedules.get(name)
  if (left?.revision !== revision) return undefined
  if (left.nextAt === undefined || left.nextAt > now) return left
  const { nextAt: next, leftOut, lastAt } = passed(left.definition, left.nextAt, now)
  const { outcome } = await schedules.tick({
    ...{ name, queue, revision, dueAt: left.nextAt, lastAt, callId: surroundings.newId() },
    ...{ jobs: [], skips: 0, misses: leftOut },
    ...(next === undefined ? {} : { nextAt: next }),
  })
  if (outcome === 'lost') return undefined
  surroundings.events.emit('schedule.missed', {
    ...{ schedule: name, queue, tickAt: left.nextAt, enqueued: 0, leftOut, reason },
  })
  return schedules.get(name)
}

/** Enqueues as many of the due ticks as the queue takes. A job that cannot be sealed here is none of them. */
async function enqueuePatiently(
  surroundings: Ticking,
  schedules: Pick<Schedules, 'tick' | 'get'>,
  schedule: StoredSchedule & { readonly nextAt: number },
  now: number,
): Promise<void> {
  const { name } = schedule.definition
  let present = schedule
  for (let room: number | undefined; ; ) {
    const done: DueOutcome | undefined = await enqueueDue(surroundings, schedules, present, now, room).catch(
      unlessUnsealed,
    )
    if (done?.outcome !== 'too many') return
    const read = await schedules.get(name)
    if (read?.revision !== schedule.revision || read.nextAt === undefined || read.nextAt > now) return
    present = { ...read, nextAt: read.nextAt }
    room = done.room
  }
}

function unlessUnsealed(error: unknown): undefined {
  if (!hasCode(error, 'codec-failed')) throw error
}

/** The ticks from `dueAt` to `now`, all left out. */
function passed(definition: StoredSchedule['definition'], dueAt: number, now: number) {
  const ticks = ticksOf(definition.rule)
  const due = dueTicks(ticks, { onMissed: 'latest', overlap: 'allow' }, dueAt, now)
  return { nextAt: due.nextAt, leftOut: due.leftOut + due.ticks.length, lastAt: due.latestAt }
}
