/**
 * The administration of schedules: those set at run time, and those of the configuration, to which the store is
 * reconciled.
 */

import { InvalidArgumentError, QueueDrainingError, QueueFullError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { JobHandle, JobMeta } from '../../core/job/job.js'
import { originIn, runName } from '../../core/job/job-origin.js'
import { describe } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import { type CheckedSchedule, type ScheduleOptions, scheduleSchema } from '../../core/schedule/schedule-options.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { callForms, callOptions, refuseMore } from '../../core/values/call-check.js'
import { defined } from '../../core/values/defined.js'
import { isQueueName, queueNameForm } from '../../core/values/ids.js'
import { parsed } from '../../core/values/option-check.js'
import { pagesOf } from '../../core/values/pages.js'
import type { Records, StoredJob } from '../../stores/contract/job-records.js'
import type { Enqueued } from '../../stores/contract/new-job.js'
import type {
  ScheduleChange,
  ScheduleDefinition,
  Schedules,
  StoredSchedule,
  TickAnswer,
} from '../../stores/contract/schedules.js'
import type { Store } from '../../stores/contract/store.js'
import { idBeside } from '../../stores/rules/schedule-record.js'
import { total } from '../admin/step-loop.js'
import type { ClientParts } from '../enqueue/client.js'
import type { DraftEnvironment } from '../enqueue/job-draft.js'
import { allSchedules, recordsOf, schedulesOf } from '../store-facets.js'
import { enqueueDueBefore } from './due-enqueue.js'
import { changeTo, nextTick, scheduleDraft, scheduledJob } from './schedule-definition.js'
import { type ScheduleDifference, type ScheduleRecord, scheduleRecordOf } from './schedule-view.js'

export interface SchedulePage {
  readonly schedules: ScheduleRecord[]
  /** Pass it to the next call; absent on the last page. */
  readonly cursor?: string
}

/** The schedules of a configuration, and its name. */
interface Declaration {
  readonly by: string
  readonly schedules: ReadonlyMap<string, CheckedSchedule>
}

/** A change, and the schedule that it changes. */
interface Changed {
  readonly change: Omit<ScheduleChange, 'revision'>
  readonly present: StoredSchedule
}

const mostInPage = 200
const mostPreviewed = 1_000

const checkList = callOptions('schedules.list', { cursor: callForms.text, limit: callForms.own })

export class ScheduleAdmin {
  readonly #surroundings: Surroundings
  readonly #connect: () => Promise<Store>
  readonly #client: Pick<ClientParts, 'rules' | 'handle'>
  readonly #declared: Declaration | undefined
  /** The configurations of whose schedules was told that they are left alone. */
  readonly #toldOf = new Set<string>()

  /**
   * `declared`: the schedules of the configuration; undefined if it has no `schedules`.
   * @internal
   */
  constructor(
    surroundings: Surroundings,
    connect: () => Promise<Store>,
    client: Pick<ClientParts, 'rules' | 'handle'>,
    declared: Declaration | undefined,
  ) {
    this.#surroundings = surroundings
    this.#connect = connect
    this.#client = client
    this.#declared = declared
  }

  /**
   * Sets a schedule at run time: adds it, or replaces the one of that name. A replaced one keeps its pause, its counts
   * and, if its times stay the same, its next tick. Throws `ConfigError` with every mistake, the errors of enqueueing
   * such a job, `InvalidArgumentError` for a name that is invalid or declared by the configuration, or
   * `UnsupportedByStoreError`.
   */
  async set<T extends AnyTask>(name: string, options: ScheduleOptions<T>): Promise<ScheduleRecord> {
    refuseNoName(name)
    if (this.#declared?.schedules.has(name))
      throw new InvalidArgumentError(
        `schedule '${name}' is declared in the configuration; change it there, or set one of another name.`,
      )
    const checked = parsed(scheduleSchema, options, `schedule '${name}'`)
    const [store, rules] = await this.#opened()
    const schedules = schedulesOf(store)
    const definition = await scheduleDraft(name, checked, undefined, rules)
    const written = await insist(async () => {
      const stored = await schedules.get(name)
      const { now } = await store.depth([definition.queue])
      const change = changeTo(definition, stored, now, rules)
      if (change !== undefined && !(await replaced(this.#surroundings, schedulesOf(store), change, stored, now)))
        return undefined
      return schedules.get(name)
    })
    return scheduleRecordOf(written ?? disputed(name), rules.packing)
  }

  /**
   * Removes a schedule, with those of its jobs that no worker has begun (`clear`); resolves to whether there was one. A
   * schedule that the configuration declares comes back when the next worker starts: pause it instead.
   */
  async remove(name: string): Promise<boolean> {
    const [store, { packing }] = await this.#opened()
    const stored = await schedulesOf(store).get(name)
    const isRemoved = await schedulesOf(store).remove(name)
    if (stored !== undefined) await clearWaiting(recordsOf(store), stored.definition, packing)
    return isRemoved
  }

  /**
   * Deletes those jobs of a schedule that no worker has begun: they wait for the end of a `delay` or `jitter`, or for a
   * worker. Running jobs, and jobs that wait for a retry, go on; so do payloads of an ordered task. It looks at every
   * waiting job of the queue. Resolves with the number. Throws `InvalidArgumentError` if there is no such schedule.
   */
  async clear(name: string): Promise<number> {
    const [store, { packing }] = await this.#opened()
    const { definition } = await this.#found(store, name)
    return clearWaiting(recordsOf(store), definition, packing)
  }

  async get(name: string): Promise<ScheduleRecord | undefined> {
    const [store, { packing }] = await this.#opened()
    const stored = await schedulesOf(store).get(name)
    return stored && scheduleRecordOf(stored, packing)
  }

  /** The schedules by name. `limit`: 1 … 200, by default 50. Throws `InvalidArgumentError` for another limit. */
  async list(options: { readonly cursor?: string; readonly limit?: number } = {}): Promise<SchedulePage> {
    checkList(options)
    const { cursor, limit = 50 } = options
    if (!Number.isInteger(limit) || limit < 1 || limit > mostInPage)
      throw new InvalidArgumentError(`limit must be a whole number from 1 to ${mostInPage}; got ${describe(limit)}.`)
    const [store, { packing }] = await this.#opened()
    const page = await schedulesOf(store).list(cursor, limit)
    const last = page.length === limit ? page.at(-1)?.definition.name : undefined
    return { schedules: page.map((stored) => scheduleRecordOf(stored, packing)), ...defined({ cursor: last }) }
  }

  /**
   * Pauses a schedule: it does not tick until it is resumed, even if the code changes it meanwhile. Ticks that are due
   * are enqueued, unless they were missed. Resolves with the number of its jobs that no worker has begun: they still run,
   * unless `clear` deletes them. Throws `InvalidArgumentError` if there is none.
   */
  async pause(name: string): Promise<number> {
    await this.#change(name, async (stored, store) => {
      const { now } = await store.depth([stored.definition.queue])
      const present = await enqueueDueBefore(this.#surroundings, schedulesOf(store), stored, now, 'paused')
      return present && { change: { definition: present.definition, paused: true }, present }
    })
    const [store, { packing }] = await this.#opened()
    const { definition } = await this.#found(store, name)
    return (await waitingOf(recordsOf(store), definition, packing)).length
  }

  /**
   * Resumes a schedule: it ticks again from its next tick on; ticks of the pause are not made up for. Throws
   * `InvalidArgumentError` if there is none.
   */
  async resume(name: string): Promise<void> {
    await this.#change(name, async (stored, store) => {
      if (!stored.paused) return 'same'
      const { now } = await store.depth([stored.definition.queue])
      const nextAt = nextTick(stored.definition, stored, now)
      const change = { definition: stored.definition, paused: false, ...defined({ nextAt }) }
      return { change, present: stored }
    })
  }

  /**
   * Enqueues its job now, even if it is paused or its last job still runs; its next tick stays. A declared schedule
   * that is not stored yet is not written by this: its job is enqueued as the code declares it. Throws
   * `InvalidArgumentError` if there is none, `QueueFullError`, `QueueDrainingError`, and `CodecError` if jobs are
   * sealed and the mill cannot read its input.
   */
  async runNow(name: string): Promise<JobHandle<unknown>> {
    const [store, rules] = await this.#opened()
    const schedules = schedulesOf(store)
    const run = await insist(async () => {
      const stored = await schedules.get(name)
      const definition = stored?.definition ?? (await this.#declaredAs(store, name))
      const { queue } = definition
      const id = idBeside(name, runName(name, rules.newId()), stored?.shards ?? 1)
      const job = scheduledJob({ definition }, id, rules.packing)
      const call = { callId: rules.newId(), queue, jobs: [job] }
      if (stored === undefined) return { answer: (await store.enqueue([call]))[0]![0]!, queue, job }
      const { revision, nextAt } = stored
      const next = nextAt === undefined ? {} : { dueAt: nextAt, nextAt }
      const answer = await schedules.tick({ name, revision, ...next, ...call, skips: 0, misses: 0 })
      return answer.outcome === 'lost' ? undefined : { answer: enqueuedIn(answer), queue, job }
    })
    const { answer, queue, job } = run ?? disputed(name)
    const outcome = outcomeOf(answer, queue)
    if (outcome !== 'duplicate') this.#surroundings.events.counter?.enqueued(queue)
    this.#surroundings.events.emit('job.enqueued', { queue, id: job.id, task: job.task, outcome })
    return this.#client.handle(queue, job.id, outcome)
  }

  /**
   * Its next ticks from now on, at most `count` (1 … 1,000, by default 1). It may be paused, or declared and not yet
   * stored. Throws `InvalidArgumentError`.
   */
  async next(name: string, count = 1): Promise<Date[]> {
    if (!Number.isInteger(count) || count < 1 || count > mostPreviewed)
      throw new InvalidArgumentError(`count must be a whole number from 1 to ${mostPreviewed}; got ${describe(count)}.`)
    const store = await this.#connect()
    const stored = await schedulesOf(store).get(name)
    const definition = stored?.definition ?? (await this.#declaredAs(store, name))
    const { next } = ticksOf(definition.rule)
    const { now } = await store.depth([definition.queue])
    const found: Date[] = []
    for (let at = next(now); at !== undefined && found.length < count; at = next(at)) found.push(new Date(at))
    return found
  }

  /**
   * Changes the store to match the configuration, as each worker does when it starts: adds, changes, and removes
   * schedules that a configuration of the same `schedulesOf` once declared. Without `schedules` it does nothing;
   * `schedules: {}` removes all that were declared. Throws the errors of enqueueing a job of one of them, and
   * `InvalidArgumentError` if others change one at each of ten tries; those before it are changed then.
   */
  reconcile(): Promise<ScheduleDifference[]>
  /** New ones tick from `since` on. @internal */
  reconcile(since: number): Promise<ScheduleDifference[]>
  async reconcile(since?: number): Promise<ScheduleDifference[]> {
    const { events } = this.#surroundings
    const declared = this.#declared
    if (declared === undefined) return []
    const [store, rules] = await this.#opened()
    const { differences, foreign } = await reconcile(store, declared, rules, events, since)
    for (const difference of differences) events.emit('schedule.reconciled', difference)
    for (const [declaredBy, schedules] of foreign)
      if (!this.#toldOf.has(declaredBy)) events.emit('schedule.foreign', { declaredBy, schedules, by: declared.by })
    for (const declaredBy of foreign.keys()) this.#toldOf.add(declaredBy)
    return differences
  }

  /**
   * Writes the schedules of the configuration again after the store has lost what it held.
   * @internal
   */
  async restore(): Promise<void> {
    const differences = await this.reconcile()
    const restored = differences.flatMap(({ schedule, change }) => (change === 'added' ? [schedule] : []))
    this.#surroundings.events.emit('schedule.lost', { restored })
  }

  /** `changed`: the change of the schedule; `'same'` for none, undefined to look at it anew. */
  async #change(
    name: string,
    changed: (stored: StoredSchedule, store: Store, rules: DraftEnvironment) => Promise<Changed | 'same' | undefined>,
  ): Promise<void> {
    const [store, rules] = await this.#opened()
    const isDone = await insist(async () => {
      const made = await changed(await this.#found(store, name), store, rules)
      if (made === undefined || made === 'same') return made && true
      return (await schedulesOf(store).put({ ...made.change, revision: rules.newId() }, made.present)) || undefined
    })
    if (isDone === undefined) disputed(name)
  }

  async #found(store: Store, name: string): Promise<StoredSchedule> {
    return (await schedulesOf(store).get(name)) ?? this.#none(store, name)
  }

  /** The definition that a starting worker would write. */
  async #declaredAs(store: Store, name: string): Promise<ScheduleDefinition> {
    const declared = this.#declared
    const schedule = declared?.schedules.get(name)
    if (schedule === undefined) return this.#none(store, name)
    return scheduleDraft(name, schedule, declared!.by, await this.#client.rules())
  }

  async #none(store: Store, name: string): Promise<never> {
    const schedules = schedulesOf(store)
    const some = (await schedules.list(undefined, 20)).map(({ definition }) => `'${definition.name}'`)
    throw new InvalidArgumentError(
      `there is no schedule '${name}'; there ${some.length === 0 ? 'is none yet' : `are ${some.join(', ')}${some.length === 20 ? ' and perhaps more' : ''}`}. A declared one is written when a worker starts, or by \`millrace schedules reconcile\`.`,
    )
  }

  #opened(): Promise<[Store, DraftEnvironment]> {
    return Promise.all([this.#connect(), this.#client.rules()])
  }
}

refuseMore('schedules.', ScheduleAdmin.prototype, {
  promised: {
    ...{ set: 2, remove: 1, clear: 1, get: 1, list: 1, pause: 1, resume: 1, runNow: 1, next: 2, reconcile: 1 },
    restore: 0,
  },
})

function refuseNoName(name: unknown): void {
  if (!isQueueName(name))
    throw new InvalidArgumentError(`a schedule's name must be ${queueNameForm}; got ${describe(name)}.`)
}

/** The outcome of the only job of a step that found its schedule unchanged. */
function enqueuedIn(answer: TickAnswer): Enqueued {
  if (answer.outcome === 'full' || answer.outcome === 'draining') return answer.outcome
  return (answer.outcome === 'ticked' ? answer.enqueued[0] : undefined) ?? 'added'
}

function outcomeOf(answer: Enqueued, queue: string): 'added' | 'merged' | 'duplicate' {
  if (answer === 'full') throw new QueueFullError(queue)
  if (answer === 'draining') throw new QueueDrainingError(queue)
  if (answer === 'duplicate' || answer === 'dead') return 'duplicate'
  return answer === 'merged' ? answer : 'added'
}

/** The number of jobs in one listing. */
const pageSize = 200

/**
 * The ids of its jobs that no worker has begun. One that has steps or signals has been, also if it sleeps or was put back. An
 * ordered job is never one: its payloads may come from elsewhere too.
 */
async function waitingOf(
  records: Records,
  { name, queue, job }: ScheduleDefinition,
  packing: Packing,
): Promise<string[]> {
  if (job.id !== undefined) return []
  const found: string[] = []
  for (const state of ['scheduled', 'ready'] as const) {
    const query = { by: 'time', state, limit: pageSize } as const
    for await (const { jobs } of pagesOf((from) => records.list(queue, { ...query, ...from })))
      for (const one of jobs) if (one.attempt === 1 && !one.hasSteps && isTickOf(name, one, packing)) found.push(one.id)
  }
  return found
}

/** Deletes them; resolves with the number. One that begins meanwhile goes on. */
async function clearWaiting(records: Records, definition: ScheduleDefinition, packing: Packing): Promise<number> {
  const ids = await waitingOf(records, definition, packing)
  return ids.length === 0 ? 0 : total(() => records.delete(definition.queue, { ids }))
}

/** A job whose meta this mill cannot read is left alone: its id may be a user's own. */
function isTickOf(schedule: string, job: StoredJob, packing: Packing): boolean {
  if (!job.id.startsWith(`${schedule}@`) || job.meta === undefined) return false
  try {
    return originIn(packing.unpackMeta(job, 'meta', job) as JobMeta, job).schedule?.name === schedule
  } catch {
    return false
  }
}

interface Reconciliation {
  readonly differences: ScheduleDifference[]
  /** The schedules that other configurations have declared, by the names of those. */
  readonly foreign: ReadonlyMap<string, readonly string[]>
}

/**
 * Changes the store to match the declaration. Schedules that were set at run time or declared by another configuration
 * are left alone. New ones tick from `since` on, an instant, by default the time of the store. Repeating changes
 * nothing. Throws the errors of enqueueing a job of one of them; nothing was changed then. Throws
 * `InvalidArgumentError` if others change one at each try; those before it are changed then.
 */
async function reconcile(
  store: Store,
  { by, schedules: declared }: Declaration,
  rules: DraftEnvironment,
  events: Events,
  since?: number,
): Promise<Reconciliation> {
  const schedules = schedulesOf(store)
  const definitions = await Promise.all(
    [...declared].map(([name, schedule]) => scheduleDraft(name, schedule, by, rules)),
  )
  const differences: ScheduleDifference[] = []
  for (const definition of definitions) {
    const { name, queue } = definition
    const difference = await insist(async (): Promise<ScheduleDifference | 'same' | undefined> => {
      const stored = await schedules.get(name)
      const now = since ?? (await store.depth([queue])).now
      const wanted = changeTo(definition, stored, now, rules)
      if (wanted === undefined) return 'same'
      if (!(await replaced({ ...rules, events }, schedules, wanted, stored, now))) return undefined
      const takenFrom = stored?.definition.declaredBy
      return {
        ...{ schedule: name, change: stored === undefined ? 'added' : 'changed' },
        ...(takenFrom === undefined || takenFrom === by ? {} : { takenFrom }),
      }
    })
    if (difference === undefined) disputed(name)
    if (difference !== 'same') differences.push(difference)
  }
  const others = await removeOthers(schedules, declared, by)
  return { differences: [...differences, ...others.differences], foreign: others.foreign }
}

async function removeOthers(
  schedules: Schedules,
  declared: ReadonlyMap<string, unknown>,
  by: string,
): Promise<Reconciliation> {
  const differences: ScheduleDifference[] = []
  const foreign = new Map<string, string[]>()
  for (const { definition, revision } of await allSchedules(schedules)) {
    const { name, declaredBy } = definition
    if (declaredBy === undefined || declared.has(name)) continue
    if (declaredBy !== by) foreign.set(declaredBy, [...(foreign.get(declaredBy) ?? []), name])
    else if (await schedules.remove(name, revision)) differences.push({ schedule: name, change: 'removed' })
  }
  return { differences, foreign }
}

/** Writes the change; false if somebody else was faster. Ticks that are due by the times of before come first. */
async function replaced(
  surroundings: Pick<Surroundings, 'events' | 'packing' | 'newId'>,
  schedules: Schedules,
  change: ScheduleChange,
  stored: StoredSchedule | undefined,
  now: number,
): Promise<boolean> {
  const isDropped = stored?.nextAt !== undefined && stored.nextAt <= now && stored.nextAt !== change.nextAt
  const present = isDropped ? await enqueueDueBefore(surroundings, schedules, stored, now, 'changed') : stored
  if (isDropped && present === undefined) return false
  return schedules.put(change, present)
}

/** The number of tries while others write the same schedule. */
const mostTries = 10

/** The result of the step, tried again while others are in its way; undefined if they always are. */
async function insist<T>(step: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const answer = await step()
    if (answer !== undefined) return answer
  }
  return undefined
}

function disputed(name: string): never {
  throw new InvalidArgumentError(
    `schedule '${name}' is changed by others again and again, and was not changed. Try again; let one process write it.`,
  )
}
