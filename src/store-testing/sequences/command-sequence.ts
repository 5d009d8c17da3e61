/**
 * A command sequence: random commands from a seed, over a few queues and few ids, so that they meet. Commands that are
 * likely in production are likely here too; rare ones (a stale claim, a call sent again, a worker that dies) are made
 * likely.
 */

import type { NewJob } from '../../stores/contract/new-job.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { Command, PlannedJob, Settlement } from './command.js'
import {
  callId,
  claimer,
  drawn,
  due,
  extension,
  failure,
  fields,
  latest,
  listQuery,
  maybe,
  newPlace,
  reasons,
  ref,
  run,
  someoneElse,
  span,
  where,
  worker,
  workers,
} from './command-parts.js'
import type { Dice } from './dice.js'
import { limitChange, opening } from './limit-changes.js'

/** The queues of every sequence, as its first command opens them: roomy, tight and last in first out, and impatient. */
export const sequenceQueues: readonly QueueSettings[] = [
  { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 2, resultsCount: 2, dead: {} },
  { name: 'stack', kind: 'plain', order: 'lifo', maxPending: 4, maxCrashes: 1, resultsCount: 2, dead: { count: 2 } },
  { name: 'tight', kind: 'plain', order: 'fifo', maxPending: 6, maxCrashes: 3, dead: { ageMs: 20_000, count: 3 } },
]
const tasks = ['send', 'resize']
const names = sequenceQueues.map(({ name }) => name)
const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'É', '\uffee', '🎈', 'z']

export function commandSequence(seed: number, steps: number): Command[] {
  return drawn(seed, steps, sequenceQueues, (dice, step) =>
    dice.chance(0.08) ? dice.pick([crash, change, together])(dice, step) : [command(dice, step)],
  )
}

/** Commands in a row: a worker dies holding jobs, and then their leases end in some way. */
function crash(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = queueName(dice)
  const id = dice.pick(ids)
  const victim = dice.pick(workers)
  const take = (leaseMs: number, alone: boolean, worker = dice.pick(workers)): Command => {
    const by = { worker, leaseMs, alone }
    return { handle, verb: 'claim', from: [{ queue, limit: dice.pick([1, 2, 5]) }], by }
  }
  const settled = (end: Settlement): Command => ({ handle, verb: 'settle', items: [{ claim: latest, end }] })
  const death = dice.weighted<Command>([
    [7, { handle, verb: 'advance', ms: 1_000 }],
    [3, { handle, verb: 'gone', claims: [latest, { back: 1, stale: false }], ...someoneElse(dice) }],
  ])
  const becomes = dice.weighted<() => Command>([
    [3, () => settled({ kind: 'release', delayMs: 0 })],
    [3, () => settled(end(dice))],
    [3, () => ({ handle, verb: 'advance', ms: 1_000 })],
    [2, () => ({ handle, verb: 'fail', queue, id, how: failure(dice) })],
    [1, () => ({ handle, verb: 'gone', claims: [latest] })],
  ])()
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs: [{ ...job(dice), id }] }] },
    take(1_000, dice.chance(0.4), victim),
    { handle, verb: 'held', worker: victim },
    death,
    take(1_000, true),
    becomes,
    dice.chance(0.7)
      ? take(30_000, dice.chance(0.6))
      : { handle, verb: dice.pick(['bury', 'delete', 'cancel'] as const), queue, where: { ids: [id] } },
  ]
}

/**
 * Commands in a row: scheduled jobs come in, some for earlier than others, while workers ask and learn when to come
 * back.
 */
function change(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = queueName(dice)
  const later = (i: number, delayMs: number): Command => {
    const { runInMs: _, ...planned } = job(dice)
    return { handle, verb: 'enqueue', calls: [{ callId: `call-${step + i}`, queue, jobs: [{ ...planned, delayMs }] }] }
  }
  const ask = (): Command => {
    const by = { worker: dice.pick(workers), leaseMs: dice.pick([5_000, 30_000]) }
    return { handle, verb: 'claim', from: [{ queue, limit: 5 }], by }
  }
  return [
    { handle, verb: 'resume', queue },
    later(1, dice.pick([20_000, 30_000])),
    ask(),
    ask(),
    later(4, dice.pick([1_000, 2_000])),
    ask(),
    { handle, verb: 'advance', ms: dice.pick([1_000, 2_000, 3_000, 3_001]) },
    ask(),
  ]
}

/** Commands in a row: one claim takes many jobs, and most of them end in one call and in the same way. */
function together(dice: Dice, step: number): Command[] {
  const handle = dice.whole(0, 1)
  const queue = queueName(dice)
  const count = dice.whole(4, ids.length)
  const isBare = dice.chance(0.5)
  const bare = { task: 'send', payload: '{}', priority: 0 }
  const jobs = ids
    .slice(0, count)
    .map((id) => ({ ...(isBare ? { ...bare, rememberMs: dice.pick([0, 0, 2_000]) } : job(dice)), id }))
  const shared = dice.chance(0.5)
    ? { kind: 'complete' as const, result: { payload: '"done"', ...maybe(dice, { keepMs: 1_000 }) }, ...run(dice) }
    : end(dice)
  const items = jobs.map((_, back) => ({
    claim: { back, stale: dice.chance(0.03) },
    end: dice.chance(0.9) ? shared : end(dice),
  }))
  return [
    { handle, verb: 'resume', queue },
    { handle, verb: 'enqueue', calls: [{ callId: `call-${step}`, queue, jobs }] },
    { handle, verb: 'claim', from: [{ queue, limit: count }], by: { worker: dice.pick(workers), leaseMs: 30_000 } },
    { handle, verb: 'settle', items },
  ]
}

function command(dice: Dice, step: number): Command {
  const handle = dice.whole(0, 1)
  const queue = queueName(dice)
  return dice.weighted<() => Command>([
    [22, () => ({ handle, verb: 'enqueue', calls: dice.several(1, 2, () => enqueueCall(dice, step)) })],
    [22, () => ({ handle, verb: 'claim', ...claim(dice) })],
    [18, () => ({ handle, verb: 'settle', items: dice.several(1, 3, () => ({ claim: ref(dice), end: end(dice) })) })],
    [7, () => ({ handle, verb: 'extend', items: dice.several(1, 3, () => extension(dice)) })],
    [16, () => ({ handle, verb: 'advance', ms: span(dice) })],
    [1, () => ({ handle, ...opening(dice, changedSettings(dice)) })],
    [2, () => ({ handle, ...limitChange(dice, sequenceQueues) })],
    [0.5, () => ({ handle, verb: 'reopen' })],
    [2, () => ({ handle, verb: 'depth', queues: names })],
    [0.5, () => ({ handle, verb: dice.pick(['queues', 'workers'] as const) })],
    [2, () => ({ handle, verb: 'get', queue, id: dice.pick(ids) })],
    [3, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [4, () => ({ handle, verb: 'set fields', queue, id: dice.pick(ids), fields: fields(dice) })],
    [1, () => ({ handle, verb: 'list dead', queue, query: { by: dice.pick(['id', 'time'] as const), limit: 2 } })],
    [
      6,
      () => ({
        handle,
        verb: 'cancel',
        queue,
        where: where(dice, ids),
        ...maybe(dice, { reason: dice.pick(reasons) }),
      }),
    ],
    [2, () => ({ handle, verb: 'delete', queue, where: where(dice, ids) })],
    [2, () => ({ handle, verb: 'runNow', queue, where: where(dice, ids) })],
    [
      3,
      () => ({ handle, verb: 'reschedule', queue, ids: dice.several(1, 3, () => dice.pick(ids)), to: newPlace(dice) }),
    ],
    [2, () => ({ handle, verb: 'bury', queue, where: where(dice, ids) })],
    [3, () => ({ handle, verb: 'revive', queue, where: where(dice, ids) })],
    [3, () => ({ handle, verb: 'report', queue, task: dice.pick(tasks), most: dice.whole(0, 2) })],
    [1, () => ({ handle, verb: 'delete dead', queue, where: where(dice, ids) })],
    [3, () => ({ handle, verb: 'fail', queue, id: dice.pick(ids), how: failure(dice) })],
    [2, () => ({ handle, verb: dice.pick(['pause', 'drain'] as const), queue })],
    [4, () => ({ handle, verb: 'resume', queue })],
    [1.5, () => ({ handle, verb: 'clear', queue })],
    [1, () => ({ handle, verb: 'watch', jobs: dice.several(1, 3, () => ({ queue, id: dice.pick(ids) })) })],
    [
      4,
      () => ({
        handle,
        verb: 'expect',
        jobs: dice.several(1, 4, () => ({ queue, id: dice.pick(ids) })),
        by: dice.pick(['waiter01', 'waiter02']),
        forMs: dice.pick([0, 2_000, 20_000]),
      }),
    ],
    [1, () => ({ handle, verb: 'beat', worker: worker(dice, names), ttlMs: dice.pick([1_000, 30_000]) })],
    [0.5, () => ({ handle, verb: 'remove worker', id: dice.pick(workers) })],
    [2, () => ({ handle, verb: 'held', worker: dice.pick(workers) })],
    [5, () => ({ handle, verb: 'gone', claims: dice.several(0, 3, () => ref(dice)), ...someoneElse(dice) })],
    [1, () => ({ handle, verb: 'adopt', claim: ref(dice), to: dice.pick(workers), ...someoneElse(dice) })],
  ])()
}

/** Half of all commands go to the first queue: jobs have to meet. */
function queueName(dice: Dice): string {
  return dice.chance(0.3) ? names[0]! : dice.pick(names)
}

function enqueueCall(dice: Dice, step: number) {
  return { callId: callId(dice, step), queue: queueName(dice), jobs: dice.several(1, 4, () => job(dice)) }
}

function job(dice: Dice): PlannedJob {
  const when = due(dice)
  return {
    id: dice.pick(ids),
    task: dice.pick(tasks),
    payload: dice.chance(0.2) ? Uint8Array.of(dice.whole(0, 255), 0, 255) : `{"n":${dice.whole(0, 99)}}`,
    priority: dice.weighted([
      [6, 0],
      [3, dice.whole(-2, 2)],
      [1, dice.pick([-32_768, 32_767])],
    ]),
    rememberMs: dice.pick([0, 0, 2_000, 30_000]),
    ...maybe(dice, { expiresMs: dice.pick([1, 1_000, 3_000, 40_000]) }, 0.2),
    ...maybe(dice, { ifWaiting: 'replace' as const, atMostMs: dice.pick([1_000, 6_000, 100_000]) }, 0.3),
    ...maybe(dice, { codec: 'raw' }, 0.1),
    ...maybe(dice, { reportsDeath: true as const }, 0.4),
    ...maybe(dice, { meta: '{"trace":"ü"}' as NewJob['payload'] }, 0.3),
    ...maybe(dice, { fields: { node: dice.pick(['eu-3', 'Grüße = "ü"\0']), n: dice.whole(0, 9) } }, 0.15),
    ...when,
  }
}

function claim(dice: Dice) {
  const from = dice.several(1, 3, () => ({
    queue: queueName(dice),
    limit: dice.pick([0, 1, 1, 2, 5]),
    ...maybe(dice, { leaseMs: 60_000 }, 0.15),
  }))
  return { from, by: claimer(dice) }
}

function end(dice: Dice): Settlement {
  const delayMs = dice.pick([0, 0, 1, 2_000, 40_000])
  const error = maybe(dice, { error: `Error: ${dice.pick(reasons)}` }, 0.7)
  const reason = maybe(dice, { reason: dice.pick(reasons) }, 0.7)
  const keep = maybe(dice, { keepMs: dice.pick([1, 1_000, 20_000]) }, 0.7)
  const payload = dice.chance(0.2) ? Uint8Array.of(1, 0, 255) : '"done"'
  return dice.weighted<Settlement>([
    [4, { kind: 'complete' }],
    [4, { kind: 'complete', result: { payload, ...keep, ...maybe(dice, { codec: 'raw' }, 0.2) }, ...run(dice) }],
    [1, { kind: 'complete', result: { ...keep }, ...run(dice) }],
    [4, { kind: 'retry', delayMs, ...error }],
    [2, { kind: 'retry', delayMs, last: true, ...error, ...reason, ...run(dice) }],
    [3, { kind: 'release', delayMs, ...error }],
    [2, { kind: 'bury', ...error, ...reason, ...run(dice) }],
    [1, { kind: 'cancel', ...reason, ...run(dice) }],
  ])
}

/** A queue without its limits; sometimes with an order that it does not have. */
function changedSettings(dice: Dice): QueueSettings {
  const { name, kind, order } = dice.pick(sequenceQueues)
  return { name, kind, order: dice.chance(0.1) ? 'lifo' : order }
}
