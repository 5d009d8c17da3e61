/** The parts of random commands that all command sequences draw in the same way, whatever their queues. */

import type { FieldChanges } from '../../core/job/job-fields.js'
import type { Beat, Checkpoint } from '../../stores/contract/job-beat.js'
import type { JobSelection } from '../../stores/contract/job-records.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { ClaimRef, Command, PlannedJob } from './command.js'
import { Dice } from './dice.js'

export const workers: readonly string[] = ['worker-1', 'worker-2', 'worker-3']
export const reasons: readonly string[] = ['stop', 'obsolete', 'Grüße']

/** The latest claim. */
export const latest: ClaimRef = { back: 0, stale: false }

/** A sequence from a seed: its first command opens the queues, and `next` draws what follows. */
export function drawn(
  seed: number,
  steps: number,
  queues: readonly QueueSettings[],
  next: (dice: Dice, step: number) => readonly Command[],
): Command[] {
  const dice = new Dice(seed)
  const commands: Command[] = [{ handle: 0, verb: 'open', queues }]
  while (commands.length < steps) commands.push(...next(dice, commands.length))
  return commands.slice(0, steps)
}

/** A call of the step; sometimes it has the id of an earlier one, mostly with other jobs. */
export function callId(dice: Dice, step: number, again = 0.12): string {
  return dice.chance(again) ? `call-${dice.whole(0, step)}` : `call-${step}`
}

/** When a job is due: mostly at once. */
export function due(dice: Dice): Pick<PlannedJob, 'delayMs' | 'runInMs'> {
  return dice.weighted<Pick<PlannedJob, 'delayMs' | 'runInMs'>>([
    [6, {}],
    [2, { delayMs: dice.pick([0, 1, 1_000, 5_000, 90_000]) }],
    [2, { runInMs: dice.pick([-60_000, -1, 0, 1, 2_000, 30_000]) }],
  ])
}

/** A worker that claims, sometimes alone. */
export function claimer(dice: Dice) {
  return {
    worker: dice.pick(workers),
    leaseMs: dice.pick([1_000, 5_000, 30_000]),
    ...maybe(dice, { alone: true }, 0.4),
    ...maybe(dice, { heads: true }, 0.4),
  }
}

export function ref(dice: Dice): ClaimRef {
  return { back: Math.floor(dice.random() ** 2 * 6), stale: dice.chance(0.05) }
}

export function extension(dice: Dice) {
  const beat: Beat = {
    ...maybe(dice, { startedMs: dice.pick([0, 0, 7, 1_500.75]) }),
    ...maybe(dice, { host: dice.pick(['mill-1', 'mill-2']), pid: dice.whole(1, 9_999) }),
    ...maybe(dice, { boot: dice.pick(['boot-1', 'boot-2']), pidns: '4026531836', ticks: dice.whole(1, 1_000_000_000) }),
    ...maybe(dice, { checkpoint: checkpoint(dice) }, 0.3),
    ...maybe(dice, { log: `${dice.pick(reasons)}\0\n` }, 0.3),
    ...maybe(dice, { progress: { fraction: dice.pick([0, 0.25, 1]), ...maybe(dice, { note: '½' }) } }),
  }
  return { claim: ref(dice), leaseMs: dice.pick([500, 5_000, 60_000]), ...maybe(dice, { beat }, 0.8) }
}

/** The report on its run in the end of a claim. */
export function run(dice: Dice) {
  const run = {
    startedMs: dice.pick([0, 3, 1_200.5]),
    host: dice.pick(['mill-1', 'mill-2']),
    pid: dice.whole(1, 9_999),
  }
  return maybe(dice, { run }, 0.4)
}

function checkpoint(dice: Dice): Checkpoint {
  return dice.weighted<Checkpoint>([
    [3, { payload: `{"done":${dice.whole(0, 9)}}` }],
    [1, { payload: Uint8Array.of(0, 255, dice.whole(0, 255)), codec: 'bytes' }],
  ])
}

type PlaceWords = Extract<Command, { readonly verb: 'reschedule' }>['to']

/** Another place for jobs that wait. */
export function newPlace(dice: Dice): PlaceWords {
  const priority = dice.pick([-2, 0, 0, 1, 2, 32_767])
  const due = dice.pick<PlaceWords>([
    ...[{ delayMs: 0 }, { delayMs: 1 }, { delayMs: 3_000 }, { delayMs: 40_000 }],
    ...[{ runInMs: -60_000 }, { runInMs: 0 }, { runInMs: 2_000 }],
  ])
  return dice.weighted<PlaceWords>([
    [1, { priority }],
    [1, due],
    [1, { priority, ...due }],
  ])
}

/** Changes of fields: mostly a few, sometimes too many, or too large ones. */
export function fields(dice: Dice): FieldChanges {
  const value = () =>
    dice.weighted<string | number | boolean | null>([
      [4, dice.pick(['eu-3', 'Grüße = "ü"\0', ''])],
      [2, dice.pick([0, -1.5, 1e300])],
      [1, dice.chance(0.5)],
      [3, null],
    ])
  const count = dice.weighted<number>([
    [9, dice.whole(0, 3)],
    [1, 33],
  ])
  const large = 'x'.repeat(250)
  const names = Array.from({ length: count }, (_, i) =>
    count > 3 ? `n${i}` : dice.pick(['node', 'cost-1', 'a.b', '1']),
  )
  return Object.fromEntries(names.map((name) => [name, dice.chance(0.2) ? large : value()]))
}

/** How far the clock is moved: mostly past a change that is due soon, sometimes past everything. */
export function span(dice: Dice): number {
  return dice.weighted([
    [3, dice.whole(0, 3)],
    // The delays, leases and ages of this file, so that instants are met exactly.
    [4, dice.pick([1_000, 2_000, 5_000, 20_000, 30_000])],
    // Leads lapse to the millisecond.
    [2, dice.pick([1_001, 2_001, 6_000, 6_001])],
    [2, dice.whole(500, 6_000)],
    [2, dice.whole(10_000, 40_000)],
    [1, dice.whole(60_000, 120_000)],
  ])
}

export function where(dice: Dice, ids: readonly string[]): JobSelection {
  return dice.weighted<JobSelection>([
    [7, { ids: dice.several(0, 4, () => dice.pick(ids)) }],
    [2, 'failed'],
    [2, 'all'],
  ])
}

export function listQuery(dice: Dice) {
  const state = dice.pick(['waiting', 'ready', 'scheduled', 'running', 'completed', 'dead', 'cancelled'] as const)
  return {
    by: dice.pick(['id', 'time', 'retry'] as const),
    limit: dice.pick([1, 2, 5, 200]),
    ...maybe(dice, { state }, 0.4),
  }
}

export function failure(dice: Dice) {
  return { delayMs: dice.pick([0, 2_000]), reason: dice.pick(reasons), ...maybe(dice, { last: true }, 0.3) }
}

/** Sometimes claims are said to be another worker's. */
export function someoneElse(dice: Dice) {
  return maybe(dice, { worker: dice.pick(workers) }, 0.15)
}

/** The worker serves all queues, as any worker claims from any of them: its record says where it may lead. */
export function worker(dice: Dice, queues: readonly string[]) {
  return {
    id: dice.pick(workers),
    host: dice.pick(['mill-1', 'mill-2']),
    boot: dice.pick(['boot-1', 'boot-2']),
    pidns: dice.pick(['4026531836', '']),
    pid: dice.whole(1, 9_999),
    ticks: dice.whole(1, 1_000_000_000),
    queues,
    concurrency: 10,
    running: dice.whole(0, 10),
    startedAt: 1_700_000_000_000,
  }
}

export function maybe<T extends object>(dice: Dice, fields: T, probability = 0.5): T | Record<never, never> {
  return dice.chance(probability) ? fields : {}
}
