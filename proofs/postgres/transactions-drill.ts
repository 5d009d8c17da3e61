/** Orders with their jobs, and effects with the ends of theirs, each pair in one transaction, by processes many of which are killed. */

import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace } from 'millrace'
import pg from 'pg'
import type { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { attack } from '../attack.js'
import { Crew, leaseMs } from '../crew.js'
import { forkedProgram } from '../forked-program.js'
import { type ProducerSettings, type ProducerWord, pay, type Round, roundOf, ship } from './transaction-words.js'

export interface OrdersOutcome {
  /** The number of rounds by how they were to end. */
  readonly rounds: Readonly<Record<Round['end'], number>>
  /** Processes that died. */
  readonly kills: number
  /** Transactions that were begun anew. */
  readonly repeated: number
  readonly orders: number
  /** Jobs that ran. */
  readonly ran: number
  /** Committed orders whose job never ran, and jobs whose order was never committed. */
  readonly withoutJob: readonly string[]
  readonly withoutOrder: readonly string[]
  readonly ranTwice: readonly string[]
  /** Findings of fsck other than `ok`. */
  readonly findings: readonly string[]
}

const withinMs = 240_000
const lookMs = 20
const perCall = 20

let schemas = 0

/** A schema that nobody has used, on a database whose table `name` is new. */
async function ground(server: PostgresServer, name: string) {
  schemas += 1
  const eyes = new pg.Client(server.url)
  // The server ends before this process does.
  eyes.on('error', () => {})
  await eyes.connect()
  await eyes.query(`DROP TABLE IF EXISTS ${name}; CREATE TABLE ${name} (id text)`)
  const ids = async () => (await eyes.query(`SELECT id FROM ${name}`)).rows.map(({ id }) => id as string)
  return { store: `${server.url}?schema=drill_${schemas}`, ids, close: () => eyes.end() }
}

/** Runs `count` rounds in one process after the other, while a worker of this process runs the jobs. */
export async function drillOrders(
  server: PostgresServer,
  client: string,
  count: number,
  seed: number,
): Promise<OrdersOutcome> {
  const { store, ids, close } = await ground(server, 'orders')
  const ran: string[] = []
  const task = defineTask({ name: ship.name, queue: ship.queue, run: (_: unknown, { job }) => void ran.push(job.id) })
  const mill = millrace({ store, tasks: [task] })
  try {
    await mill.ready()
    await mill.worker().start()
    let [kills, repeated] = [0, 0]
    for (let from = 0; from < count; ) {
      const produced = await produce({ store, client, seed, from, to: count })
      from = produced.next
      repeated += produced.repeated
      if (produced.isKilled) kills += 1
    }
    await idle(mill, ship.queue)
    const orders = await ids()
    const [hasRun, isOrder] = [new Set(ran), new Set(orders)]
    const rounds = { commit: 0, rollback: 0, refused: 0, kill: 0 }
    for (let number = 0; number < count; number += 1) rounds[roundOf(seed, number).end] += 1
    return {
      ...{ rounds, kills, repeated, orders: orders.length, ran: hasRun.size },
      withoutJob: orders.filter((id) => !hasRun.has(id)),
      withoutOrder: [...hasRun].filter((id) => !isOrder.has(id)),
      ranTwice: ran.filter((id, i) => ran.indexOf(id) !== i),
      findings: await findings(mill),
    }
  } finally {
    await mill.close()
    await close()
  }
}

/** `next`: the number of the round after this process. */
async function produce(settings: ProducerSettings) {
  let [next, repeated] = [settings.from, 0]
  const producer = forkedProgram(join(import.meta.dirname, 'transaction-producer.ts'), [JSON.stringify(settings)])
  producer.on('message', (word: ProducerWord) => {
    next = Math.max(next, word.begun + 1)
    repeated = word.repeated
  })
  const [code, signal] = await once(producer, 'exit')
  const isKilled = signal === 'SIGKILL'
  if (!isKilled && code !== 0) throw new Error(`a producer ended with ${code ?? signal}`)
  return { next, repeated, isKilled }
}

export interface EffectsOutcome {
  readonly jobs: number
  readonly effects: number
  /** Jobs without an effect, and those with more than one. */
  readonly without: readonly string[]
  readonly twice: readonly string[]
  readonly kills: number
  readonly stops: number
  /** Settles that were refused because the claim was lost. */
  readonly refused: number
  /** Jobs that the store counts as completed, and those that are left in it. */
  readonly processed: number
  readonly left: number
  readonly failedCalls: readonly string[]
  readonly findings: readonly string[]
}

export interface EffectsPlan {
  readonly jobs: number
  readonly processes: number
  readonly kills: number
  readonly stops: number
  readonly random: () => number
}

/** Workers end their jobs by `completeIn`, and are killed, and stopped for longer than their leases. */
export async function drillEffects(server: PostgresServer, client: string, plan: EffectsPlan): Promise<EffectsOutcome> {
  const { store, ids, close } = await ground(server, 'effects')
  const { jobs, processes, kills, stops, random } = plan
  const mill = millrace({ store, tasks: [pay], queues: { [pay.queue]: { lease: leaseMs, maxCrashes: 100 } } })
  const running = async () => (await mill.queue(pay.queue).jobs.list({ state: 'running', limit: 100 })).jobs
  const holdsAny = async (worker: string) => (await running()).some((job) => job.worker === worker)
  const accepted: string[] = []
  const enqueue = async (count: number) => {
    const handles = await mill.enqueueMany(pay, new Array(count).fill(null))
    accepted.push(...handles.map(({ id }) => id))
  }
  const crew = new Crew('postgres/completing-worker.ts', [JSON.stringify({ store, client })], holdsAny, async () => {
    // The workers have run out of jobs before a fault could hit any.
    if ((await running()).length === 0) await enqueue(perCall)
  })
  try {
    await enqueue(jobs)
    await Promise.all(Array.from({ length: processes }, () => crew.start()))
    const deeds = [
      { times: kills, make: () => crew.killOne(random) },
      { times: stops, make: () => crew.stopOne(random), lasts: true },
    ] as const
    await attack(deeds, random, async (share) => {
      await until(mill, pay.queue, ({ processed }) => processed >= share * jobs)
    })
    const { processed, dead } = await idle(mill, pay.queue)
    await crew.end()
    const times = new Map<string, number>()
    for (const id of await ids()) times.set(id, (times.get(id) ?? 0) + 1)
    return {
      ...{ jobs: accepted.length, processed, left: dead, refused: crew.refused, failedCalls: crew.failedCalls },
      effects: times.size,
      without: accepted.filter((id) => !times.has(id)),
      twice: [...times].flatMap(([id, count]) => (count === 1 ? [] : [id])),
      kills: crew.faults.filter(({ kind }) => kind === 'kill').length,
      stops: crew.faults.filter(({ kind }) => kind === 'stop').length,
      findings: await findings(mill),
    }
  } finally {
    crew.kill()
    await mill.close()
    await close()
  }
}

type Depth = Awaited<ReturnType<Mill['depths']>>[number]

function idle(mill: Mill, queue: string): Promise<Depth> {
  return until(mill, queue, ({ ready, running, scheduled }) => ready + running + scheduled === 0)
}

async function until(mill: Mill, queue: string, isSo: (depth: Depth) => boolean): Promise<Depth> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const [depth] = await mill.depths([queue])
    if (isSo(depth!)) return depth!
    if (performance.now() > deadline) throw new Error(`not so within ${withinMs} ms: ${isSo}; ${JSON.stringify(depth)}`)
    await delay(lookMs)
  }
}

async function findings(mill: Mill): Promise<string[]> {
  const check = (await (await mill.health())?.check()) ?? []
  return check.filter(({ level }) => level !== 'ok').map(({ text }) => text)
}
