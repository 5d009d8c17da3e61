/**
 * The ordered drill: few ids with very many payloads each, on worker processes that are killed, stopped and relieved
 * while the payloads arrive. The audit of the store, the morgue and the handlers' own ledger are judged afterwards.
 */

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineOrderedTask, type Mill, millrace, type OrderedTask, type QueueDepth } from 'millrace'
import * as v from 'valibot'
import { attack } from '../attack.js'
import { Crew, leaseMs } from '../crew.js'
import { type OpenGround, sqliteGround } from '../ground.js'
import { Ledger } from '../ledger.js'
import { slowestReturn } from '../workers/contention.js'
import { type OrderedJudgement, orderedJudgement } from './ordered-judge.js'

export interface OrderedPlan {
  readonly ids: number
  readonly payloadsPerId: number
  readonly processes: number
  readonly exclusive: 'id' | 'shard'
  /** The average time of a run. */
  readonly runMs: number
  /** The most payloads of an id that one run gets. */
  readonly maxPayloads: number
  /** How many workers are killed with SIGKILL. Each is replaced at once. */
  readonly kills: number
  /** How many workers are stopped with SIGSTOP for longer than the lease, and then continued. */
  readonly stops: number
  /** How many workers end in order. Each is replaced by a new one. */
  readonly reliefs: number
  readonly random: () => number
  /** The time limit of the run. */
  readonly withinMs: number
}

export interface OrderedOutcome extends OrderedJudgement {
  readonly seconds: number
  /** Writes that the fence refused. */
  readonly refusedWrites: number
  readonly kills: number
  readonly stops: number
  /** The longest time from a kill, or from the begin of a stop, until the last id in hand was back in its queue. */
  readonly slowestReturnMs: number
  readonly failedCalls: readonly string[]
}

const shards = 5
const perCall = 100
/** More payloads arrive only while at most this number waits. */
const mostAhead = 2_000
/** Payloads arrive out of order by at most this number of places. */
const disorder = 20
const lookMs = 20

const numbered = v.object({ id: v.string(), n: v.number() })
type Numbered = v.InferOutput<typeof numbered>

export const orderedTaskOptions = {
  name: 'ordered',
  input: numbered,
  id: ({ id }: Numbered) => id,
  score: ({ n }: Numbered) => n,
  batchSize: 3,
  retry: { max: 1, backoff: () => 0 },
} as const

export const queueOptions = (exclusive: 'id' | 'shard', lease: number) => ({ shards, exclusive, lease }) as const

/**
 * Every 499th payload of an id never works. It is buried when it is the oldest in hand, as the first payload always is.
 */
export function isPoisoned(n: number): boolean {
  return n % 499 === 0
}

export async function drillOrdered(plan: OrderedPlan, open: OpenGround = sqliteGround): Promise<OrderedOutcome> {
  const ground = await open()
  const { store, folder } = ground
  const task = defineOrderedTask(orderedTaskOptions)
  const mill = millrace({ store, tasks: [task], queues: { [task.queue]: queueOptions(plan.exclusive, leaseMs) } })
  const file = join(folder, 'ledger.db')
  const ledger = await Ledger.open(file)
  const supply = new Supply(mill, task, plan)
  const args = [JSON.stringify(store), file, plan.exclusive, String(plan.runMs), String(plan.maxPayloads)]
  const running = async () => (await mill.queue(task.queue).jobs.list({ state: 'running', limit: plan.ids })).jobs
  const crew = new Crew(
    'ordered/ordered-worker.ts',
    args,
    async (worker) => (await running()).some((job) => job.worker === worker),
    async () => {
      // The workers have run out of payloads before a fault could hit any.
      if ((await running()).length === 0) await supply.give()
    },
  )
  try {
    await mill.depths()
    await Promise.all(Array.from({ length: plan.processes }, () => crew.start()))
    const startedAt = performance.now()
    const { kills, stops, reliefs, random } = plan
    const payloads = plan.ids * plan.payloadsPerId
    const deeds = [
      { times: kills, make: () => crew.killOne(random) },
      { times: stops, make: () => crew.stopOne(random), lasts: true },
      { times: reliefs, make: () => crew.relieveOne(random) },
    ] as const
    // Each deed happens when its share of the payloads has arrived.
    await attack(deeds, random, (share) => supply.upTo(share * payloads))
    await supply.upTo(payloads)
    await until(mill, ({ ready, scheduled, running }) => ready + scheduled + running === 0, plan.withinMs)
    const seconds = (performance.now() - startedAt) / 1_000
    await crew.end()
    const morgue = await buriedPayloads(mill, plan.ids)
    await mill.close()
    const audit = await ground.audit()
    const { faults, refused, failedCalls } = crew
    return {
      seconds,
      refusedWrites: refused,
      kills: faults.filter(({ kind }) => kind === 'kill').length,
      stops: faults.filter(({ kind }) => kind === 'stop').length,
      slowestReturnMs: slowestReturn(audit, faults),
      failedCalls,
      ...orderedJudgement({
        audit,
        handOvers: ledger.handOvers(),
        writings: ledger.writings(),
        morgue,
        ids: Array.from({ length: plan.ids }, (_, i) => idOf(i)),
        payloadsPerId: plan.payloadsPerId,
        isShardExclusive: plan.exclusive === 'shard',
      }),
    }
  } finally {
    crew.kill()
    ledger.close()
    await mill.close()
    await ground.close()
  }
}

const idOf = (i: number) => `id-${i}`

/** The payloads, which arrive in calls of 100, for all ids in turn, slightly out of order. */
class Supply {
  readonly #mill: Mill
  readonly #task: OrderedTask<string, Numbered, Numbered>
  readonly #withinMs: number
  readonly #all: readonly Numbered[]
  #given = 0

  constructor(mill: Mill, task: OrderedTask<string, Numbered, Numbered>, plan: OrderedPlan) {
    const { ids, payloadsPerId, random, withinMs } = plan
    this.#mill = mill
    this.#task = task
    this.#withinMs = withinMs
    const numbers = shuffledALittle(payloadsPerId, random)
    this.#all = numbers.flatMap((n) => Array.from({ length: ids }, (_, i) => ({ id: idOf(i), n })))
  }

  /** Makes the next call; harmless if all have been made. */
  async give(): Promise<void> {
    const from = this.#given
    this.#given += perCall
    if (from < this.#all.length) await this.#mill.enqueueMany(this.#task, this.#all.slice(from, from + perCall))
  }

  /** Makes all calls up to this payload. */
  async upTo(count: number): Promise<void> {
    while (this.#given < count) {
      await this.give()
      await until(this.#mill, ({ payloads }) => payloads < mostAhead, this.#withinMs)
    }
  }
}

function shuffledALittle(count: number, random: () => number): number[] {
  const places = Array.from({ length: count }, (_, n) => ({ n, at: n + random() * disorder }))
  return places.sort((a, b) => a.at - b.at).map(({ n }) => n)
}

async function until(mill: Mill, isSo: (depth: QueueDepth) => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const [depth] = await mill.depths([orderedTaskOptions.name])
    if (isSo(depth!)) return
    if (performance.now() > deadline)
      throw new Error(`not so within ${withinMs} ms: ${isSo}; the last was ${JSON.stringify(depth)}`)
    await delay(lookMs)
  }
}

/** The numbers of the payloads in the morgue, by id. */
async function buriedPayloads(mill: Mill, ids: number): Promise<Map<string, number[]>> {
  const buried = new Map<string, number[]>()
  for (let i = 0; i < ids; i += 1) {
    const dead = await mill.queue(orderedTaskOptions.name).morgue.get(idOf(i))
    buried.set(
      idOf(i),
      (dead?.payloads ?? []).map(({ input }) => (input as Numbered).n),
    )
  }
  return buried
}
