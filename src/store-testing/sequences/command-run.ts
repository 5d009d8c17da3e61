/** A command run: carries out commands on one store, through two handles, and gives plain, comparable answers. */

import { isMillraceError } from '../../core/errors.js'
import { pagesOf } from '../../core/values/pages.js'
import type { Deaths, JobKey, Page, Records, Step } from '../../stores/contract/job-records.js'
import type { Joins } from '../../stores/contract/joins.js'
import type { EnqueueCall } from '../../stores/contract/new-job.js'
import type { MemberOf } from '../../stores/contract/new-join.js'
import type { Schedules, ScheduleTick, StoredSchedule } from '../../stores/contract/schedules.js'
import type { ClaimKey, SettleItem } from '../../stores/contract/settle.js'
import type { Steps } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { shardOf } from '../../stores/rules/payloads.js'
import { tickId } from '../../stores/rules/schedule-record.js'
import type { StoreHarness } from '../harness/store-harness.js'
import { canonicalPayload } from '../state/canonical-state.js'
import { scoreByClock } from '../state/state-by-clock.js'
import type { ClaimRef, Command, PlannedCall, ScheduleCommand, ScheduleIdea, StepCommand } from './command.js'

/** A claim of this run, with its worker. */
interface MadeClaim {
  readonly key: ClaimKey
  readonly worker: string
}

/** The most pages read of one listing. */
const mostPages = 4
/** After this many steps that change nothing and report more, nothing will change before a running job has ended. */
const mostIdleSteps = 10

/** Says which numbers answers contain: those of fences; default scores to the µs, not only to the ms. */
interface RunTells {
  readonly fences: boolean
  readonly scores: boolean
}

export class CommandRun {
  readonly #harness: StoreHarness
  readonly #tells: RunTells
  readonly #handles: Store[] = []
  readonly #claims: MadeClaim[] = []
  readonly #schedules = new ScheduleRun()
  readonly #sent = new Set<string>()

  constructor(harness: StoreHarness, tells: RunTells = { fences: true, scores: true }) {
    this.#harness = harness
    this.#tells = tells
  }

  /**
   * The answer, or the refusal of the command: `refused: ` and the error's code. Errors without a code are rethrown.
   */
  async answer(command: Command): Promise<unknown> {
    try {
      const store = await this.#handle(command.handle)
      const told = await this.#run(command, store)
      const isByShard = !this.#tells.scores && (command.verb === 'list' || command.verb === 'list dead')
      const answer = plain(isByShard ? await byShard(store, command.queue, told as ListedPage[]) : told, this.#tells)
      return store.joins === undefined ? answer : await withPresentJoins(lookedAtOnce(store.joins), answer)
    } catch (error) {
      if (!isMillraceError(error)) throw error
      return `refused: ${error.code}`
    }
  }

  async #handle(i: number): Promise<Store> {
    this.#handles[i] ??= await this.#harness.open()
    return this.#handles[i]
  }

  async #run(command: Command, store: Store): Promise<unknown> {
    switch (command.verb) {
      case 'open':
        return store.open(command.queues, { follows: command.follows === true })
      case 'setLimits':
        return store.records!.setLimits(command.queue, command.change)
      case 'enqueue':
        return store.enqueue((await sendable(store, command.calls)).map((call) => this.#asSent(call)))
      case 'graph':
        return store.joins?.enqueue((await called(store, command.calls)).map((call) => this.#asSent(call)))
      case 'seal':
        return store.joins && sealed(store.joins, command)
      case 'joins':
        return store.joins && Promise.all(command.keys.map((key) => whole(store.joins!, key)))
      case 'sweep':
        return store.joins && swept(await store.joins.sweep(command.worker))
      case 'claim': {
        const claimed = await store.claim(command.from, command.by)
        const { worker } = command.by
        for (const { queue, id, fence } of claimed.claims) this.#note({ queue, id, fence }, worker)
        return claimed
      }
      case 'settle': {
        const items = command.items.map(({ claim, end }) => ({ ...this.#key(claim), ...end }) as SettleItem)
        return store.settle(items)
      }
      case 'extend':
        return store.extend(command.items.map(({ claim, ...how }) => ({ ...this.#key(claim), ...how })))
      case 'advance':
        return this.#harness.advance(command.ms)
      case 'reopen':
        await store.close()
        this.#handles[command.handle] = await this.#harness.open()
        return undefined
      case 'restart':
        return this.#harness.restart()
      case 'throttle':
        return store.throttles?.state(command.queue, command.group)
      case 'set throttle':
        return store.throttles?.set(command.queue, command.rules, command.by)
      case 'set rate':
        return store.throttles?.setRate(command.queue, command.group, command.rules)
      case 'rates':
        return store.throttles?.rates(command.queue, command.limit)
      case 'holds': {
        const { groups, limit } = command
        return store.throttles?.holds(command.queue, { limit, ...(groups === undefined ? {} : { groups }) })
      }
      case 'release':
        return store.throttles?.release(command.queue, command.group)
      case 'pause group':
        return store.throttles?.pause(command.queue, command.group)
      case 'resume group':
        return store.throttles?.resume(command.queue, command.group)
      case 'reschedule': {
        const { runInMs, ...to } = command.to
        const at = runInMs === undefined ? {} : { runAt: (await store.depth([])).now + runInMs }
        return store.records?.reschedule(command.queue, command.ids, { ...to, ...at })
      }
      case 'depth':
        return store.depth(command.queues)
      case 'workers':
        return (await store.workers?.list()) ?? []
      case 'beat':
        return store.workers?.beat(command.worker, command.ttlMs)
      case 'remove worker':
        return store.workers?.remove(command.id)
      case 'held':
        return store.workers?.held(command.worker)
      case 'gone': {
        const worker = command.worker ?? this.#made(command.claims[0])?.worker ?? 'nobody'
        return store.workers?.gone(
          command.claims.map((claim) => this.#key(claim)),
          worker,
        )
      }
      case 'adopt': {
        const from = command.worker ?? this.#made(command.claim)?.worker ?? 'nobody'
        return store.workers?.adopt(this.#key(command.claim), from, command.to)
      }
      case 'put schedule':
      case 'remove schedule':
      case 'tick':
      case 'due':
      case 'resign':
      case 'schedules':
        return store.schedules && this.#schedules.answer(store.schedules, command, (await store.depth([])).now)
      case 'report':
        return store.deaths && report(store.deaths, command)
      case 'keep':
      case 'signal':
      case 'forget':
      case 'steps':
      case 'sweep waits':
        return store.steps && this.#step(store.steps, command)
      default:
        return store.records === undefined ? undefined : administer(store.records, command)
    }
  }

  #step(steps: Steps, command: StepCommand): Promise<unknown> {
    switch (command.verb) {
      case 'keep':
        return steps.keep(this.#key(command.claim), command.step, command.leaseMs)
      case 'signal':
        return steps.signal(command.job, command.signal)
      case 'forget':
        return steps.forget(command.job, command.name, command.of)
      case 'steps':
        return steps.read(command.job)
      case 'sweep waits':
        return steps.sweep(command.worker)
    }
  }

  #key(ref: ClaimRef): ClaimKey {
    const { key } = this.#made(ref) ?? { key: { queue: 'mail', id: 'a', fence: 1 } }
    return ref.stale ? { ...key, fence: key.fence - 1 } : key
  }

  /** Fences may be any numbers that grow from claim to claim of a job. */
  #note(key: ClaimKey, worker: string): void {
    const { queue, id, fence } = key
    const before = this.#claims.findLast(({ key }) => key.queue === queue && key.id === id)?.key.fence ?? 0
    if (fence <= before) throw new Error(`${this.#harness.name} gave '${id}' the fence ${fence} after ${before}`)
    this.#claims.push({ key, worker })
  }

  #asSent(call: EnqueueCall): EnqueueCall {
    const isResent = this.#sent.has(call.callId)
    this.#sent.add(call.callId)
    return { ...call, isResent }
  }

  /** The claim that is meant; undefined if there is none, or none was made yet. */
  #made(ref: ClaimRef | undefined): MadeClaim | undefined {
    return ref && this.#claims[this.#claims.length - 1 - (ref.back % Math.max(1, this.#claims.length))]
  }
}

/** The deaths that are not reported yet, without their numbers, by job; some of them are then reported. */
async function report(deaths: Deaths, { queue, task, most }: Extract<Command, { verb: 'report' }>): Promise<unknown> {
  const unreported = await deaths.unreported([queue], [task], 1_000)
  unreported.sort((a, b) => compareBytes(a.id, b.id) || a.number - b.number)
  await deaths.reported(queue, unreported.slice(0, most))
  return unreported.map(({ number: _, ...death }) => death)
}

interface ListedPage extends Pick<Page, 'jobs'> {
  readonly hasMore?: boolean
}

/** The jobs of an ordered queue, shard by shard: between the jobs of two shards that come in one ms nothing decides. */
async function byShard(store: Store, name: string, pages: readonly ListedPage[]): Promise<unknown> {
  const { kind, shards = 1 } = (await store.records!.queues()).find((queue) => queue.name === name)!
  if (kind === 'plain') return pages
  const of = ({ id }: { readonly id: string }) => shardOf(id, shards)
  return pages.map((page) => ({ ...page, jobs: [...page.jobs].sort((a, b) => of(a) - of(b)) }))
}

async function called(store: Store, calls: readonly PlannedCall[]): Promise<EnqueueCall[]> {
  const { now } = await store.depth([])
  return calls.map((call) => ({
    ...call,
    jobs: call.jobs.map(({ runInMs, ...job }) => (runInMs === undefined ? job : { ...job, runAt: now + runInMs })),
  }))
}

/**
 * The calls without members of joins that are not there, or of sets that are sealed without them: no producer sends these. A store whose parts have transactions of
 * their own cannot tell at once that there is no join, and takes them for members until it hears of that.
 */
async function sendable(store: Store, calls: readonly PlannedCall[]): Promise<EnqueueCall[]> {
  const whole = await called(store, calls)
  if (store.joins === undefined) return whole
  const joins = lookedAtOnce(store.joins)
  const left = whole.map(async (call) => {
    const isSent = await Promise.all(
      call.jobs.map(async ({ id, memberOf = [] }) => {
        const isAwaited = memberOf.map(async (place) => {
          const set = await setOf(joins, place, id, call.queue)
          return set !== undefined && place.number < (set.size ?? Number.POSITIVE_INFINITY)
        })
        return !(await Promise.all(isAwaited)).includes(false)
      }),
    )
    return { ...call, jobs: call.jobs.filter((_, i) => isSent[i]) }
  })
  return (await Promise.all(left)).filter(({ jobs }) => jobs.length > 0)
}

async function sealed(joins: Joins, { join, wrong }: Extract<Command, { verb: 'seal' }>): Promise<unknown> {
  const sets = (await joins.look(join))?.sets ?? []
  const sizes = sets.map(({ name, size, added }) => [name, Math.max(0, (size ?? added) + wrong)])
  return joins.seal(join, Object.fromEntries(sizes))
}

type JoinLooks = Pick<Joins, 'look'>

/** Looks at each join once, while nothing changes: the members of one are many. */
function lookedAtOnce(joins: Joins): JoinLooks {
  const looks = new Map<string, ReturnType<Joins['look']>>()
  return {
    look(join) {
      const name = JSON.stringify([join.queue, join.id])
      const look = looks.get(name) ?? joins.look(join)
      looks.set(name, look)
      return look
    },
  }
}

/**
 * The set of the join that is there in which this job of this queue has the place; `queue`: undefined if that is not known.
 */
async function setOf(joins: JoinLooks, place: MemberOf, id: string, queue: string | undefined) {
  const set = (await joins.look(place.join))?.sets.find(({ name }) => name === place.set)
  const isIts = set !== undefined && memberId(set, place.number) === id && (queue ?? set.queue) === set.queue
  return isIts ? set : undefined
}

/** The answer of a sweep without its order, which is the store's own affair. */
function swept({ failed, more }: Awaited<ReturnType<Joins['sweep']>>): unknown {
  return { failed: failed.map((join) => Object.values(join).join(' ')).sort(), more }
}

/**
 * The answer, whose members name only joins that are there and have them: a store may know nothing of others. A member may have
 * been added to an earlier join of the same ids.
 */
async function withPresentJoins(joins: JoinLooks, answer: unknown): Promise<unknown> {
  if (!namesJoins(answer)) return answer
  if (Array.isArray(answer)) return Promise.all(answer.map((one) => withPresentJoins(joins, one)))
  const { id, memberOf, ...rest } = answer as { id?: string; memberOf?: readonly MemberOf[]; queue?: string }
  if (memberOf === undefined || id === undefined) {
    const fields = Object.entries(answer).map(
      async ([name, one]) => [name, await withPresentJoins(joins, one)] as const,
    )
    return Object.fromEntries(await Promise.all(fields))
  }
  const found = await Promise.all(
    memberOf.map(async (place) => {
      const added = (await setOf(joins, place, id, rest.queue))?.added ?? 0
      return place.number < added ? [place] : []
    }),
  )
  const present = found.flat()
  return { id, ...rest, ...(present.length > 0 ? { memberOf: present } : {}) }
}

function namesJoins(answer: unknown): answer is object {
  if (typeof answer !== 'object' || answer === null) return false
  return 'memberOf' in answer || Object.values(answer).some(namesJoins)
}

/** A join with the ends in its sets, read in pages. */
async function whole(joins: Joins, key: JobKey): Promise<unknown> {
  const join = await joins.look(key)
  if (join === undefined) return undefined
  const ends = join.sets.map(async ({ name, added }) => {
    const pages = Array.from({ length: Math.ceil(added / 2) }, (_, page) => joins.ends(key, name, 2 * page, 2))
    return (await Promise.all(pages)).flat()
  })
  return { ...join, ends: await Promise.all(ends) }
}

type Administration = Exclude<
  Command,
  {
    verb:
      | 'open'
      | 'enqueue'
      | 'graph'
      | 'seal'
      | 'joins'
      | 'sweep'
      | 'claim'
      | 'settle'
      | 'extend'
      | 'advance'
      | 'reopen'
      | 'restart'
      | 'throttle'
      | 'set throttle'
      | 'set rate'
      | 'rates'
      | 'holds'
      | 'release'
      | 'pause group'
      | 'resume group'
      | 'depth'
      | 'workers'
      | 'beat'
      | 'remove worker'
      | 'held'
      | 'gone'
      | 'adopt'
      | 'report'
      | 'put schedule'
      | 'remove schedule'
      | 'tick'
      | 'due'
      | 'resign'
      | 'schedules'
      | StepCommand['verb']
  }
>

async function administer(records: Records, command: Administration): Promise<unknown> {
  switch (command.verb) {
    case 'queues':
      return records.queues()
    case 'get':
      return records.get(command.queue, command.id)
    case 'set fields':
      return records.setFields(command.queue, command.id, command.fields)
    case 'get dead':
      return records.morgue.get(command.queue, command.id)
    case 'list': {
      const { queue, query } = command
      const turn = (cursor: { cursor?: string }) => records.list(queue, { ...query, ...cursor })
      // Each store decides how many jobs of other groups it looks at for a page.
      return query.group === undefined
        ? pages(turn)
        : [{ jobs: (await pages(turn, Number.POSITIVE_INFINITY)).flatMap(({ jobs }) => jobs) }]
    }
    case 'list dead':
      return pages((cursor) => records.morgue.list(command.queue, { ...command.query, ...cursor }))
    case 'cancel':
      return one(records.cancel(command.queue, command.where, command.reason))
    case 'delete':
    case 'runNow':
    case 'bury':
      return one(records[command.verb](command.queue, command.where))
    case 'revive':
      return one(records.morgue.revive(command.queue, command.where))
    case 'delete dead':
      return one(records.morgue.delete(command.queue, command.where))
    case 'fail':
      return records.fail(command.queue, command.id, command.how)
    case 'pause':
    case 'resume':
    case 'drain':
      return records[command.verb](command.queue)
    case 'clear':
      return one(records.clear(command.queue))
    case 'reshard':
      return toTheEnd(() => records.reshard(command.queue, command.shards))
    case 'move':
      return toTheEnd(() => records.move(command.from, command.to))
    case 'expect':
      return records.expect(command.jobs, command.by, command.forMs)
    case 'watch': {
      const ended = await records.watch(command.jobs, 0, new AbortController().signal)
      return ended.map(({ queue, id }) => `${queue} ${id}`).sort()
    }
  }
}

/** The step without `isAwaited`: whether others wait for the store is its own affair. */
async function one(step: Promise<Step>): Promise<Step> {
  const { changed, more } = await step
  return { changed, more }
}

/**
 * The total of all steps, and whether more must wait for a running job: the size of a step is the store's own affair.
 */
async function toTheEnd(next: () => Promise<Step>): Promise<Step> {
  let changed = 0
  for (let idle = 0; idle < mostIdleSteps; ) {
    const step = await next()
    changed += step.changed
    if (!step.more) return { changed, more: false }
    idle = step.changed > 0 ? 0 : idle + 1
  }
  return { changed, more: true }
}

/** The first pages of a listing. Of a cursor only its presence is compared: its text is the store's own affair. */
async function pages(
  turn: (cursor: { cursor?: string }) => Promise<Page>,
  most: number = mostPages,
): Promise<ListedPage[]> {
  const turned: ListedPage[] = []
  for await (const { jobs, cursor } of pagesOf(turn)) {
    turned.push({ jobs, hasMore: cursor !== undefined })
    if (turned.length === most) break
  }
  return turned
}

/** The value with bytes as text, without undefined fields, and without what is not told. */
function plain(value: unknown, tells: RunTells): unknown {
  if (value instanceof Uint8Array) return canonicalPayload(value)
  if (Array.isArray(value)) return value.map((one) => plain(one, tells))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, field]) => field !== undefined && (key !== 'fence' || tells.fences))
      .map(([key, field]) => [
        key,
        key === 'score' && !tells.scores ? scoreByClock(field as number) : plain(field, tells),
      ]),
  )
}

const leadMs = 15_000

/**
 * The schedules of a command run: carries out commands about them, based on the stored schedule or an earlier reading
 * of it.
 */
class ScheduleRun {
  /** By name, as they were read some time ago. */
  readonly #read = new Map<string, StoredSchedule>()

  async answer(schedules: Schedules, command: ScheduleCommand, now: number): Promise<unknown> {
    switch (command.verb) {
      case 'put schedule': {
        const { nextInMs, ...change } = command.schedule
        const expects = await this.#idea(schedules, change.definition.name, command.by)
        const next = nextInMs === undefined ? {} : { nextAt: now + nextInMs }
        return schedules.put({ ...change, ...next, paused: nextInMs === undefined }, expects)
      }
      case 'remove schedule': {
        const expects = command.by && (await this.#idea(schedules, command.name, command.by))
        return schedules.remove(command.name, expects?.revision)
      }
      case 'tick': {
        const schedule = await this.#idea(schedules, command.name, command.by)
        return schedule && schedules.tick(tickOf(schedule, command, now))
      }
      case 'due': {
        // Each store has its own.
        const { origin: _, ...due } = await schedules.due(command.worker, leadMs, command.limit)
        return due
      }
      case 'resign':
        return schedules.resign(command.worker)
      case 'schedules':
        return schedules.list(command.after, command.limit)
    }
  }

  async #idea(schedules: Schedules, name: string, by: ScheduleIdea): Promise<StoredSchedule | undefined> {
    if (by === 'read') return this.#read.get(name)
    const stored = await schedules.get(name)
    if (stored !== undefined) this.#read.set(name, stored)
    return stored
  }
}

/** Its job has its own id, or is named after the instant. */
function tickOf(schedule: StoredSchedule, command: ScheduleCommand & { verb: 'tick' }, now: number): ScheduleTick {
  const { definition, revision, nextAt, shards, lastId } = schedule
  const { name, queue, rule, job } = definition
  const { callId, count, heedsLast, isLast, passes } = command
  const [at, everyMs] = [nextAt ?? now, rule.everyMs!]
  // An ordered job that had another id may be in another shard, where not every store looks.
  const unless = heedsLast ? (job.id ?? lastId) : undefined
  return {
    ...{ name, queue, revision, callId, skips: 1, misses: 2 },
    ...(nextAt === undefined ? {} : { dueAt: nextAt }),
    ...(isLast ? {} : { nextAt: at + everyMs * Math.max(1, count) }),
    ...(passes ? { lastAt: at } : {}),
    ...(unless === undefined ? {} : { unless }),
    jobs: Array.from({ length: count }, (_, i) => ({ ...job, id: job.id ?? tickId(name, at + i * everyMs, shards) })),
  }
}
