/** The rows of ordered sequences: commands that lead one id of a queue into each of the hard cases. */

import type { Command, Settlement } from './command.js'
import { failure } from './command-parts.js'
import type { Dice } from './dice.js'

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

export const hardCases: readonly HardCase[] = [meanwhile, meanwhile, cancelled, buriedTwice, crashing, resharded, moved]

const last: Settlement = { kind: 'retry', delayMs: 0, last: true, error: 'Error: last', reason: 'exhausted' }
const all = { by: 'time', limit: 200 } as const

function ending(dice: Dice, words: RowWords): Command[] {
  const { handle, queue, id } = words
  return dice.weighted<() => Command[]>([
    [5, () => [words.settled(words.end(dice))]],
    [2, () => [words.settled(last)]],
    [2, () => [{ handle, verb: 'advance', ms: 2_000 }]],
    [1, () => [{ handle, verb: 'fail', queue, id, how: failure(dice) }]],
    [1, () => [{ handle, verb: 'gone', claims: [{ back: 0, stale: false }] }]],
  ])()
}
