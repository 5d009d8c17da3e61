/**
 * A scheduled sequence: random commands from a seed over a few schedules. They tick into a tight queue, one with
 * `maxRunning`, and an ordered one, while they are changed, move from queue to queue, and are ticked by outdated
 * readings.
 */

import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { Command, PlannedSchedule, Settlement } from './command.js'
import { drawn, listQuery, maybe, ref, workers } from './command-parts.js'
import type { Dice } from './dice.js'

/** The queues of every scheduled sequence. */
export const scheduledQueues: readonly QueueSettings[] = [
  { name: 'mail', kind: 'plain', order: 'fifo', maxPending: 4, maxCrashes: 2, dead: {} },
  { name: 'stack', kind: 'plain', order: 'lifo', maxRunning: 2, maxCrashes: 2, dead: {} },
  { name: 'orders', kind: 'ordered', order: 'fifo', shards: 2, maxPending: 6, maxCrashes: 2, dead: {} },
]

const queues = scheduledQueues.map(({ name }) => name)
const names = ['a', 'b', 'É', 'z-1']
const ids = ['one', 'two', 'three']
/** The time between ticks. */
const everyMs = 5_000

export function scheduledSequence(seed: number, steps: number): Command[] {
  return drawn(seed, steps, scheduledQueues, (dice, step) => [command(dice, step)])
}

function command(dice: Dice, step: number): Command {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(queues)
  const name = dice.pick(names)
  const by = dice.weighted([
    [5, 'stored' as const],
    [1, 'read' as const],
  ])
  return dice.weighted<() => Command>([
    [14, () => ({ handle, verb: 'put schedule', schedule: schedule(dice, step), by })],
    [22, () => ({ handle, verb: 'tick', name, callId: `tick-${step}`, by, ...tick(dice) })],
    [3, () => ({ handle, verb: 'remove schedule', name, ...maybe(dice, { by }) })],
    [6, () => ({ handle, verb: 'due', worker: dice.pick(workers), limit: dice.pick([0, 1, 2, 10]) })],
    [1, () => ({ handle, verb: 'resign', worker: dice.pick(workers) })],
    [
      10,
      () => ({
        handle,
        verb: 'schedules',
        limit: dice.pick([1, 2, 10]),
        ...maybe(dice, { after: dice.pick(names) }, 0.3),
      }),
    ],
    [8, () => ({ handle, verb: 'advance', ms: dice.pick([0, 1_000, 5_000, 5_001, 15_000, 61_000]) })],
    [
      8,
      () => ({
        handle,
        verb: 'claim',
        from: [{ queue, limit: dice.pick([1, 3]) }],
        by: { worker: 'w', leaseMs: 30_000 },
      }),
    ],
    [6, () => ({ handle, verb: 'settle', items: [{ claim: ref(dice), end: end(dice) }] })],
    [2, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [2, () => ({ handle, verb: dice.pick(['pause', 'drain', 'clear'] as const), queue })],
    [4, () => ({ handle, verb: 'resume', queue })],
    [2, () => ({ handle, verb: 'reshard', queue: 'orders', shards: dice.whole(1, 3) })],
    [0.5, () => ({ handle, verb: 'reopen' })],
  ])()
}

function schedule(dice: Dice, step: number): PlannedSchedule {
  const queue = dice.pick(queues)
  const isOrdered = queue === 'orders'
  const job = {
    task: 'send',
    payload: dice.chance(0.3) ? Uint8Array.of(0, 255, dice.whole(0, 9)) : `{"n":${dice.whole(0, 9)}}`,
    priority: isOrdered ? 0 : dice.pick([0, 0, 2]),
    rememberMs: isOrdered ? 0 : dice.pick([0, 6_000]),
    ...maybe(dice, { meta: '{"trace":"ü"}' }, 0.2),
    ...maybe(dice, { delayMs: 2_000 }, 0.2),
    ...(isOrdered ? { id: dice.pick(ids) } : ofPlain(dice, step)),
  }
  return {
    definition: {
      ...{ name: dice.pick(names), queue, rule: { everyMs, timeZone: 'UTC' }, onMissed: 'all', overlap: 'skip' },
      ...{ jitterMs: 0, ...(dice.chance(0.5) ? { declaredBy: 'shop' } : {}), job },
    },
    revision: `revision-${step}`,
    ...maybe(dice, { nextInMs: dice.pick([-70_000, -1_000, 0, 0, 0, 1_000, 60_000]) }, 0.85),
  }
}

/** Whose turn it is after a reshard is the store's own affair: ordered jobs have no groups here. */
function ofPlain(dice: Dice, step: number) {
  return {
    ...maybe(dice, { group: dice.pick(['g1', 'g2']) }, 0.3),
    ...maybe(dice, { expiresMs: 9_000 }, 0.3),
    ...(step % 3 === 0 ? { fields: { step, node: 'Grüße = "ü"\0' } } : {}),
  }
}

function tick(dice: Dice) {
  return {
    count: dice.pick([0, 1, 1, 1, 2]),
    heedsLast: dice.chance(0.4),
    isLast: dice.chance(0.1),
    passes: dice.chance(0.8),
  }
}

function end(dice: Dice): Settlement {
  return dice.weighted<Settlement>([
    [4, { kind: 'complete' }],
    [2, { kind: 'retry', delayMs: 0 }],
    [1, { kind: 'bury' }],
  ])
}
