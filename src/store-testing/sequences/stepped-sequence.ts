/**
 * A stepped sequence: random commands from a seed over a few jobs that keep steps, sleep, and wait for signals. A step, a
 * sleep and a signal have the same few names, signals come too early and too late, and some jobs are joins.
 */

import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { NewSignal, NewStep } from '../../stores/contract/steps.js'
import type { Command, PlannedCall, PlannedJob, Settlement } from './command.js'
import {
  callId,
  drawn,
  extension,
  failure,
  latest,
  listQuery,
  maybe,
  newPlace,
  reasons,
  ref,
  someoneElse,
  where,
  workers,
} from './command-parts.js'
import type { Dice } from './dice.js'

/** The queues of every stepped sequence. */
export const steppedQueues: readonly QueueSettings[] = [
  { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 2, resultsCount: 2, dead: { ageMs: 60_000 } },
  { name: 'stack', kind: 'plain', order: 'lifo', maxPending: 5, maxCrashes: 1, dead: { count: 2 } },
]
const names = steppedQueues.map(({ name }) => name)
const ids = ['a', 'b', 'c', 'd', 'É', '🎈']
/** Of steps, sleeps and signals alike: each kind has its names for itself. */
const given = ['go', 'stop', 'ü\0"']

export function steppedSequence(seed: number, steps: number): Command[] {
  return drawn(seed, steps, steppedQueues, (dice, step) =>
    dice.chance(0.15) ? wait(dice, step) : [command(dice, step)],
  )
}

/** Commands in a row: a job comes to a wait, and this ends in some way. */
function wait(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const [queue, id] = [dice.pick(names), dice.pick(ids)]
  const job = { queue, id }
  const signal = dice.pick(given)
  const ends = (): Command =>
    dice.weighted<() => Command>([
      [4, () => ({ handle, verb: 'signal', job, signal: { ...sent(dice), name: signal } })],
      [4, () => ({ handle, verb: 'sweep waits', worker: 'worker-1' })],
      [2, () => ({ handle, verb: 'signal', job, signal: sent(dice) })],
      [
        2,
        () => ({
          handle,
          verb: dice.pick(['cancel', 'delete', 'bury', 'runNow'] as const),
          queue,
          where: { ids: [id] },
        }),
      ],
      [1, () => ({ handle, verb: 'enqueue', calls: [{ callId: `again-${step}`, queue, jobs: [planned(dice, id)] }] })],
    ])()
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `wait-${step}`, queue, jobs: [planned(dice, id)] }] },
    { handle, verb: 'claim', from: [{ queue, limit: 1 }], by: { worker: 'worker-1', leaseMs: 30_000 } },
    dice.chance(0.5)
      ? { handle, verb: 'keep', claim: latest, leaseMs: 30_000, step: reached(dice) }
      : { handle, verb: 'signal', job, signal: sent(dice) },
    { handle, verb: 'settle', items: [{ claim: latest, end: { kind: 'wait', signal, ...bound(dice) } }] },
    { handle, verb: 'advance', ms: dice.pick([0, 999, 1_000, 5_000]) },
    ends(),
    ends(),
  ]
}

function command(dice: Dice, step: number): Command {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const id = dice.pick(ids)
  const job = { queue, id }
  const action = (verb: 'delete' | 'runNow' | 'bury' | 'revive' | 'delete dead'): Command => ({
    ...{ handle, verb, queue, where: where(dice, ids) },
  })
  return dice.weighted<() => Command>([
    [14, () => ({ handle, verb: 'enqueue', calls: [call(dice, step, queue)] })],
    [4, () => ({ handle, verb: 'graph', calls: joined(dice, step) })],
    [20, () => ({ handle, verb: 'claim', ...claim(dice) })],
    [18, () => ({ handle, verb: 'settle', items: dice.several(1, 3, () => ({ claim: ref(dice), end: end(dice) })) })],
    [16, () => ({ handle, verb: 'keep', claim: ref(dice), leaseMs: dice.pick([1, 30_000]), step: reached(dice) })],
    [14, () => ({ handle, verb: 'signal', job, signal: sent(dice) })],
    [5, () => ({ handle, verb: 'forget', job, name: dice.pick(given), of: dice.pick(['step', 'signal']) })],
    [2, () => ({ handle, verb: 'steps', job })],
    [6, () => ({ handle, verb: 'sweep waits', worker: 'worker-1' })],
    [3, () => ({ handle, verb: 'sweep', worker: 'worker-1' })],
    [10, () => ({ handle, verb: 'advance', ms: dice.pick([0, 500, 1_000, 2_000, 5_000, 20_000, 61_000]) })],
    [3, () => ({ handle, verb: 'extend', items: [extension(dice)] })],
    [4, () => ({ handle, verb: 'cancel', queue, where: where(dice, ids), ...maybe(dice, { reason: 'stop' }) })],
    [2, () => action('delete')],
    [2, () => action('runNow')],
    [
      1,
      () => ({ handle, verb: 'reschedule', queue, ids: dice.several(1, 3, () => dice.pick(ids)), to: newPlace(dice) }),
    ],
    [3, () => action('bury')],
    [4, () => action('revive')],
    [1, () => action('delete dead')],
    [2, () => ({ handle, verb: 'fail', queue, id, how: failure(dice) })],
    [2, () => ({ handle, verb: 'set fields', queue, id, fields: { node: dice.pick(reasons) } })],
    [2, () => ({ handle, verb: 'get', queue, id })],
    [2, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [3, () => ({ handle, verb: 'gone', claims: dice.several(1, 2, () => ref(dice)), ...someoneElse(dice) })],
    [1, () => ({ handle, verb: dice.pick(['pause', 'drain', 'clear'] as const), queue })],
    [3, () => ({ handle, verb: 'resume', queue })],
    [2, () => ({ handle, verb: 'depth', queues: names })],
    [0.5, () => ({ handle, verb: 'reopen' })],
  ])()
}

function call(dice: Dice, step: number, queue: string): PlannedCall {
  return { callId: callId(dice, step, 0.1), queue, jobs: dice.several(1, 3, () => planned(dice, dice.pick(ids))) }
}

/**
 * A join and its only member, in another queue, which no claim asks together with that of the join: whether a claim that
 * ends a member already takes its join is the store's own affair.
 */
function joined(dice: Dice, step: number): PlannedCall[] {
  const [home, queue] = dice.chance(0.5) ? (['mail', 'stack'] as const) : (['stack', 'mail'] as const)
  const [join, member] = dice.pick([
    ['a', 'b'],
    ['c', 'É'],
  ] as const)
  const set = { name: 'all', queue, ids: member, isMany: false, onDead: 'go-on', keepsResults: false, size: 1 } as const
  const place = {
    join: { queue: home, id: join },
    set: 'all',
    number: 0,
    onDead: 'go-on',
    keepsResults: false,
  } as const
  const { delayMs: _, ifWaiting: __, ...job } = planned(dice, join)
  const { ifWaiting: ___, ...other } = planned(dice, member)
  const about = { sets: [set], sealWithinMs: 60_000, ...maybe(dice, { withinMs: 5_000 }, 0.3) }
  return [
    { callId: `graph-${step}`, queue: home, jobs: [{ ...job, join: about }] },
    { callId: `member-${step}`, queue, jobs: [{ ...other, memberOf: [place] }] },
  ]
}

function planned(dice: Dice, id: string): PlannedJob {
  return {
    ...{ id, task: 'order', payload: `${dice.whole(0, 9)}` },
    priority: dice.pick([0, 0, 0, 2]),
    rememberMs: dice.pick([0, 0, 2_000]),
    ...maybe(dice, { expiresMs: dice.pick([1_000, 40_000]) }, 0.3),
    ...maybe(dice, { delayMs: 1_000 }, 0.1),
    ...maybe(dice, { ifWaiting: 'replace' as const }, 0.3),
    ...maybe(dice, { group: 'g1' }, 0.15),
    ...(id === 'a' ? { fields: { of: id } } : {}),
  }
}

function reached(dice: Dice): NewStep {
  const name = dice.pick(given)
  if (dice.chance(0.3)) return { name, kind: 'sleep', forMs: dice.pick([0, 1_000, 5_000]) }
  return { name, kind: 'step', ...value(dice) }
}

function sent(dice: Dice): NewSignal {
  return { name: dice.pick(given), ...value(dice) }
}

function value(dice: Dice) {
  const payload = dice.chance(0.2) ? Uint8Array.of(1, 0, 255) : `"${dice.whole(0, 99)}"`
  return maybe(dice, { payload, ...maybe(dice, { codec: 'raw' }, 0.2) }, 0.8)
}

function bound(dice: Dice) {
  return maybe(dice, { withinMs: dice.pick([0, 1_000, 5_000]) }, 0.7)
}

function claim(dice: Dice) {
  const from = [{ queue: dice.pick(names), limit: dice.pick([0, 1, 2, 5]) }]
  const by = { worker: dice.pick(workers), leaseMs: dice.pick([1_000, 5_000, 30_000]) }
  return { from, by: { ...by, ...maybe(dice, { alone: true }, 0.4) } }
}

function end(dice: Dice): Settlement {
  const error = maybe(dice, { error: `Error: ${dice.pick(reasons)}` }, 0.7)
  return dice.weighted<Settlement>([
    [7, { kind: 'wait', signal: dice.pick(given), ...bound(dice) }],
    [3, { kind: 'release', delayMs: dice.pick([0, 1_000]) }],
    [3, { kind: 'retry', delayMs: dice.pick([0, 2_000]), ...error }],
    [1, { kind: 'retry', delayMs: 0, last: true, ...error }],
    [2, { kind: 'complete' }],
    [2, { kind: 'complete', result: { payload: '"done"', ...maybe(dice, { keepMs: 2_000 }) } }],
    [2, { kind: 'bury', ...error, ...maybe(dice, { reason: 'unrecoverable' }) }],
    [1, { kind: 'cancel' }],
  ])
}
