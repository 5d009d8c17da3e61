/**
 * A limited sequence: random commands from a seed over queues with throttles, `maxRunning`, holds, and groups, some of
 * which are paused. The
 * limits are so tight that most claims meet one, while the clock passes windows, slots and leases and the store is
 * restarted.
 */

import type { Throttle, ThrottleRule } from '../../core/queue/throttle.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { Command, PlannedJob, Settlement } from './command.js'
import {
  callId,
  drawn,
  extension,
  failure,
  latest,
  listQuery,
  maybe,
  newPlace,
  ref,
  someoneElse,
  where,
  workers,
} from './command-parts.js'
import type { Dice } from './dice.js'
import { changedRate, changedRules, otherRunning, ratedGroup } from './limit-changes.js'

const rule = (limit: number, windowMs: number, even: Partial<ThrottleRule> = {}): ThrottleRule => ({
  limit,
  windowMs,
  moderate: false,
  ...even,
})
const moderate = { moderate: true }
/**
 * Two queues share it: few starts in a short window, and not many in one that is too long for a silence after a
 * restart.
 */
const api: Throttle = {
  scope: 'api',
  by: 'queue',
  rules: [rule(3, 2_000, { spreadMs: 50 }), rule(8, 900_000, { spreadMs: 1_000 })],
}
const queue = (name: string, settings: Partial<QueueSettings> = {}): QueueSettings => {
  return { name, kind: 'plain', order: 'fifo', maxCrashes: 2, dead: {}, ...settings }
}

/** The queues of every limited sequence. */
export const limitedQueues: readonly QueueSettings[] = [
  queue('mail', { throttle: api }),
  queue('sms', { throttle: api, order: 'lifo', maxRunning: 2 }),
  queue('even', {
    throttle: { scope: 'even', by: 'queue', rules: [rule(3, 3_000, { ...moderate, spreadMs: 75, elasticBuffer: 0 })] },
  }),
  queue('sites', {
    throttle: { scope: 'sites', by: 'group', rules: [rule(2, 5_000, moderate), rule(3, 12_000)] },
    maxRunning: { perGroup: 2 },
  }),
  queue('slow', { throttle: { scope: 'slow', by: 'group', rules: [rule(3, 700_000)] } }),
  queue('both', {
    throttle: { scope: 'both', by: 'queue', rules: [rule(3, 4_000)], eachGroup: [rule(2, 5_000, moderate)] },
  }),
  queue('tenants', { maxRunning: { perGroup: 1 }, maxPending: 9 }),
  queue('fair'),
  {
    ...queue('orders', {
      throttle: { scope: 'sites', by: 'group', rules: [rule(2, 5_000, moderate), rule(3, 12_000)] },
    }),
    ...{ kind: 'ordered', shards: 2, maxRunning: 3 },
  },
]
const names = limitedQueues.map(({ name }) => name)
const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'É', '\uffee', '🎈']
export const limitedGroups = ['x', 'y', 'É', '\uffee', '🎈']

export function limitedSequence(seed: number, steps: number): Command[] {
  const rows = [rush, rush, weighted, rated, catchUp, holdTwice, pauseGroup, crash, recovered]
  return drawn(seed, steps, limitedQueues, (dice, step) =>
    dice.chance(0.12) ? dice.pick(rows)(dice, step) : [command(dice, step)],
  )
}

/** Commands in a row: many jobs of a queue, and one claim after the other as soon as its limits permit. */
function rush(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const claims = (): Command[] => [
    { handle, verb: 'claim', from: [{ queue, limit: dice.pick([1, 2, 5]) }], by },
    { handle, verb: 'advance', ms: dice.pick([999, 1_000, 1_001, 1_050, 1_500, 2_001, 2_050]) },
  ]
  const jobs = dice.several(4, 8, () => job(dice))
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs }] },
    ...claims(),
    ...claims(),
    ...(dice.chance(0.3)
      ? [{ handle, verb: 'set throttle', ...changedRules(dice, limitedQueues) } as const, ...claims()]
      : []),
    { handle, verb: 'settle', items: [{ claim: latest, end: end(dice) }] },
    ...claims(),
  ]
}

/** Commands in a row: groups with many jobs take turns in claims that give some of them several. */
function weighted(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(['fair', 'fair', 'slow', 'orders'])
  const own = [dice.pick(limitedGroups), dice.pick(limitedGroups)]
  const jobs = ids.map((id) => ({ ...job(dice), id, ...maybe(dice, { group: dice.pick(own) }, 0.9) }))
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const claim = (): Command => {
    const from = {
      queue,
      limit: dice.pick([1, 1, 2, 3, 5]),
      ...maybe(dice, { weights: weights(dice, [...own, '']) }, 0.9),
    }
    return { handle, verb: 'claim', from: [from], by }
  }
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs }] },
    ...dice.several(3, 6, claim),
    { handle, verb: 'settle', items: [{ claim: latest, end: end(dice) }] },
    claim(),
  ]
}

function rated(dice: Dice, step: number): Command[] {
  const group = dice.pick(limitedGroups)
  const jobs = dice.several(4, 8, () => ({ ...job(dice), group }))
  return ratedGroup(dice, limitedQueues, { callId: `call-${step}`, group, jobs })
}

/**
 * Commands in a row: a moderate counter starts one job after the other, is left alone though there are more, and is
 * asked again.
 */
function catchUp(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = 'even'
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const claim = (ms: number): Command[] => [
    { handle, verb: 'claim', from: [{ queue, limit: 5 }], by },
    { handle, verb: 'advance', ms },
  ]
  const jobs = ids.map((id) => ({ ...job(dice), id }))
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'set throttle', queue, rules: [rule(3, 3_000, { ...moderate, elasticBuffer: dice.whole(0, 1) })] },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs }] },
    ...[1_000, 1_000, 1_001, dice.pick([2_000, 2_500, 3_001]), dice.whole(0, 500)].flatMap(claim),
    ...(dice.chance(0.4)
      ? [{ handle, verb: 'clear', queue } as const, { handle, verb: 'advance', ms: 1_001 } as const]
      : []),
    ...claim(1_000),
  ]
}

/** Commands in a row: jobs of a group become suspects, and claims made alone ask for them, one after the other. */
function crash(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const group = dice.pick(limitedGroups)
  const ask = (limit: number, leaseMs: number, alone: boolean): Command => {
    return { handle, verb: 'claim', from: [{ queue, limit }], by: { worker: dice.pick(workers), leaseMs, alone } }
  }
  const hold = { of: dice.pick(['queue', 'group'] as const), forMs: 4_000 }
  const jobs = dice.several(2, 5, () => ({ ...job(dice), ...maybe(dice, { group }, 0.8) }))
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs }] },
    ask(dice.pick([2, 5]), 1_000, false),
    { handle, verb: 'advance', ms: 1_000 },
    ask(1, 30_000, true),
    ask(1, 30_000, true),
    {
      handle,
      verb: 'settle',
      items: [{ claim: latest, end: { kind: 'release', delayMs: 0, hold } }],
    },
    ask(1, 30_000, true),
    { handle, verb: 'advance', ms: dice.pick([3_999, 4_000, 5_001]) },
    ask(1, 30_000, true),
    ask(1, 30_000, true),
  ]
}

/**
 * Commands in a row: the store is restarted a while after a start, and asked while its long windows still contain the
 * charged starts.
 */
function recovered(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(['mail', 'slow'])
  const group = dice.pick(limitedGroups)
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const claim: Command = { handle, verb: 'claim', from: [{ queue, limit: 5 }], by }
  const enqueue = (i: number): Command => {
    const jobs = dice.several(3, 5, () => ({ ...job(dice), group }))
    return { handle, verb: 'enqueue', calls: [{ callId: `call-${step + i}`, queue, jobs }] }
  }
  return [
    { handle, verb: 'resume', queue },
    enqueue(1),
    claim,
    { handle, verb: 'advance', ms: dice.pick([60_000, 300_000, 699_000]) },
    { handle, verb: 'restart' },
    enqueue(5),
    claim,
    { handle, verb: 'advance', ms: dice.pick([2_001, 650_000]) },
    claim,
    { handle, verb: 'throttle', queue, ...(queue === 'slow' ? { group } : {}) },
  ]
}

/** Commands in a row: two jobs hold their queue, or their group, for different times, and more jobs come in. */
function holdTwice(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const by = { worker: dice.pick(workers), leaseMs: 30_000 }
  const group = dice.pick(limitedGroups)
  const of = dice.pick(['queue', 'group'] as const)
  const jobs = () => dice.several(3, 5, () => ({ ...job(dice), ...maybe(dice, { group }, 0.8) }))
  const enqueue = (i: number): Command => {
    return { handle, verb: 'enqueue', calls: [{ callId: `call-${step + i}`, queue, jobs: jobs() }] }
  }
  const claim: Command = { handle, verb: 'claim', from: [{ queue, limit: 5 }], by }
  const hold = (back: number, forMs: number): Command => {
    const end = { kind: 'release', delayMs: 0, hold: { of, forMs } } as const
    return { handle, verb: 'settle', items: [{ claim: { back, stale: false }, end }] }
  }
  return [
    { handle, verb: 'resume', queue },
    enqueue(1),
    claim,
    hold(0, 4_000),
    hold(1, dice.pick([1, 1_000])),
    ...(dice.chance(0.3) ? [{ handle, verb: 'release', queue, ...maybe(dice, { group }) } as const, claim] : []),
    { handle, verb: dice.pick(['delete', 'runNow'] as const), queue, where: where(dice, ids) },
    enqueue(6),
    { handle, verb: 'advance', ms: dice.pick([1, 1_000]) },
    claim,
    { handle, verb: 'advance', ms: dice.pick([2_999, 3_000, 3_999]) },
    claim,
  ]
}

/** Commands in a row: a group is paused while it has jobs, gets more of them, and goes on. */
function pauseGroup(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const group = dice.pick(limitedGroups)
  const claim: Command = {
    handle,
    verb: 'claim',
    from: [{ queue, limit: dice.pick([2, 5]) }],
    by: { worker: dice.pick(workers), leaseMs: 30_000, ...maybe(dice, { alone: true }, 0.2) },
  }
  const enqueue = (i: number): Command => {
    const jobs = dice.several(2, 4, () => ({ ...job(dice), ...maybe(dice, { group }, 0.8) }))
    return { handle, verb: 'enqueue', calls: [{ callId: `call-${step + i}`, queue, jobs }] }
  }
  return [
    { handle, verb: 'resume', queue },
    enqueue(1),
    ...(dice.chance(0.5) ? [claim] : []),
    { handle, verb: 'pause group', queue, group },
    { handle, verb: 'settle', items: [{ claim: latest, end: end(dice) }] },
    claim,
    enqueue(6),
    { handle, verb: 'advance', ms: dice.pick([1, 1_000, 4_000]) },
    { handle, verb: 'holds', queue, limit: dice.pick([1, 10]) },
    claim,
    { handle, verb: 'resume group', queue, group },
    claim,
  ]
}

function command(dice: Dice, step: number): Command {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const some = () => where(dice, ids)
  return dice.weighted<() => Command>([
    [24, () => ({ handle, verb: 'enqueue', calls: dice.several(1, 2, () => enqueueCall(dice, step)) })],
    [30, () => ({ handle, verb: 'claim', ...claim(dice) })],
    [18, () => ({ handle, verb: 'settle', items: dice.several(1, 4, () => ({ claim: ref(dice), end: end(dice) })) })],
    [3, () => ({ handle, verb: 'extend', items: dice.several(1, 3, () => extension(dice)) })],
    [20, () => ({ handle, verb: 'advance', ms: span(dice) })],
    [1.5, () => ({ handle, verb: 'restart' })],
    [1, () => ({ handle, verb: 'open', queues: [changedSettings(dice)], ...maybe(dice, { follows: true }, 0.2) })],
    [2, () => ({ handle, ...changedRunning(dice) })],
    [0.5, () => ({ handle, verb: 'reopen' })],
    [4, () => ({ handle, verb: 'throttle', queue, ...maybe(dice, { group: dice.pick(limitedGroups) }) })],
    [1.5, () => ({ handle, verb: 'set throttle', ...changedRules(dice, limitedQueues) })],
    [1.5, () => ({ handle, ...changedRate(dice, limitedQueues, dice.pick(limitedGroups)) })],
    [1, () => ({ handle, verb: 'rates', queue, limit: dice.whole(0, 3) })],
    [
      2,
      () => ({
        handle,
        verb: 'holds',
        queue,
        limit: dice.whole(0, 3),
        ...maybe(dice, { groups: dice.several(0, 3, () => dice.pick(limitedGroups)) }),
      }),
    ],
    [2, () => ({ handle, verb: 'release', queue, ...maybe(dice, { group: dice.pick(limitedGroups) }, 0.7) })],
    [1.5, () => ({ handle, verb: 'pause group', queue, group: dice.pick(limitedGroups) })],
    [3, () => ({ handle, verb: 'resume group', queue, group: dice.pick(limitedGroups) })],
    [1, () => ({ handle, verb: 'depth', queues: names })],
    [0.5, () => ({ handle, verb: dice.pick(['queues', 'workers'] as const) })],
    [1, () => ({ handle, verb: 'get', queue, id: dice.pick(ids) })],
    [2, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [3, () => ({ handle, verb: 'cancel', queue, where: some() })],
    [1, () => ({ handle, verb: 'delete', queue, where: some() })],
    [2, () => ({ handle, verb: 'runNow', queue, where: some() })],
    [
      2,
      () => ({ handle, verb: 'reschedule', queue, ids: dice.several(1, 3, () => dice.pick(ids)), to: newPlace(dice) }),
    ],
    [1, () => ({ handle, verb: 'bury', queue, where: some() })],
    [2, () => ({ handle, verb: 'revive', queue, where: some() })],
    [2, () => ({ handle, verb: 'fail', queue, id: dice.pick(ids), how: failure(dice) })],
    [1, () => ({ handle, verb: 'pause', queue })],
    [3, () => ({ handle, verb: 'resume', queue })],
    [0.7, () => ({ handle, verb: 'clear', queue })],
    [3, () => ({ handle, verb: 'gone', claims: dice.several(0, 3, () => ref(dice)), ...someoneElse(dice) })],
    [1, () => ({ handle, verb: 'adopt', claim: ref(dice), to: dice.pick(workers), ...someoneElse(dice) })],
  ])()
}

function enqueueCall(dice: Dice, step: number) {
  const id = callId(dice, step)
  const { name, kind } = dice.pick(limitedQueues)
  const ofPlain = () => ({
    ...maybe(dice, { expiresMs: dice.pick([1_000, 2_000, 20_000]) }, 0.15),
    ...maybe(dice, { ifWaiting: 'replace' as const, atMostMs: dice.pick([1_000, 6_000, 100_000]) }, 0.2),
  })
  const jobs = dice.several(1, 4, () => ({ ...job(dice), ...(kind === 'plain' ? ofPlain() : {}) }))
  return { callId: id, queue: name, jobs }
}

function job(dice: Dice): PlannedJob {
  return {
    id: dice.pick(ids),
    task: 'fetch',
    payload: `{"n":${dice.whole(0, 3)}}`,
    priority: 0,
    rememberMs: 0,
    ...maybe(dice, { group: dice.pick(limitedGroups) }, 0.8),
    ...dice.weighted<Partial<PlannedJob>>([
      [8, {}],
      [1, { delayMs: dice.pick([1, 1_000, 5_000]) }],
      [1, { runInMs: dice.pick([-60_000, 0, 2_000]) }],
    ]),
  }
}

function claim(dice: Dice) {
  const from = dice.several(1, 3, () => ({
    queue: dice.pick(names),
    limit: dice.pick([0, 1, 1, 2, 3, 5, 10]),
    ...maybe(dice, { leaseMs: 60_000 }, 0.15),
    ...maybe(dice, { lateMs: dice.pick([1, 100, 2_000]) }, 0.15),
    ...maybe(dice, { weights: weights(dice) }, 0.3),
  }))
  const by = {
    worker: dice.pick(workers),
    leaseMs: dice.pick([1_000, 5_000, 30_000]),
    ...maybe(dice, { alone: true }, 0.25),
    ...maybe(dice, { heads: true }, 0.2),
  }
  return { from, by }
}

function weights(dice: Dice, of = [...limitedGroups, '']): Record<string, number> {
  return Object.fromEntries(dice.several(1, 3, () => [dice.pick(of), dice.pick([1, 2, 3, 100])] as const))
}

function end(dice: Dice): Settlement {
  const delayMs = dice.pick([0, 0, 1, 2_000])
  const hold = { of: dice.pick(['queue', 'group'] as const), forMs: dice.pick([1, 1_000, 4_000]) }
  return dice.weighted<Settlement>([
    [6, { kind: 'complete' }],
    [3, { kind: 'complete', hold }],
    [3, { kind: 'retry', delayMs }],
    [1, { kind: 'retry', delayMs, hold }],
    [1, { kind: 'retry', delayMs, last: true }],
    [3, { kind: 'release', delayMs }],
    [3, { kind: 'release', delayMs: 0, hold }],
    [1, { kind: 'bury' }],
    [1, { kind: 'cancel' }],
  ])
}

/** Slots, windows with their spread, and leases, met to the millisecond and exceeded by one. */
function span(dice: Dice): number {
  return dice.weighted([
    [3, dice.whole(0, 3)],
    [5, dice.pick([999, 1_000, 1_001, 1_050, 2_000, 2_050, 2_051, 2_500, 3_000, 3_075, 4_000, 5_001])],
    [3, dice.whole(1, 3_000)],
    [2, dice.pick([5_000, 12_000, 12_001, 30_000])],
    [1, dice.pick([60_000, 899_000, 900_001])],
  ])
}

/** Other numbers of running jobs, for a queue that has some. */
function changedRunning(dice: Dice) {
  const queue = dice.pick(limitedQueues.filter(({ maxRunning }) => maxRunning !== undefined))
  return { verb: 'setLimits', queue: queue.name, change: otherRunning(dice, queue) } as const
}

/**
 * Another `maxRunning`, or a throttle that the queue does not have. Its scope is the queue's own name: on a cluster it
 * is then in the queue's place.
 */
function changedSettings(dice: Dice): QueueSettings {
  const { maxRunning, ...stored } = dice.pick(limitedQueues)
  const bound = typeof maxRunning === 'object' ? { perGroup: dice.whole(1, 2) } : dice.whole(1, 4)
  const other = { scope: stored.name, by: 'queue', rules: [rule(1, 1_000)] } as const
  return {
    ...stored,
    ...(maxRunning === undefined ? {} : { maxRunning: bound }),
    ...maybe(dice, { throttle: other }, stored.throttle === undefined ? 0.5 : 0.2),
  }
}
