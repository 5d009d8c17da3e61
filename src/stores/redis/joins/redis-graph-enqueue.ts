/** Enqueueing joins and their members into a Redis store: one step for each shard, and graphs of several steps. */

import { StoreUnavailableError } from '../../../core/errors.js'
import type { JobKey } from '../../contract/job-records.js'
import type { GraphAnswer } from '../../contract/joins.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import type { MemberOf, NewJoin } from '../../contract/new-join.js'
import { memberId } from '../../rules/join-rules.js'
import type { RedisArgument } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import { callsText, enqueuedBy } from '../enqueue/redis-enqueue.js'
import { placedBody, placesAt, recordBody, recordOrder } from '../format/redis-record.js'
import { type RedisShard, shardHolding } from '../redis-layout.js'
import { fragmentKey, onDeadBytes, type RedisJoin, type RedisSet } from '../shards/redis-join-reports.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import { enqueueGraphScript } from './enqueue-graph-script.js'
import { readJoinScript, sealScript, undoScript } from './join-scripts.js'

/** The most jobs that one step of a graph adds: those of a full call. More would keep all others waiting. */
const mostInStep = 250
/** Fewer members are sent one by one. */
const fewestInRun = 4
/** How often an enqueue drops what an earlier join of the same id has left. */
const mostDrops = 100

/** The jobs of a call that lie in one shard. */
interface GraphPart {
  readonly callId: string
  readonly isResent: boolean
  readonly hasNewIds: boolean
  /** The lives of the joins of these jobs and of those that wait for them. */
  readonly lives: JoinLives
  readonly shard: RedisShard
  readonly jobs: readonly NewJob[]
  /** For each job its place in the call. */
  readonly places: readonly number[]
}

/** The life of a join, which tells it from others of its id; undefined if it has none. */
type JoinLives = (join: JobKey) => string | undefined

/** Members of one set with numbers in a row, as the script has them. */
interface SentMembers {
  /** What the ids have before the numbers. */
  readonly ids: string
  readonly from: number
  /** How all bodies begin, up to their places, and the rest of each. */
  readonly head: string
  readonly rests: readonly string[]
}

export class RedisGraphEnqueue {
  readonly #queues: RedisQueues
  readonly #replicas: number

  /** `replicas`: the number of replicas that must have a step before it is answered. */
  constructor(queues: RedisQueues, replicas: number) {
    this.#queues = queues
    this.#replicas = replicas
  }

  /** Adds the jobs of a call, of which some are joins or members. */
  async call(call: EnqueueCall): Promise<Enqueued[]> {
    await this.#queues.registerSwept([call.queue])
    const answers = new Array<Enqueued>(call.jobs.length)
    const lives = await this.#storedLives(call.jobs)
    await Promise.all(
      (await this.#partsOf(call, call.jobs, lives)).map(async (part) => {
        const letters = await this.#send(part, 'each')
        for (const [i, place] of part.places.entries()) answers[place] = enqueuedBy[letters[i]!]!
      }),
    )
    return answers
  }

  /** See `Joins.enqueue`. */
  async graph(calls: readonly EnqueueCall[]): Promise<GraphAnswer> {
    // An unknown queue must change nothing.
    await this.#queues.find(calls.map(({ queue }) => queue))
    await this.#queues.registerSwept(calls.map(({ queue }) => queue))
    const first = calls[0]!
    const root = first.jobs[0]!
    const [own] = await this.#partsOf({ ...first, callId: `${first.callId} first` }, [root], () => first.callId)
    const looked = await this.#look(calls, own!)
    if ('outcome' in looked) return looked
    // Jobs that are there already are of this graph: it goes on where it was.
    const { isBegun, lives } = looked
    const home: GraphPart = { ...own!, lives }
    const { letters: begun, isResent } = await this.#sendWhole(home)
    if (!isBegun && isThere(begun)) return { outcome: 'duplicate' }
    const isAgain = isBegun || isResent
    const isIn = (letters: string) => !isRefused(letters) || (isBegun && isThere(letters))
    const added: GraphPart[] = [home]
    const refused = isIn(begun) ? [] : [refusalOf(home, begun)]
    for (const isOfStep of [isJoin, (job: NewJob) => !isJoin(job)]) {
      if (refused.length > 0) break
      const name = isOfStep === isJoin ? 'joins' : 'members'
      const parts = await Promise.all(
        calls.map((call) =>
          this.#partsOf(
            { ...call, callId: `${call.callId} ${name}` },
            call.jobs.filter((job) => job !== root && isOfStep(job)),
            lives,
          ),
        ),
      )
      const sent = await Promise.allSettled(
        parts.flat().map(async (part) => {
          for (const step of stepsOf(isAgain ? { ...part, hasNewIds: false } : part)) {
            const { letters } = await this.#sendWhole(step)
            if (isIn(letters)) added.push(step)
            else {
              refused.push(refusalOf(step, letters))
              break
            }
          }
        }),
      )
      for (const one of sent) if (one.status === 'rejected') throw one.reason
    }
    if (refused.length > 0) {
      await this.#undo(added)
      return refused[0]!
    }
    const joins = added.flatMap(({ shard, jobs }) => jobs.filter(isJoin).map((job) => ({ shard, job })))
    await Promise.all(joins.filter(({ job }) => job !== root).map(({ shard, job }) => this.seal(shard, job.id, {})))
    // Last: as long as it is open, the graph can be sent again.
    await this.seal(home.shard, root.id, {})
    return { outcome: 'added' }
  }

  /**
   * Looks before anything is stored: whether the graph was begun before, and the lives of its joins, or the answer. A graph
   * that is refused here leaves no trace.
   */
  async #look(
    calls: readonly EnqueueCall[],
    home: GraphPart,
  ): Promise<{ readonly isBegun: boolean; readonly lives: JoinLives } | GraphAnswer> {
    const isRemembered = async () => (await this.#send({ ...home, isResent: true }, 'probe')) === 'm'
    const begun = async () => {
      const stored = await this.#stored(home.shard, home.jobs[0]!.id)
      if (stored === undefined) return { isBegun: true, lives: home.lives }
      // It has ended, and another of its id is there.
      if (stored.join.life !== calls[0]!.callId && !(await this.#isLeftOpen(home))) return { outcome: 'added' } as const
      return { isBegun: true, lives: () => stored.join.life }
    }
    if (home.isResent && (await isRemembered())) return begun()
    const looked = calls.map((call) => ({
      ...call,
      isResent: false,
      hasNewIds: !home.isResent && call.hasNewIds === true,
    }))
    const parts = await Promise.all(looked.map((call) => this.#partsOf(call, call.jobs, home.lives)))
    const probed = await Promise.all(
      parts.map((some) => Promise.all(some.map(async (part) => ({ part, told: await this.#send(part, 'probe') })))),
    )
    // The first part of the first call has the first job.
    if (probed[0]![0]!.told.startsWith('d')) {
      if ((!home.isResent && (await isRemembered())) || (await this.#isLeftOpen(home))) return begun()
      return { outcome: 'duplicate' }
    }
    for (const some of probed) {
      const refused = some.filter(({ told }) => isRefused(told.slice(1)))
      const placeOf = ({ part, told }: (typeof some)[number]) => part.places[refusedAt(told.slice(1))]!
      const [one] = refused.sort((a, b) => placeOf(a) - placeOf(b))
      if (one !== undefined) return refusalOf(one.part, one.told.slice(1))
    }
    return { isBegun: false, lives: home.lives }
  }

  /** Whether the first join of this graph waits, and the process that sent it died before it had sealed it. */
  async #isLeftOpen({ shard, jobs: [root] }: GraphPart): Promise<boolean> {
    const stored = await this.#stored(shard, root!.id)
    if (stored === undefined) return false
    const { state, join } = stored
    const form = (sets: readonly RedisSet[]) =>
      JSON.stringify(
        sets.map(({ name, queue, ids, many, on_dead, keeps, size }) => [name, queue, ids, many, on_dead, keeps, size]),
      )
    return state === 'w' && join.open === 1 && form(join.sets) === form(storedSets(root!.join!, undefined))
  }

  /** The lives of stored joins that wait for these jobs. */
  async #storedLives(jobs: readonly NewJob[]): Promise<JoinLives> {
    const joins = new Map(jobs.flatMap(({ memberOf = [] }) => memberOf.map(({ join }) => [joinName(join), join])))
    const lives = new Map<string, string | undefined>()
    await Promise.all(
      [...joins].map(async ([name, { queue, id }]) => {
        const found = await unlessUnknown(this.#queues.find([queue]))
        if (found !== undefined) lives.set(name, (await this.#stored(shardHolding(found[0]!, id), id))?.join.life)
      }),
    )
    return (join) => lives.get(joinName(join))
  }

  /** A join, and the letter of its state; undefined if it is not there. */
  async #stored(shard: RedisShard, id: string): Promise<{ state: string; join: RedisJoin } | undefined> {
    const reply = await this.#queues.run(shard, readJoinScript, [id])
    if (reply === null) return undefined
    const [state, text] = listIn(reply).map(textIn)
    return { state: state!, join: JSON.parse(text!) as RedisJoin }
  }

  /** Ends the enqueue of a join, or the adding of members to its open sets. Returns the answer of the script. */
  async seal(shard: RedisShard, id: string, sizes: Readonly<Record<string, number>>): Promise<string> {
    const answer = textIn(await this.#queues.run(shard, sealScript, [id, JSON.stringify(sizes)], this.#replicas))
    if (answer !== 'told') return answer
    await this.#queues.reports.deliver(shard)
    return 'sealed'
  }

  async #partsOf(
    { callId, isResent = false, hasNewIds = false, queue: name }: EnqueueCall,
    jobs: readonly NewJob[],
    lives: JoinLives,
  ): Promise<GraphPart[]> {
    const [queue] = await this.#queues.find([name])
    const parts = new Map<RedisShard, GraphPart & { readonly jobs: NewJob[]; readonly places: number[] }>()
    for (const [place, job] of jobs.entries()) {
      const shard = shardHolding(queue!, job.id)
      const part = parts.get(shard) ?? { ...{ callId, isResent, hasNewIds, lives, shard }, jobs: [], places: [] }
      part.jobs.push(job)
      part.places.push(place)
      parts.set(shard, part)
    }
    return [...parts.values()]
  }

  async #sendWhole(part: GraphPart): Promise<{ readonly letters: string; readonly isResent: boolean }> {
    const letters = await this.#send(part, 'whole')
    if (!isRefused(letters) || part.isResent) return { letters, isResent: part.isResent }
    // The call may have been sent before, although its sender does not say so.
    return { letters: await this.#send({ ...part, isResent: true }, 'whole'), isResent: true }
  }

  /** Returns the letter of each job; for a probe see the script. */
  async #send(part: GraphPart, how: 'each' | 'whole' | 'probe'): Promise<string> {
    const { shard } = part
    const args = argumentsOf(part, how)
    for (let drops = 0; drops < mostDrops; drops += 1) {
      const replicas = how === 'probe' ? 0 : this.#replicas
      const reply = textIn(await this.#queues.run(shard, enqueueGraphScript, args, replicas))
      if (reply !== '?') {
        if (!reply.endsWith('!')) return reply
        await this.#queues.reports.deliver(shard)
        return reply.slice(0, -1)
      }
      await this.#queues.reports.deliverOlder(shard, 0)
    }
    throw new StoreUnavailableError(
      'an earlier join of the same id ended a moment ago, and what it has left cannot be removed. Nothing was added; try again, and run `millrace fsck` where it goes on.',
      { inDoubt: false },
    )
  }

  /**
   * Removes what was added of a graph that is refused after all. No call may be answered from memory any more before the
   * first job goes; then the joins go, so that none hears of the others.
   */
  async #undo(added: readonly GraphPart[]): Promise<void> {
    const undone = [() => false, isJoin, (job: NewJob) => !isJoin(job)]
    for (const isOfStep of undone)
      await Promise.all(
        added.map(async ({ callId, shard, jobs }) => {
          const ids = jobs.filter(isOfStep).map(({ id }) => id)
          if (ids.length === 0 && isOfStep !== undone[0]) return
          if ((await this.#queues.run(shard, undoScript, [callId, ...ids])) === 1)
            await this.#queues.reports.deliver(shard)
        }),
      )
  }
}

/** Whether a job waits for others, or others for it. */
export function isInGraph({ join, memberOf }: NewJob): boolean {
  return join !== undefined || memberOf !== undefined
}

function isJoin({ join }: NewJob): boolean {
  return join !== undefined
}

/** The first job that is refused; -1: none. */
function refusedAt(letters: string): number {
  return letters.search(/[^ari]/)
}

function isRefused(letters: string): boolean {
  return refusedAt(letters) >= 0
}

/** Whether all jobs are there already. */
function isThere(letters: string): boolean {
  return /^[dxi]+$/.test(letters)
}

function refusalOf({ shard, jobs }: GraphPart, letters: string): GraphAnswer & { readonly refused: JobKey } {
  const at = refusedAt(letters)
  const as = enqueuedBy[letters[at]!] as Extract<GraphAnswer, { outcome: 'refused' }>['as']
  return { outcome: 'refused', refused: { queue: shard.queue, id: jobs[at]!.id }, as }
}

/**
 * The part in steps which leave room for others in between. They are sent one after the other: who goes on with a graph
 * that was left open begins behind the last member that is there.
 */
function stepsOf(part: GraphPart): GraphPart[] {
  const { callId, jobs, places } = part
  return Array.from({ length: Math.ceil(jobs.length / mostInStep) }, (_, i): GraphPart => {
    const [from, to] = [i * mostInStep, (i + 1) * mostInStep]
    const own = { callId: i === 0 ? callId : `${callId} ${i + 1}`, places: places.slice(from, to) }
    return { ...part, ...own, jobs: jobs.slice(from, to) }
  })
}

/** The arguments of the graph script. */
function argumentsOf(
  { callId, isResent, hasNewIds, lives, shard: { queue }, jobs }: GraphPart,
  how: 'each' | 'whole' | 'probe',
): RedisArgument[] {
  const form = { whole: how !== 'each', probe: how === 'probe' }
  if (form.probe && hasNewIds && !isResent) return ['1', callId, '0', JSON.stringify({ ...form, new: jobs.length })]
  const run = form.probe ? undefined : runOf(jobs)
  if (run !== undefined) {
    const { ids, from, head, rests } = run
    const fragments = [fragmentOf(jobs[0]!, jobs[0]!.memberOf![0]!, lives)]
    const letter = isResent ? 'r' : hasNewIds ? 'n' : 's'
    return [`1${letter}`, callId, head, ...rests, JSON.stringify({ ...form, fragments, run: { ids, from } })]
  }
  const args: RedisArgument[] = [callsText(1, [{ jobs }], isResent), callId, String(jobs.length)]
  const bodyOf = (job: NewJob) => (form.probe ? '' : isInGraph(job) ? placedBody(job) : recordBody(job))
  for (const job of jobs) args.push(job.id, recordOrder(job), bodyOf(job))
  const numbers = new Map<string, number>()
  const fragments: ReturnType<typeof fragmentOf>[] = []
  const places = jobs.map((job) => {
    if (job.memberOf === undefined || job.memberOf.length === 0) return 0
    return job.memberOf.map((place) => {
      const fragment = fragmentOf(job, place, lives)
      const [key] = fragment
      if (!numbers.has(key)) {
        fragments.push(fragment)
        numbers.set(key, fragments.length)
      }
      return [numbers.get(key)!, place.number]
    })
  })
  const joins = jobs.map(({ id, join }) => (join === undefined ? 0 : joinText(join, lives({ queue, id }))))
  args.push(JSON.stringify({ ...form, fragments, joins, places }))
  return args
}

/** The jobs as one run; undefined if they are none, or there are few. */
function runOf(jobs: readonly NewJob[]): SentMembers | undefined {
  const [first] = jobs
  const place = first?.memberOf?.[0]
  if (first === undefined || place === undefined || jobs.length < fewestInRun) return undefined
  const [{ join, set, number: from }, ids] = [place, `${baseOf(first.id, place.number)}.`]
  const head = placedBody(first).slice(0, placesAt(first))
  const rests: string[] = []
  for (const [i, job] of jobs.entries()) {
    const { id, memberOf = [], group } = job
    const [own] = memberOf
    const isNext = memberOf.length === 1 && own!.number === from + i && id === `${ids}${from + i}`
    if (!isNext || own!.set !== set || own!.join.queue !== join.queue || own!.join.id !== join.id) return undefined
    if (job.join !== undefined || group !== undefined || recordOrder(job) !== '') return undefined
    const body = placedBody(job)
    if (typeof body !== 'string' || !body.startsWith(head as string) || placesAt(job) !== head.length) return undefined
    rests.push(body.slice(head.length))
  }
  return { ids, from, head: head as string, rests }
}

/** The key of a fragment, the letter of its `onDead`, and whether it keeps results. */
function fragmentOf(
  { id }: NewJob,
  place: MemberOf,
  lives: JoinLives,
): readonly [key: string, onDead: number, keeps: 0 | 1] {
  const { join, set, number, onDead, keepsResults } = place
  return [fragmentKey(join, set, inLife(baseOf(id, number), lives(join))), onDeadBytes[onDead], keepsResults ? 1 : 0]
}

function joinText(join: NewJoin, life: string | undefined): string {
  const { withinMs, sealWithinMs, cancelsRest } = join
  const within = withinMs === undefined ? -1 : Math.ceil(withinMs)
  const about = { within, seal: Math.ceil(sealWithinMs), rest: cancelsRest ? 1 : 0 }
  return JSON.stringify({ sets: storedSets(join, life), ...about, life })
}

function storedSets({ sets }: NewJoin, life: string | undefined): RedisSet[] {
  return sets.map(
    (set): RedisSet => ({
      ...{ name: set.name, queue: set.queue, ids: set.ids, base: inLife(baseOf(memberId(set, 0), 0), life) },
      many: set.isMany ? 1 : 0,
      on_dead: onDeadBytes[set.onDead],
      keeps: set.keepsResults ? 1 : 0,
      size: set.size ?? -1,
    }),
  )
}

function joinName({ queue, id }: JobKey): string {
  return `${queue}\0${id}`
}

/** What the fragments of a set are named by, so that nobody takes them for those of an earlier join of the same id. */
function inLife(base: string, life: string | undefined): string {
  return life === undefined ? base : `${base} ${life}`
}

/** The id of a member without its number; of the only member of a set, the whole id. */
function baseOf(id: string, number: number): string {
  const end = `.${number}`
  return id.endsWith(end) ? id.slice(0, -end.length) : id
}
