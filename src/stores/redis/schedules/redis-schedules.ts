/** The schedules of a Redis store. */

import type {
  DueSchedules,
  ScheduleChange,
  ScheduleState,
  Schedules,
  ScheduleTick,
  StoredSchedule,
  TickAnswer,
} from '../../contract/schedules.js'
import { compareBytes } from '../../rules/byte-order.js'
import { definitionText } from '../../rules/schedule-record.js'
import type { RedisArgument, RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { refuse } from '../client/redis-script.js'
import { enqueueOrderedText } from '../enqueue/enqueue-ordered-script.js'
import { enqueueText } from '../enqueue/enqueue-script.js'
import { callsText, enqueuedBy, packCall } from '../enqueue/redis-enqueue.js'
import { scriptPair } from '../lua/script-kinds.js'
import { scheduleChannel, scheduleIndexKeys, scheduleKeys } from '../redis-keys.js'
import { siblingKeys } from '../redis-layout.js'
import { partialReplies } from '../shards/redis-damage.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import { type RedisSchedule, RedisSchedulePlaces } from './redis-schedule-places.js'
import { recordIn, scheduleRecords } from './redis-schedule-record.js'
import { dueSchedulesScript, endScheduleScript, scheduleLeadScript, writeScheduleScripts } from './schedule-scripts.js'

/** How long `changed` waits at most if the server does not allow it to listen. */
const unheardMs = 5_000

/**
 * The age at which a record that the index does not point to is removed. A writer registers its record at once, so an
 * older one is abandoned.
 */
const strayMs = 60_000

interface DueRow {
  readonly schedule: RedisSchedule
  readonly tag: string
}

export class RedisSchedules implements Schedules {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #namespace: string
  readonly #replicas: number
  readonly #places: RedisSchedulePlaces
  readonly #ears = new Set<() => void>()
  #listening: Promise<unknown> | undefined
  /** The number of changes heard so far, and the number that the last call of `due` knew of. */
  #heard = 0
  #known = 0

  /** `replicas`: the number of replicas that must have a tick before it is answered. */
  constructor(client: RedisClient, queues: RedisQueues, namespace: string, replicas: number) {
    this.#client = client
    this.#queues = queues
    this.#namespace = namespace
    this.#replicas = replicas
    this.#places = new RedisSchedulePlaces(client, queues, namespace)
  }

  async put(change: ScheduleChange, expects: ScheduleState | undefined): Promise<boolean> {
    const isDone = await this.#queues.following(() => this.#put(change, expects))
    if (isDone) await this.#tell()
    return isDone
  }

  async remove(name: string, expects?: string): Promise<boolean> {
    for (let isDone = false; ; ) {
      const [tag] = await this.#places.of([name])
      if (tag === undefined) return isDone
      const schedule = await this.#places.read(name, tag)
      if (schedule !== undefined && expects !== undefined && schedule.revision !== expects) return isDone
      const isGone = schedule === undefined || (await this.#places.end(name, tag, schedule.revision))
      isDone ||= schedule !== undefined && isGone
      // The schedule may have changed meanwhile, or be moving to another place.
      if (isGone && (await this.#places.unregister(name, tag))) return isDone
    }
  }

  async get(name: string): Promise<StoredSchedule | undefined> {
    const [tag] = await this.#places.of([name])
    const schedule = tag === undefined ? undefined : await this.#places.read(name, tag)
    return schedule && (await this.#told([schedule]))[0]
  }

  async list(after: string | undefined, limit: number): Promise<StoredSchedule[]> {
    const names = (await this.#places.names()).sort(compareBytes)
    const found: StoredSchedule[] = []
    // A name may be registered without a schedule: its writer is not done yet, or died before it was.
    let left = names.filter((name) => after === undefined || compareBytes(name, after) > 0)
    while (left.length > 0 && found.length < limit) {
      const some = left.slice(0, limit - found.length)
      left = left.slice(some.length)
      const tags = await this.#places.of(some)
      const read = await Promise.all(
        some.map((name, i) => (tags[i] === undefined ? undefined : this.#places.read(name, tags[i]))),
      )
      found.push(...(await this.#told(read.flatMap((one) => one ?? []))))
    }
    return found
  }

  tick(tick: ScheduleTick): Promise<TickAnswer> {
    return this.#queues.following(() => this.#tick(tick))
  }

  async due(worker: string, leadMs: number, limit: number): Promise<DueSchedules> {
    this.#known = this.#heard
    const [, places, leadKey] = scheduleIndexKeys(this.#namespace)
    const args = [worker, String(Math.ceil(leadMs))]
    const [asked, lead, left, tags, named] = listIn(await this.#client.run(scheduleLeadScript, [leadKey, places], args))
    const leads = { origin: textIn(named), isLead: textIn(lead) === worker, leadMs: numberIn(left) }
    if (!leads.isLead) return { now: numberIn(asked), ...leads, due: [] }
    // Schedules on a server that is away must not stop the others.
    const looks = await partialReplies(
      listIn(tags).map(async (tag) => {
        const keys = scheduleKeys(textIn(tag))
        const [at, next, rows] = listIn(await this.#client.run(dueSchedulesScript, keys, [String(limit + 1)]))
        const read = rowsIn(rows, 2).flatMap(([, text]): DueRow[] => {
          const schedule = recordIn(textIn(text))
          return schedule === undefined ? [] : [{ schedule, tag: textIn(tag) }]
        })
        return { at: numberIn(at), next: numberIn(next), read }
      }),
    )
    // The clocks of servers differ: nothing is due before it is due by all of them.
    const now = Math.min(numberIn(asked), ...looks.map(({ at }) => at))
    const all = (
      await this.#atHome(
        looks.flatMap(({ read }) => read),
        now,
      )
    ).sort((a, b) => a.nextAt! - b.nextAt! || compareBytes(a.definition.name, b.definition.name))
    const due = all.filter(({ nextAt }) => nextAt! <= now).slice(0, limit)
    const next = [...all.slice(due.length).map(({ nextAt }) => nextAt!), ...looks.map((look) => look.next)]
    const soonest = Math.min(...next.filter((at) => at >= 0))
    return { now, ...leads, due: await this.#told(due), ...(Number.isFinite(soonest) ? { nextAt: soonest } : {}) }
  }

  async resign(worker: string): Promise<void> {
    const lead = scheduleIndexKeys(this.#namespace)[2]
    const known = await this.#client.command('HGET', [lead, 'worker'])
    if (known !== null && textIn(known) === worker)
      await this.#client.command('HDEL', [lead, 'worker', 'seen', 'until'])
  }

  async changed(forMs: number, signal: AbortSignal): Promise<void> {
    let wake = () => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    this.#ears.add(wake)
    signal.addEventListener('abort', wake)
    const isHeard = await this.#listen()
    const timer = setTimeout(wake, Math.min(forMs, isHeard ? 0x7fffffff : unheardMs))
    if (signal.aborted || this.#heard !== this.#known) wake()
    await woken
    clearTimeout(timer)
    signal.removeEventListener('abort', wake)
    this.#ears.delete(wake)
  }

  async #put(change: ScheduleChange, expects: ScheduleState | undefined): Promise<boolean> {
    const { definition, revision, paused, nextAt } = change
    const { name } = definition
    const shard = await this.#places.shardFor(definition)
    const [tag] = await this.#places.of([name])
    if (tag !== undefined && tag !== shard.tag) {
      const old = expects === undefined ? undefined : await this.#retired(name, tag, expects, revision)
      const there = old ?? (await this.#places.read(name, tag))
      if (old === undefined && there !== undefined) return there.revision === revision
      if (old === undefined && expects !== undefined) return false
      const now = await this.#queues.now()
      const fresh = { ticked: 0, skipped: 0, missed: 0, createdAt: now }
      const { nextAt: _, ...kept } = { ...fresh, ...old }
      await this.#places.move({ ...kept, ...change, updatedAt: now }, tag, shard, revision)
      return true
    }
    // A record whose name is not registered is left over from an earlier writer, and is no schedule.
    const stray = tag === undefined && expects === undefined ? await this.#places.read(name, shard.tag) : undefined
    const isNew = tag === undefined && expects === undefined && (await this.#places.register(name, shard.tag))
    if (tag === undefined && !isNew) return false
    const before = stray ?? expects
    const must = before === undefined ? ['', '-1'] : [before.revision, String(before.nextAt ?? -1)]
    const next = String(nextAt ?? -1)
    const args = [
      'put',
      name,
      revision,
      next,
      paused ? '1' : '0',
      definitionText(definition),
      isNew ? '0' : '1',
      ...must,
    ]
    const isDone =
      (await this.#queues.runOver([shard], writeScheduleScripts, args, undefined, scheduleKeys(shard.tag))) === 1
    if (isDone) await this.#places.confirm(name, shard.tag)
    return isDone
  }

  /**
   * Retires the schedule: it ticks no more, and waits in its shard to be replaced by revision `next`. Returns the
   * record as it was, or undefined if the schedule is not in this state.
   */
  async #retired(
    name: string,
    tag: string,
    { revision, nextAt = -1 }: ScheduleState,
    next: string,
  ): Promise<RedisSchedule | undefined> {
    const args = ['retire', name, revision, String(nextAt), next]
    const text = await this.#client.run(endScheduleScript, scheduleKeys(tag), args)
    return text === null ? undefined : recordIn(textIn(text))
  }

  async #tick(tick: ScheduleTick): Promise<TickAnswer> {
    const { name, queue: of, revision, dueAt, nextAt, lastAt, callId, jobs, unless, skips, misses } = tick
    const found = await this.#places.following(name, of)
    if (found === undefined) return { outcome: 'lost' }
    const { shard, queue } = found
    // No call id is looked up: a tick that is sent again finds that its schedule has moved on.
    const args: RedisArgument[] = [callsText(jobs.length === 0 ? 0 : 1, [{ jobs }], false)]
    if (jobs.length > 0) packCall(shard.kind, { callId, jobs }, args)
    args.push(name, revision, String(dueAt ?? -1), String(nextAt ?? -1), String(lastAt ?? -1))
    args.push(jobs.at(-1)?.id ?? '', unless ?? '', String(jobs.length), String(skips), String(misses))
    const behind = [...siblingKeys(queue), ...scheduleKeys(shard.tag)]
    const reply = textIn(await this.#queues.runOver([shard], tickScripts, args, this.#replicas, behind))
    if (reply === 'lost' || reply === 'skipped') return { outcome: reply }
    const enqueued = Array.from(reply, (letter) => enqueuedBy[letter]!)
    if (enqueued[0] === 'full' || enqueued[0] === 'draining') return { outcome: enqueued[0] }
    return { outcome: 'ticked', enqueued }
  }

  /** The schedules that the index points to. Old records elsewhere were abandoned halfway, and are removed. */
  async #atHome(rows: readonly DueRow[], now: number): Promise<RedisSchedule[]> {
    const tags = await this.#places.of(rows.map(({ schedule }) => schedule.definition.name))
    const strays = rows.filter(({ schedule, tag }, i) => tags[i] !== tag && schedule.updatedAt < now - strayMs)
    await Promise.all(
      strays.map(({ schedule: { definition, revision }, tag }) => this.#places.end(definition.name, tag, revision)),
    )
    return rows.filter(({ tag }, i) => tags[i] === tag).map(({ schedule }) => schedule)
  }

  /** Adds the shards of their queues. Schedules whose queue is gone are left out. */
  async #told(schedules: readonly RedisSchedule[]): Promise<StoredSchedule[]> {
    const told = await Promise.all(
      schedules.map(async (schedule): Promise<StoredSchedule | undefined> => {
        const { queue, job } = schedule.definition
        if (job.id !== undefined) return { ...schedule, shards: 1 }
        const found = await unlessUnknown(this.#queues.find([queue]))
        return found && { ...schedule, shards: found[0]!.shards.length }
      }),
    )
    return told.flatMap((one) => one ?? [])
  }

  /** Announces a change. A process that does not hear it looks a little later. */
  async #tell(): Promise<void> {
    const publish = this.#client.isCluster ? 'SPUBLISH' : 'PUBLISH'
    await this.#client.command(publish, [scheduleChannel(this.#namespace), '']).catch(() => {})
  }

  /** Starts to listen for changes. Returns whether the server allows it. */
  async #listen(): Promise<boolean> {
    this.#listening ??= this.#client.listen(scheduleChannel(this.#namespace), () => {
      this.#heard += 1
      for (const wake of [...this.#ears]) wake()
    })
    try {
      await this.#listening
      return true
    } catch {
      this.#listening = undefined
      return false
    }
  }
}

/**
 * KEYS: those of the enqueue script, then those of the schedules of the shard.
 * ARGV: those of the enqueue script, for one call or none; then name; revision; the due tick, the next one, and the
 * last one that is done (-1 each for none); the id of the last job; the id whose presence is the reason to skip (''
 * each for none); the number of jobs; the number of ticks left out as skipped and as missed.
 * Returns 'lost', 'skipped', or the letters of the jobs. If these are 'f' or 'g', nothing was done. Refuses `unknown`
 * and `moved`.
 */
const tickStart = (isThere: string) => `
if call('EXISTS', META) == 0 then ${refuse('unknown')} end
if call('HEXISTS', META, 'closed') == 1 then ${refuse('moved')} end
${scheduleRecords}
local name, revision, due_at, next_at, last_at, last_id, unless, count, skips, misses = unpack(ARGV, #ARGV - 9)
local schedule = read_schedule(name)
if not schedule or schedule.revision ~= revision or schedule.next ~= due_at then return 'lost' end
local function step(added, left_out)
  schedule.next = next_at
  if last_at ~= '-1' then schedule.last = last_at end
  if added > 0 then schedule.last_id = last_id end
  schedule.ticked, schedule.skipped, schedule.missed = schedule.ticked + added, schedule.skipped + left_out, schedule.missed + misses
  write_schedule(schedule)
end
if count == '0' then
  step(0, skips)
  return ''
end
if unless ~= '' and ${isThere} then
  step(0, skips + count)
  return 'skipped'
end
`

const tickEnd = `
local first = sub(answers[1], 1, 1)
if first ~= 'f' and first ~= 'g' then step(tonumber(count), skips) end
return answers[1]
`

/** Lua for whether the job `unless` waits or runs. */
const plainIsThere =
  "(function() local j = job(unless) return j and (j.claim or (j.state ~= 'c' and j.state ~= 'd')) end)()"
const orderedIsThere = "call('HEXISTS', JOBS, unless) == 1"

/** The tick script: a schedule enqueues its jobs and moves on to its next tick, both or neither. */
const tickScripts = scriptPair('tick', {
  plain: tickStart(plainIsThere) + enqueueText + tickEnd,
  ordered: tickStart(orderedIsThere) + enqueueOrderedText + tickEnd,
})
