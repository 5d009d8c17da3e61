/**
 * The comparison of two stores: runs one random sequence of commands on both. After every step answer, state and order
 * must be the same; otherwise an error says where they differ and how to repeat it.
 */

import { isDeepStrictEqual } from 'node:util'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import type { StoreHarness } from '../harness/store-harness.js'
import type { CanonicalJob, CanonicalQueue, CanonicalState } from '../state/canonical-state.js'
import { stateByClock } from '../state/state-by-clock.js'
import type { Command, PlannedCall, PlannedJob } from './command.js'
import { CommandRun } from './command-run.js'
import { commandSequence, sequenceQueues } from './command-sequence.js'
import { joinedIds, joinedQueues, joinedSequence } from './joined-sequence.js'
import { limitedGroups, limitedQueues, limitedSequence } from './limited-sequence.js'
import { orderedQueues, orderedSequence } from './ordered-sequence.js'
import { scheduledQueues, scheduledSequence } from './scheduled-sequence.js'
import { steppedQueues, steppedSequence } from './stepped-sequence.js'

/** The number of commands in an error; the last one made the difference. */
const commandsShown = 12
const differencesShown = 20

/**
 * The subject of a comparison: plain queues, ordered ones, limited ones with groups, joins and their members, jobs with steps
 * and signals, or schedules that tick into all of these.
 */
export type SequenceKind = keyof typeof sequences

const sequences = {
  plain: { commands: commandSequence, queues: sequenceQueues },
  ordered: { commands: orderedSequence, queues: orderedQueues },
  limited: { commands: limitedSequence, queues: limitedQueues },
  joined: { commands: joinedSequence, queues: joinedQueues },
  stepped: { commands: steppedSequence, queues: steppedQueues },
  scheduled: { commands: scheduledSequence, queues: scheduledQueues },
} as const

export class StoresDifferError extends Error {
  override readonly name = 'StoresDifferError'
  readonly seed: number
  /** The number of the command in the sequence, from 0. */
  readonly step: number
  readonly differences: readonly string[]

  constructor(
    names: { readonly model: string; readonly subject: string },
    { seed, kind, step, what }: { seed: number; kind: SequenceKind; step: number; what: string },
    commands: readonly Command[],
    found: readonly string[],
  ) {
    const from = Math.max(0, step + 1 - commandsShown)
    super(
      [
        `${names.subject} differs from ${names.model} in ${what} at step ${step} of ${kind === 'plain' ? '' : `${kind} `}seed ${seed} (${names.model} ≠ ${names.subject}):`,
        ...found.slice(0, differencesShown).map((difference) => `  ${difference}`),
        ...(found.length > differencesShown ? [`  and ${found.length - differencesShown} more`] : []),
        'after the commands:',
        ...commands.slice(from, step + 1).map((command, i) => `  ${from + i} ${shown(command)}`),
      ].join('\n'),
    )
    this.seed = seed
    this.step = step
    this.differences = found
  }
}

export interface Comparison {
  readonly seed: number
  readonly steps: number
  /** The kind of queues, by default plain ones; others if both stores have the traits. */
  readonly kind?: SequenceKind
  /**
   * `'state'`, the default: also compares the whole state after each step, including the names of leads and the turns
   * of groups. `'answers'`: compares only what a caller can see, for a store that decides these in its own way or has
   * no `dump`; the numbers of fences may then differ.
   */
  readonly compare?: 'answers' | 'state'
}

/**
 * Runs `steps` commands made from `seed` on both harnesses, which must be fresh and start at the same instant. Throws
 * `StoresDifferError` at the first step after which an answer, the state or a listing differs.
 */
export async function compareStores(
  model: StoreHarness,
  subject: StoreHarness,
  { seed, steps, kind = 'plain', compare = 'state' }: Comparison,
): Promise<void> {
  const { traits } = await subject.open()
  const commands = possibleCommands(sequences[kind].commands(seed, steps), traits, subject.byClock !== undefined)
  const byClock = subject.byClock !== undefined
  const look = async (store: StoreHarness) => (byClock ? stateByClock(await store.dump()) : store.dump())
  const tells = { fences: compare === 'state' && !byClock, scores: !byClock }
  const modelRun = new CommandRun(model, tells)
  const subjectRun = new CommandRun(subject, tells)
  for (const [step, command] of commands.entries()) {
    const refuse = (what: string, differing: readonly string[]) => {
      if (differing.length === 0) return
      throw new StoresDifferError(
        { model: model.name, subject: subject.name },
        { seed, kind, step, what },
        commands,
        differing,
      )
    }
    refuse('its answer', differences(await modelRun.answer(command), await subjectRun.answer(command)))
    await subject.byClock?.forget()
    if (compare === 'state') refuse('its state', differences(...comparable(await look(model), await look(subject))))
    const listing = listingAt(step, sequences[kind].queues)
    refuse('a listing', differences(await modelRun.answer(listing), await subjectRun.answer(listing)))
    if (kind === 'limited' && traits.groups) {
      const ofGroup = {
        ...listing,
        query: { ...listing.query, limit: 2, group: limitedGroups[step % limitedGroups.length]! },
      }
      refuse('a listing of a group', differences(await modelRun.answer(ofGroup), await subjectRun.answer(ofGroup)))
    }
    if (kind === 'joined')
      refuse('a join', differences(await modelRun.answer(allJoins), await subjectRun.answer(allJoins)))
  }
}

/**
 * The commands as the store can carry them out: what it would refuse by its traits is left out of them. `byClock`: only the last job of an enqueue may take the place of another, as it comes behind all those that need not look at
 * what has their ids, and a call that is sent again has the jobs that it had. Listings are whole, so that those of
 * a queue of several shards can be compared shard by shard.
 */
function possibleCommands(commands: readonly Command[], { groups, limited }: StoreTraits, byClock: boolean): Command[] {
  const left = [...(groups ? [] : ['group']), ...(limited ? [] : ['maxRunning'])]
  const sent = new Map<string, PlannedCall['jobs']>()
  return commands.map((command) => {
    const possible = left.length === 0 ? command : (without(command, left) as Command)
    if (byClock && (possible.verb === 'list' || possible.verb === 'list dead'))
      return { ...possible, query: { ...possible.query, limit: wholeList } } as Command
    return byClock && possible.verb === 'enqueue'
      ? { ...possible, calls: asSentFirst(lastReplacing(possible.calls), sent) }
      : possible
  })
}

/** More than any queue of a sequence has. */
const wholeList = 200

function lastReplacing(calls: readonly PlannedCall[]): PlannedCall[] {
  return calls.map((call, n) => ({
    ...call,
    jobs: call.jobs.map((job, i) =>
      n === calls.length - 1 && i === call.jobs.length - 1
        ? job
        : (without(job, ['ifWaiting', 'atMostMs']) as PlannedJob),
    ),
  }))
}

/** `sent`: the jobs of the calls so far, by their queue and id. */
function asSentFirst(calls: readonly PlannedCall[], sent: Map<string, PlannedCall['jobs']>): PlannedCall[] {
  return calls.map((call) => {
    const key = `${call.queue} ${call.callId}`
    const jobs = sent.get(key) ?? call.jobs
    sent.set(key, jobs)
    return { ...call, jobs }
  })
}

function without(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => without(one, fields))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const left = Object.entries(value).filter(([name]) => !fields.includes(name))
  return Object.fromEntries(left.map(([name, field]) => [name, without(field, fields)]))
}

/** A look at every join after each step: the state has none of what they know of their members. */
const allJoins: Command = {
  handle: 0,
  verb: 'joins',
  keys: joinedIds.flatMap((id) => joinedQueues.map(({ name: queue }) => ({ queue, id }))),
}

/** One listing after each step, each queue and order in turn: the state alone does not show the order of jobs. */
function listingAt(step: number, queues: readonly QueueSettings[]): Extract<Command, { verb: 'list' }> {
  const { name } = queues[step % queues.length]!
  const by = (['time', 'id', 'retry'] as const)[Math.floor(step / queues.length) % 3]!
  return { handle: 0, verb: 'list', queue: name, query: { by, limit: 200 } }
}

/** Both states, by queue and shard; fields that one of them cannot read are left out of both. */
function comparable(a: CanonicalState, b: CanonicalState): [unknown, unknown] {
  const untold = (['lastStamp', 'lastFence', 'lastScore'] as const).filter((field) =>
    [...a.queues, ...b.queues].some((queue) => queue[field] === null),
  )
  return [keyed(a, untold), keyed(b, untold)]
}

function keyed(state: CanonicalState, untold: readonly (keyof CanonicalQueue)[]): unknown {
  const queues = state.queues.map((queue) => [
    queue.shard === null ? queue.name : `${queue.name} ${queue.shard}`,
    {
      ...queue,
      ...Object.fromEntries(untold.map((field) => [field, null])),
      jobs: byId(queue.jobs, jobName),
      remembered: byId(queue.remembered),
      calls: byId(queue.calls),
    },
  ])
  const throttles = state.throttles.map(({ scope, counters, ...told }) => [
    scope,
    { ...told, counters: Object.fromEntries(counters.map(({ group, ...counter }) => [group, counter])) },
  ])
  return { now: state.now, queues: Object.fromEntries(queues), throttles: Object.fromEntries(throttles) }
}

function byId<T extends { readonly id: string }>(
  items: readonly T[],
  name: (item: T) => string = ({ id }) => id,
): Record<string, T> {
  return Object.fromEntries(items.map((item) => [name(item), item]))
}

/** In an ordered queue an id may have a live job and an entry in the morgue. */
function jobName({ id, state, payloads }: CanonicalJob): string {
  return payloads !== null && state === 'dead' ? `${id} (dead)` : id
}

function shown(command: Command): string {
  return JSON.stringify(command, (_, value: unknown) =>
    value instanceof Uint8Array ? `bytes:${Buffer.from(value).toString('hex')}` : value,
  )
}

/** The differences between two plain values: the paths at which they differ, with both values. */
function differences(expected: unknown, found: unknown): string[] {
  // Nearly always: to name the paths costs many times as much.
  return isDeepStrictEqual(expected, found) ? [] : differing(expected, found, '')
}

function differing(expected: unknown, found: unknown, path: string): string[] {
  if (Object.is(expected, found)) return []
  const isList = Array.isArray(expected)
  if (!isObject(expected) || !isObject(found) || isList !== Array.isArray(found)) {
    return [`${path || 'the value'}: ${text(expected)} ≠ ${text(found)}`]
  }
  const keys = new Set([...Object.keys(expected), ...Object.keys(found)])
  return [...keys].flatMap((key) => differing(expected[key], found[key], isList ? `${path}[${key}]` : `${path}.${key}`))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function text(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value)
}
