/**
 * An ordered sequence: random commands from a seed over ordered queues, with so few ids and payloads that they meet:
 * equal payloads in one call, in hand, waiting and dead. A plain queue is there too, to show the differences.
 */

import type { Payload } from '../../core/values/codec.js'
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

/**
 * The queues of every ordered sequence: a roomy one, a tight one with the latest payload only, one with distinct
 * payloads and one batch per shard, and a plain one.
 */
export const orderedQueues: readonly QueueSettings[] = [
  { name: 'orders', kind: 'ordered', order: 'fifo', shards: 2, merge: 'all', maxCrashes: 2, dead: {} },
  {
    ...{ name: 'latest', kind: 'ordered', order: 'fifo', shards: 1, merge: 'latest' },
    ...{ maxPending: 3, maxCrashes: 1, dead: { count: 2 } },
  },
  {
    ...{ name: 'strict', kind: 'ordered', order: 'fifo', shards: 2, exclusive: 'shard', merge: 'distinct' },
    ...{ maxPending: 12, maxCrashes: 3, dead: { ageMs: 20_000 } },
  },
  { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 2, resultsCount: 2, dead: {} },
]
const orderedIds: readonly string[] = ['a', 'b', 'd', 'e', 'É', '\uffee', '🎈']

const names = orderedQueues.map(({ name }) => name)
const orderedNames = names.filter((name) => name !== 'mail')

/** Text and bytes of the same content are not equal. */
const payloads: readonly Payload[] = ['"x"', '"x"', '"y"', '"z"', Uint8Array.of(34, 120, 34), Uint8Array.of(0, 255)]
/** The last comes before every default score: where these lie within a ms is not the same in every store. */
const scores = [-1.5, 0, 1, 1, 1, 2.25, 1_704_067_199_999]

export function orderedSequence(seed: number, steps: number): Command[] {
  return drawn(seed, steps, orderedQueues, (dice, step) =>
    dice.chance(0.12) ? hardCase(dice, step) : [command(dice, step)],
  )
}

/** Commands in a row that lead one id into a hard case. */
function hardCase(dice: Dice, step: number): Command[] {
  const queue = dice.pick(orderedNames)
  const other = dice.pick(orderedNames)
  const id = dice.pick(orderedIds)
  const handle = dice.whole(0, 1)
  const words = {
    push: (i: number, when: 'now' | 'anytime' = 'anytime', to = queue): Command => {
      const { runInMs: _, delayMs: __, ...ready } = push(dice)
      const jobs = dice.several(1, 2, () => ({ ...(when === 'now' ? ready : push(dice)), id }))
      return { handle, verb: 'enqueue', calls: [{ callId: `call-${step + i}`, queue: to, jobs }] }
    },
    take: (): Command => {
      const by = { worker: dice.pick(workers), leaseMs: 2_000, alone: dice.chance(0.4) }
      return { handle, verb: 'claim', from: [{ queue, limit: 5, ...maxPayloads(dice) }], by }
    },
    settled: (end: Settlement): Command => {
      return { handle, verb: 'settle', items: [{ claim: latest, end }] }
    },
  }
  return [{ handle, verb: 'resume', queue }, ...dice.pick(hardCases)(dice, { handle, queue, other, id, ...words, end })]
}

function command(dice: Dice, step: number): Command {
  const handle = dice.whole(0, 1)
  const queue = queueName(dice)
  const some = () => where(dice, orderedIds)
  const id = () => dice.pick(orderedIds)
  return dice.weighted<() => Command>([
    [24, () => ({ handle, verb: 'enqueue', calls: dice.several(1, 2, () => enqueueCall(dice, step)) })],
    [24, () => ({ handle, verb: 'claim', ...claim(dice) })],
    [18, () => ({ handle, verb: 'settle', items: dice.several(1, 4, () => ({ claim: ref(dice), end: end(dice) })) })],
    [5, () => ({ handle, verb: 'extend', items: dice.several(1, 3, () => extension(dice)) })],
    [14, () => ({ handle, verb: 'advance', ms: span(dice) })],
    [3, () => ({ handle, ...opening(dice, changedSettings(dice)) })],
    [2, () => ({ handle, ...limitChange(dice, orderedQueues) })],
    [0.5, () => ({ handle, verb: 'reopen' })],
    [2, () => ({ handle, verb: 'depth', queues: names })],
    [0.5, () => ({ handle, verb: dice.pick(['queues', 'workers'] as const) })],
    [2, () => ({ handle, verb: dice.pick(['get', 'get dead'] as const), queue, id: id() })],
    [3, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [4, () => ({ handle, verb: 'set fields', queue, id: id(), fields: fields(dice) })],
    [1, () => ({ handle, verb: 'list dead', queue, query: { by: dice.pick(['id', 'time'] as const), limit: 2 } })],
    [4, () => ({ handle, verb: 'cancel', queue, where: some(), ...maybe(dice, { reason: dice.pick(reasons) }) })],
    [1, () => ({ handle, verb: 'delete', queue, where: some() })],
    [2, () => ({ handle, verb: 'runNow', queue, where: some() })],
    [2, () => ({ handle, verb: 'bury', queue, where: some() })],
    [3, () => ({ handle, verb: 'revive', queue, where: some() })],
    [1, () => ({ handle, verb: 'delete dead', queue, where: some() })],
    [3, () => ({ handle, verb: 'fail', queue, id: id(), how: failure(dice) })],
    [1.5, () => ({ handle, verb: dice.pick(['pause', 'drain'] as const), queue })],
    [4, () => ({ handle, verb: 'resume', queue })],
    [0.7, () => ({ handle, verb: 'clear', queue })],
    [1.5, () => ({ handle, verb: 'reshard', queue, shards: dice.whole(1, 3) })],
    [1.5, () => ({ handle, verb: 'move', from: queue, to: queueName(dice) })],
    [1, () => ({ handle, verb: 'watch', jobs: dice.several(1, 3, () => ({ queue, id: id() })) })],
    [0.5, () => ({ handle, verb: 'beat', worker: worker(dice, names), ttlMs: dice.pick([1_000, 30_000]) })],
    [0.5, () => ({ handle, verb: 'remove worker', id: dice.pick(workers) })],
    [1, () => ({ handle, verb: 'held', worker: dice.pick(workers) })],
    [4, () => ({ handle, verb: 'gone', claims: dice.several(0, 3, () => ref(dice)), ...someoneElse(dice) })],
    [1, () => ({ handle, verb: 'adopt', claim: ref(dice), to: dice.pick(workers), ...someoneElse(dice) })],
  ])()
}

/** Sometimes the plain queue. */
function queueName(dice: Dice): string {
  return dice.chance(0.06) ? 'mail' : dice.pick(orderedNames)
}

function enqueueCall(dice: Dice, step: number) {
  return { callId: callId(dice, step), queue: queueName(dice), jobs: dice.several(1, 4, () => push(dice)) }
}

function push(dice: Dice): PlannedJob {
  const when = due(dice)
  return {
    id: dice.pick(orderedIds),
    // Two names: a task may be renamed while its jobs wait.
    task: dice.chance(0.08) ? 'sync-order' : 'sync',
    payload: dice.pick(payloads),
    priority: 0,
    rememberMs: 0,
    ...maybe(dice, { score: dice.pick(scores) }, 0.7),
    ...maybe(dice, { arrival: dice.pick(['one', 'other']) }, 0.2),
    ...maybe(dice, { codec: 'raw' }, 0.1),
    ...maybe(dice, { meta: dice.pick<Payload>(['{"trace":"ü"}', Uint8Array.of(7, 0)]) }, 0.3),
    ...when,
  }
}

/** Shards one by one, including some that do not exist, or the whole queue. */
function claim(dice: Dice) {
  const from = dice.several(1, 4, () => ({
    queue: queueName(dice),
    ...maybe(dice, { shard: dice.pick([0, 0, 1, 1, 2]) }),
    limit: dice.pick([0, 1, 1, 2, 5]),
    ...maxPayloads(dice),
    ...maybe(dice, { leaseMs: 60_000 }, 0.15),
  }))
  return { from, by: claimer(dice) }
}

function maxPayloads(dice: Dice) {
  return maybe(dice, { maxPayloads: dice.pick([1, 1, 2, Number.POSITIVE_INFINITY]) }, 0.7)
}

function end(dice: Dice): Settlement {
  const delayMs = dice.pick([0, 0, 1, 2_000, 40_000])
  const error = maybe(dice, { error: `Error: ${dice.pick(reasons)}` }, 0.7)
  const reason = maybe(dice, { reason: dice.pick(reasons) }, 0.7)
  const done = maybe(dice, { done: dice.pick([0, 1, 1, 2]) }, 0.4)
  return dice.weighted<Settlement>([
    [6, { kind: 'complete' }],
    [5, { kind: 'retry', delayMs, ...error, ...done }],
    [4, { kind: 'retry', delayMs, last: true, ...error, ...reason, ...done, ...run(dice) }],
    [3, { kind: 'release', delayMs, ...error, ...done }],
    [3, { kind: 'bury', ...error, ...reason, ...done, ...run(dice) }],
    [1, { kind: 'cancel', ...reason }],
  ])
}

/** A queue without its limits, sometimes without `merge`; or in a form that it does not have. */
function changedSettings(dice: Dice): QueueSettings {
  const {
    maxPending: _,
    merge: __,
    maxCrashes: ___,
    dead: ____,
    resultsCount: _____,
    ...stored
  } = dice.pick(orderedQueues)
  const other = dice.pick<Partial<QueueSettings>>([{ order: 'lifo' }, { exclusive: 'shard' }, { kind: 'plain' }])
  return {
    ...stored,
    ...maybe(dice, stored.kind === 'ordered' ? other : { kind: 'ordered' }, 0.1),
    ...maybe(dice, { merge: dice.pick(['all', 'all', 'all', 'distinct', 'latest'] as const) }),
    ...maybe(dice, { shards: dice.whole(1, 3) }),
  }
}

/** The subject of a row, and its vocabulary. */
interface RowWords {
  readonly handle: number
  readonly queue: string
  /** Another ordered queue, or the same. */
  readonly other: string
  readonly id: string
  /** One or two payloads for the id. `i`: the number of the command in the row. */
  push(i: number, when?: 'now' | 'anytime', queue?: string): Command
  take(): Command
  /** The end of the latest claim. */
  settled(end: Settlement): Command
  end(dice: Dice): Settlement
}

type HardCase = (dice: Dice, words: RowWords) => Command[]

/** Payloads arrive while their id runs, and then the claim ends in one of all possible ways. */
const meanwhile: HardCase = (dice, words) => [
  words.push(1, 'now'),
  words.take(),
  words.push(3),
  words.push(4),
  ...ending(dice, words),
  words.take(),
]

/** A job is cancelled while it runs; payloads that arrive afterwards are a new job. */
const cancelled: HardCase = (dice, words) => {
  const { handle, queue, id } = words
  return [
    words.push(1, 'now'),
    words.take(),
    ...(dice.chance(0.5) ? [words.push(3)] : []),
    { handle, verb: 'cancel', queue, where: { ids: [id] }, reason: 'stop' },
    ...(dice.chance(0.7) ? [words.push(5)] : []),
    ...ending(dice, words),
    words.take(),
  ]
}

/** An id is buried twice, and revived into a waiting job, a running job, or nothing. */
const buriedTwice: HardCase = (dice, words) => {
  const { handle, queue, id } = words
  const bury = (): Command[] =>
    dice.chance(0.5)
      ? [{ handle, verb: 'bury', queue, where: { ids: [id] } }]
      : [words.take(), words.settled(dice.pick<Settlement>([{ kind: 'bury' }, last]))]
  return [
    words.push(1, 'now'),
    ...bury(),
    { handle, verb: 'advance', ms: dice.pick([0, 1, 1_000, 20_000]) },
    words.push(5, 'now'),
    ...bury(),
    ...dice.weighted<readonly Command[]>([
      [1, []],
      [2, [words.push(9)]],
      [3, [words.push(9, 'now'), words.take()]],
      [
        2,
        [words.push(9, 'now'), words.take(), words.settled({ kind: 'retry', delayMs: 40_000, error: 'Error: alive' })],
      ],
    ]),
    { handle, verb: 'get dead', queue, id },
    { handle, verb: 'revive', queue, where: dice.pick([{ ids: [id] }, 'all'] as const) },
    ...ending(dice, words),
    words.take(),
  ]
}

/** An id crashes alone until it has crashed too often. */
const crashing: HardCase = (dice, words) => {
  const { handle, queue } = words
  const crash = (): Command[] => [
    words.take(),
    ...(dice.chance(0.4) ? [words.push(dice.whole(2, 9))] : []),
    { handle, verb: 'advance', ms: 2_000 },
  ]
  return [words.push(1, 'now'), ...crash(), ...crash(), ...crash(), { handle, verb: 'list', queue, query: all }]
}

/** The queue is resharded to another number of shards while jobs run, and while none runs. */
const resharded: HardCase = (dice, words) => {
  const { handle, queue } = words
  const towards = dice.pick([
    [1, 2, 3],
    [3, 1, 2],
    [2, 3, 1],
  ])
  const reshard = (shards: number): Command => ({ handle, verb: 'reshard', queue, shards })
  return [
    words.push(1, 'now'),
    words.take(),
    reshard(towards[0]!),
    words.push(4),
    words.take(),
    // The clock ends all running claims, and the next claimer recovers them.
    { handle, verb: 'advance', ms: 60_000 },
    words.take(),
    ...towards.map(reshard),
    words.take(),
  ]
}

/** An id waits in two queues, is perhaps dead in them, and one is moved into the other. */
const moved: HardCase = (dice, words) => {
  const { handle, queue, other, id } = words
  const ids = { ids: [id] }
  const bury = (from: string): Command => ({ handle, verb: 'bury', queue: from, where: ids })
  return [
    words.push(1, 'anytime', other),
    words.push(2),
    ...(dice.chance(0.3) ? [bury(other), words.push(6, 'anytime', other)] : []),
    ...(dice.chance(0.5) ? [bury(queue), words.push(4)] : []),
    ...(dice.chance(0.3) ? [words.take()] : []),
    { handle, verb: 'runNow', queue: dice.pick([queue, other]), where: dice.pick([ids, 'all'] as const) },
    { handle, verb: 'move', from: queue, to: other },
    { handle, verb: 'get', queue: other, id },
  ]
}

/** The rows of ordered sequences: commands that lead one id of a queue into each of the hard cases. */
const hardCases: readonly HardCase[] = [meanwhile, meanwhile, cancelled, buriedTwice, crashing, resharded, moved]

const last: Settlement = { kind: 'retry', delayMs: 0, last: true, error: 'Error: last', reason: 'exhausted' }
const all = { by: 'time', limit: 200 } as const

function ending(dice: Dice, words: RowWords): Command[] {
  const { handle, queue, id } = words
  return dice.weighted<() => Command[]>([
    [5, () => [words.settled(words.end(dice))]],
    [2, () => [words.settled(last)]],
    [2, () => [{ handle, verb: 'advance', ms: 2_000 }]],
    [1, () => [{ handle, verb: 'fail', queue, id, how: failure(dice) }]],
    [1, () => [{ handle, verb: 'gone', claims: [latest] }]],
  ])()
}
