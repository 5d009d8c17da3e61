/**
 * The sets of a join: the jobs that a job of this task waits for, as its definition declares them, and what its handler
 * is given of them.
 */

import * as v from 'valibot'
import type { FateCounts } from '../job/job.js'
import { exactly } from '../values/option-check.js'
import { isDefinition, type TaskHeader, type TaskResult } from './task-definition.js'

/** Some task whose jobs may be waited for: any but an ordered one. */
// biome-ignore lint/suspicious/noExplicitAny: as of any task
export type MemberTask = TaskHeader<string, any, any, any, string, any> & { readonly kind: 'plain' }

/** What happens to a join when one of its members does not complete. */
export interface SetOptions<Dead extends WhenDead = WhenDead, Keeps extends boolean = boolean> {
  /**
   * `'fail'`: the join is dead as soon as a member of this set dies, is cancelled, deleted or expires. `'go-on'`: every
   * end counts, and the handler is told each. `'hold'`: the join waits until a dead member is revived and completes; it
   * then needs `within` when it is enqueued. Default `'fail'`.
   */
  readonly onDead?: Dead | undefined
  /** Whether the results of the members are kept for the handler. If not, it is given their numbers only. Default true. */
  readonly keepResults?: Keeps | undefined
  /** If a member makes the join dead, those of all its sets that have not ended are cancelled. Default false. */
  readonly cancelRest?: boolean | undefined
}

type WhenDead = 'fail' | 'go-on' | 'hold'

/** A set of exactly one member, with options. */
export interface OneMember<
  T extends MemberTask = MemberTask,
  Dead extends WhenDead = WhenDead,
  Keeps extends boolean = boolean,
> extends SetOptions<Dead, Keeps> {
  readonly task: T
}

/** A set of any number of members; `many()` makes it. */
export interface ManyMembers<
  T extends MemberTask = MemberTask,
  Dead extends WhenDead = WhenDead,
  Keeps extends boolean = boolean,
> extends OneMember<T, Dead, Keeps> {
  readonly isMany: true
}

/** The sets of a join by their names: a task is one member, `many(task)` any number. */
export type JoinSets = Readonly<Record<string, MemberTask | OneMember | ManyMembers>>

/**
 * For `joins` of a task: any number of jobs of this task, whose results its handler reads in pages. Without options a
 * join is dead as soon as one of them does not complete.
 *
 * @example
 * export const summary = defineTask({
 *   name: 'summary',
 *   joins: { mails: many(sendEmail, { onDead: 'go-on' }) },
 *   async run(input: { list: string }, ctx) {
 *     for await (const mail of ctx.joined.mails) if (mail.fate !== 'completed') console.error(mail.fate, mail.error)
 *     return ctx.joined.mails.counts
 *   },
 * })
 */
export function many<T extends MemberTask, const Dead extends WhenDead = 'fail', const Keeps extends boolean = true>(
  task: T,
  options: SetOptions<Dead, Keeps> = {},
): ManyMembers<T, Dead, Keeps> {
  return { ...options, task, isMany: true }
}

/** How a member has ended; a deleted one was `'cancelled'`. `error`: the last one of a dead member. */
export type Settled<Result> =
  | { readonly fate: 'completed'; readonly result: Result }
  | { readonly fate: 'dead' | 'cancelled' | 'expired'; readonly error?: string }

/**
 * The members of a set of many, in their order. Read from the store in pages, each time anew. A read waits while the store
 * is away, and rejects with the reason of the run's signal if the run is over.
 */
export interface JoinedMany<Member> extends AsyncIterable<Member> {
  readonly counts: FateCounts
}

/** What a handler is given of the members of its sets, by their names. */
export type Joined<Sets extends JoinSets> = { readonly [Name in keyof Sets]: JoinedSet<Sets[Name]> }

type JoinedSet<Set> =
  Set extends ManyMembers<infer T, infer Dead, infer Keeps>
    ? JoinedMany<JoinedMember<T, Dead, Keeps>>
    : Set extends { readonly task: infer T extends MemberTask }
      ? JoinedMember<T, OnDeadOf<Set>, KeepsOf<Set>>
      : Set extends MemberTask
        ? TaskResult<Set>
        : never

type OnDeadOf<Set> = Set extends { readonly onDead: infer Dead extends WhenDead } ? Dead : 'fail'
type KeepsOf<Set> = Set extends { readonly keepResults: infer Keeps extends boolean } ? Keeps : true

type JoinedMember<T extends MemberTask, Dead extends WhenDead, Keeps extends boolean> = Dead extends 'go-on'
  ? Settled<Keeps extends false ? undefined : TaskResult<T>>
  : Keeps extends false
    ? undefined
    : TaskResult<T>

/** A set of a defined task, with every default filled in. */
export interface MemberSet {
  readonly name: string
  readonly task: MemberTask
  readonly isMany: boolean
  readonly onDead: WhenDead
  readonly keepResults: boolean
  readonly cancelRest: boolean
}

/** The most sets of a join: it and one member of each are added in one step. */
const mostSets = 100
const nameForm = 'a letter, then at most 63 letters, digits, - or _'

const memberTask = v.pipe(
  v.custom<MemberTask>(isDefinition, 'must be a task, many(task) or { task, onDead }'),
  v.check(
    ({ kind }) => kind === 'plain',
    'must not be an ordered task: its jobs gather payloads and have no end of their own. Let its handler enqueue jobs of a plain task',
  ),
)

const setSchema = v.lazy((given) =>
  typeof given === 'object' && given !== null && 'task' in given && !('handle' in given) ? withOptions : justTask,
)
const justTask = v.pipe(
  memberTask,
  v.transform((task) => ({ task, isMany: false, onDead: 'fail' as const, keepResults: true, cancelRest: false })),
)
const withOptions = exactly({
  task: memberTask,
  isMany: v.optional(v.boolean(), false),
  onDead: v.optional(v.picklist(['fail', 'go-on', 'hold'], "must be 'fail', 'go-on' or 'hold'"), 'fail'),
  keepResults: v.optional(v.boolean(), true),
  cancelRest: v.optional(v.boolean(), false),
})

/**
 * The option `joins` of a task, as a map by name.
 * @internal
 */
export const joinsOption = v.pipe(
  v.custom<object>((sets) => !Array.isArray(sets), 'must be an object that names each set, as { rates: fetchRates }'),
  v.record(v.pipe(v.string(), v.regex(/^[A-Za-z][\w-]{0,63}$/, `must be ${nameForm}`)), setSchema),
  v.check((sets) => Object.keys(sets).length > 0, 'must have at least one set: a task, or many(task)'),
  v.check((sets) => Object.keys(sets).length <= mostSets, `must have at most ${mostSets} sets`),
  v.transform(
    (sets): ReadonlyMap<string, MemberSet> =>
      new Map(Object.entries(sets).map(([name, set]) => [name, { name, ...set }])),
  ),
)
