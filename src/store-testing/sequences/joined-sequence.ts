/**
 * A joined sequence: random commands from a seed over a few joins and their members. Joins have the same few ids again
 * and again, are members of each other, share queues with their members, and lose these in every way.
 */

import type { NewJoin, NewSet } from '../../stores/contract/new-join.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import { memberId } from '../../stores/rules/join-rules.js'
import type { Command, PlannedCall, PlannedJob, Settlement } from './command.js'
import {
  drawn,
  extension,
  failure,
  listQuery,
  maybe,
  reasons,
  ref,
  someoneElse,
  where,
  workers,
} from './command-parts.js'
import type { Dice } from './dice.js'

/** The queues of every joined sequence: of joins above all, of members above all, and one that is soon full. */
export const joinedQueues: readonly QueueSettings[] = [
  { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 2, resultsCount: 2, dead: { ageMs: 60_000 } },
  { name: 'rows', kind: 'plain', order: 'fifo', maxCrashes: 1, dead: { count: 2 } },
  { name: 'tight', kind: 'plain', order: 'lifo', maxPending: 6, maxCrashes: 2, dead: {} },
]
/** The ids of all joins. */
export const joinedIds = ['j1', 'j2', 'j3', 'o1', 'o2']
const names = joinedQueues.map(({ name }) => name)

/** A set of a planned join, and the number of its next member. */
interface PlannedSet extends NewSet {
  next: number
}

interface PlannedJoin {
  readonly queue: string
  readonly id: string
  readonly sets: readonly PlannedSet[]
}

/** The plans of the latest graphs, the latest first. */
const mostPlans = 5

export function joinedSequence(seed: number, steps: number): Command[] {
  const plans: { joins: PlannedJoin[]; graph: Command }[] = []
  return drawn(seed, steps, joinedQueues, (dice, step) => {
    if (plans.length === 0 || dice.chance(0.13)) {
      plans.unshift(planned(dice, step))
      plans.splice(mostPlans)
      return [plans[0]!.graph]
    }
    const joins = plans.flatMap((plan) => plan.joins)
    return [command(dice, step, joins, dice.pick(plans).graph)]
  })
}

/** A graph of one join, or of one that is a member of another. */
function planned(dice: Dice, step: number): { joins: PlannedJoin[]; graph: Command } {
  const inner = join(dice, step, dice.pick(joinedIds.slice(0, 3)))
  const jobs: [string, PlannedJob][] = [[inner.queue, inner.job]]
  const joins = [inner.plan]
  if (dice.chance(0.25)) {
    const { queue } = inner
    const set: PlannedSet = {
      ...{ name: 'part', queue, ids: inner.plan.id, isMany: false, size: 1, next: 1 },
      ...rules(dice),
    }
    const outer = join(dice, step, dice.pick(joinedIds.slice(3)), [set])
    jobs[0] = [queue, { ...inner.job, memberOf: [placeIn(outer.plan, set, 0)] }]
    jobs.unshift([outer.queue, outer.job])
    joins.unshift(outer.plan)
  }
  for (const set of inner.plan.sets)
    for (let n = 0; n < set.next; n += 1) jobs.push([set.queue, member(dice, inner.plan, set, n)])
  return { joins, graph: { handle: dice.whole(0, 1), verb: 'graph', calls: callsOf(step, jobs) } }
}

function join(dice: Dice, step: number, id: string, given?: PlannedSet[]) {
  const queue = dice.weighted([
    [3, 'mail'],
    [1, 'tight'],
  ])
  const sets = given ?? dice.several(1, 2, (i) => set(dice, `${id}.${step}`, ['a', 'É'][i]!))
  const about: NewJoin = {
    sets: sets.map(({ next: _, ...about }) => about),
    sealWithinMs: 20_000,
    ...maybe(dice, { withinMs: dice.pick([2_000, 30_000]) }),
    ...maybe(dice, { cancelsRest: true as const }, 0.3),
  }
  const due = dice.weighted([
    [5, {}],
    [1, { delayMs: dice.pick([1, 5_000]) }],
    [1, { runInMs: dice.pick([-1, 2_000, 30_000]) }],
  ])
  const job: PlannedJob = {
    ...{ id, task: 'sum', payload: `"${step}"`, join: about, ...due },
    priority: dice.pick([0, 0, 2]),
    rememberMs: dice.pick([0, 0, 5_000]),
    ...maybe(dice, { expiresMs: 40_000 }, 0.2),
    ...maybe(dice, { group: 'g1' }, 0.2),
    ...(step % 3 === 0 ? { fields: { step } } : {}),
    ...(step % 2 === 0 ? { reportsDeath: true as const } : {}),
  }
  return { queue, job, plan: { queue, id, sets } }
}

function set(dice: Dice, ids: string, name: string): PlannedSet {
  const size = dice.weighted([
    [5, dice.whole(0, 3)],
    [2, undefined],
  ])
  const isOne = size === 1 && dice.chance(0.3)
  const queue = dice.pick(['rows', 'rows', 'mail', 'tight'])
  const about = { name, queue, ids: `${ids}.${name}`, isMany: !isOne, ...rules(dice) }
  return { ...about, ...(size === undefined ? {} : { size }), next: size ?? 0 }
}

function rules(dice: Dice): Pick<NewSet, 'onDead' | 'keepsResults'> {
  return { onDead: dice.pick(['fail', 'fail', 'go-on', 'hold'] as const), keepsResults: dice.chance(0.8) }
}

function keyOf({ queue, id }: PlannedJoin) {
  return { queue, id }
}

function placeIn({ queue, id }: PlannedJoin, { name, onDead, keepsResults }: NewSet, number: number) {
  return { join: { queue, id }, set: name, number, onDead, keepsResults }
}

function member(dice: Dice, join: PlannedJoin, set: PlannedSet, number: number): PlannedJob {
  return {
    ...{ id: memberId(set, number), task: 'row', payload: `${number}`, memberOf: [placeIn(join, set, number)] },
    priority: dice.pick([0, 0, 0, 1]),
    rememberMs: dice.pick([0, 0, 5_000]),
    ...maybe(dice, { expiresMs: dice.pick([1_000, 40_000]) }, 0.2),
    ...maybe(dice, { delayMs: 1_000 }, 0.1),
    ...(number % 3 === 1 ? { fields: { number } } : {}),
    ...(number % 4 === 3 ? { group: 'g2' } : {}),
    ...(number % 3 !== 0 ? { reportsDeath: true as const } : {}),
  }
}

/** One call per queue; the first job comes first. */
function callsOf(step: number, jobs: readonly (readonly [string, PlannedJob])[]): PlannedCall[] {
  const queues = [...new Set(jobs.map(([queue]) => queue))]
  return queues.map((queue) => ({
    callId: `graph-${step}-${queue}`,
    queue,
    jobs: jobs.filter(([of]) => of === queue).map(([, job]) => job),
  }))
}

function command(dice: Dice, step: number, joins: readonly PlannedJoin[], again: Command): Command {
  const handle = dice.whole(0, 1)
  const queue = dice.pick(names)
  const join = dice.pick(joins)
  const set = dice.pick(join.sets)
  const ids = [...new Set([join.id, ...join.sets.flatMap((one) => numbers(one).map((n) => memberId(one, n)))])]
  const id = dice.pick(ids)
  const action = (verb: 'delete' | 'runNow' | 'bury' | 'revive' | 'delete dead'): Command => ({
    ...{ handle, verb, queue, where: where(dice, ids) },
  })
  return dice.weighted<() => Command>([
    [3, () => again],
    [set.size === undefined ? 12 : 0, () => ({ handle, ...moreMembers(dice, step, join, set) })],
    [
      set.size === undefined ? 8 : 2,
      () => ({ handle, verb: 'seal', join: keyOf(join), wrong: dice.chance(0.5) ? -1 : 0 }),
    ],
    [22, () => ({ handle, verb: 'claim', ...claim(dice) })],
    [20, () => ({ handle, verb: 'settle', items: dice.several(1, 3, () => ({ claim: ref(dice), end: end(dice) })) })],
    [2, () => ({ handle, verb: 'extend', items: [extension(dice)] })],
    [9, () => ({ handle, verb: 'advance', ms: dice.pick([0, 500, 1_000, 2_000, 5_000, 20_000, 61_000]) })],
    [7, () => ({ handle, verb: 'sweep', worker: 'worker-1' })],
    [4, () => ({ handle, verb: 'cancel', queue, where: where(dice, ids), ...maybe(dice, { reason: 'stop' }) })],
    [2, () => action('delete')],
    [1, () => action('runNow')],
    [2, () => action('bury')],
    [7, () => action('revive')],
    [2, () => action('delete dead')],
    [2, () => ({ handle, verb: 'fail', queue, id, how: failure(dice) })],
    [2, () => ({ handle, verb: 'enqueue', calls: [replacing(dice, step, queue, id)] })],
    [2, () => ({ handle, verb: 'get', queue, id })],
    [2, () => ({ handle, verb: 'list', queue, query: listQuery(dice) })],
    [2, () => ({ handle, verb: 'gone', claims: dice.several(1, 2, () => ref(dice)), ...someoneElse(dice) })],
    [1, () => ({ handle, verb: dice.pick(['pause', 'drain', 'clear'] as const), queue })],
    [3, () => ({ handle, verb: 'resume', queue })],
    [1, () => ({ handle, verb: 'depth', queues: names })],
    [1, () => ({ handle, verb: 'report', queue, task: step % 2 === 0 ? 'row' : 'sum', most: step % 3 })],
    [0.5, () => ({ handle, verb: 'reopen' })],
  ])()
}

/** Mostly the next members of an open set, sometimes the last ones again. */
function moreMembers(dice: Dice, step: number, join: PlannedJoin, set: PlannedSet) {
  const from = Math.max(0, set.next - dice.pick([0, 0, 1, 2]))
  const jobs = dice.several(1, 3, (i) => member(dice, join, set, from + i))
  set.next = Math.max(set.next, from + jobs.length)
  return { verb: 'enqueue' as const, calls: [{ callId: `members-${step}`, queue: set.queue, jobs }] }
}

/** Another job of the id of a join or a member, which may take the place of a dead one. */
function replacing(dice: Dice, step: number, queue: string, id: string): PlannedCall {
  const job = { id, task: 'other', payload: '"other"', priority: 0, rememberMs: 0 }
  return { callId: `other-${step}`, queue, jobs: [{ ...job, ...maybe(dice, { ifWaiting: 'replace' as const }, 0.8) }] }
}

function claim(dice: Dice) {
  const from = dice.several(1, 3, () => ({ queue: dice.pick(names), limit: dice.pick([0, 1, 2, 5]) }))
  const by = { worker: dice.pick(workers), leaseMs: dice.pick([1_000, 5_000, 30_000]) }
  return { from, by: { ...by, ...maybe(dice, { alone: true }, 0.3) } }
}

function end(dice: Dice): Settlement {
  const error = maybe(dice, { error: `Error: ${dice.pick(reasons)}` }, 0.7)
  const payload = dice.chance(0.2) ? Uint8Array.of(1, 0, 255) : `"${dice.whole(0, 99)}"`
  const codec = maybe(dice, { codec: 'raw' }, 0.2)
  return dice.weighted<Settlement>([
    [3, { kind: 'complete' }],
    [6, { kind: 'complete', result: { payload, ...codec, onlyForJoins: true } }],
    [2, { kind: 'complete', result: { payload, ...codec, ...maybe(dice, { keepMs: 2_000 }) } }],
    [1, { kind: 'complete', result: {} }],
    [2, { kind: 'retry', delayMs: dice.pick([0, 2_000]), ...error }],
    [2, { kind: 'retry', delayMs: 0, last: true, ...error }],
    [2, { kind: 'release', delayMs: dice.pick([0, 1_000]) }],
    [3, { kind: 'bury', ...error, ...maybe(dice, { reason: 'unrecoverable' }) }],
    [1, { kind: 'cancel' }],
  ])
}

function numbers({ next }: PlannedSet): number[] {
  return Array.from({ length: next }, (_, n) => n)
}
