/**
 * The processes of the proof of large joins, each with one role: one adds members, one runs them, one runs the joins, one
 * runs the jobs of a busy queue. They answer orders of their parent. All instants are on the clock of the machine.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, many, millrace } from 'millrace'
import { machineMs } from '../forked-program.js'
import { processSample } from '../process-sample.js'

/** A member: its number, and how long it takes. */
interface Row {
  readonly n: number
  readonly pauseMs: number
}

export type Order =
  /** One join of this many members. */
  | { readonly order: 'join'; readonly members: number }
  /** Joins of 1,000 members each, or as many jobs without joins. */
  | { readonly order: 'fill'; readonly joins: number; readonly areJoins: boolean; readonly pauseMs: number }
  | { readonly order: 'work'; readonly queue: 'rows' | 'sums' | 'busy'; readonly concurrency: number }
  /** When the last member that this process ran has ended. */
  | { readonly order: 'last' }
  /** What this process has seen since it was asked last. */
  | { readonly order: 'seen' }
  | { readonly order: 'end' }

export interface Added {
  readonly seconds: number
  /** The heap after each tenth of the members, in MB. */
  readonly heapMb: readonly number[]
  readonly rssMb: number
}

export interface Seen {
  /** Of each join that has run. */
  readonly joins: readonly {
    readonly startedAt: number
    readonly members: number
    readonly total: number
    readonly heapMb: readonly number[]
  }[]
  /** From the enqueue of each job of the busy queue to its start, in ms. */
  readonly latenciesMs: readonly number[]
}

let lastEndAt = 0
let joins: Seen['joins'][number][] = []
let latenciesMs: number[] = []

const row = defineTask({
  name: 'row',
  queue: 'rows',
  run: async ({ n, pauseMs }: Row) => {
    if (pauseMs > 0) await delay(pauseMs)
    lastEndAt = machineMs()
    return n
  },
})

const sum = defineTask({
  name: 'sum',
  queue: 'sums',
  joins: { rows: many(row) },
  run: async ({ every }: { readonly every: number }, ctx) => {
    const startedAt = machineMs()
    const heapMb: number[] = []
    let [members, total] = [0, 0]
    for await (const n of ctx.joined.rows) {
      members += 1
      total += n
      if (members % every === 0) heapMb.push(processSample().heapMb)
    }
    joins.push({ startedAt, members, total, heapMb })
  },
})

const busy = defineTask({
  name: 'busy',
  queue: 'busy',
  run: async ({ at }: { readonly at: number }) => {
    latenciesMs.push(machineMs() - at)
  },
})

const mill = millrace({
  store: process.env['MILLRACE_STORE']!,
  tasks: [row, sum, busy],
  queues: { rows: { retention: { results: 'none' } }, sums: {}, busy: { retention: { results: 'none' } } },
})

async function join(members: number): Promise<Added> {
  const heapMb: number[] = []
  const startedAt = machineMs()
  async function* rows() {
    for (let n = 0; n < members; n += 1) {
      yield { n, pauseMs: 0 }
      if ((n + 1) % (members / 10) === 0) heapMb.push(processSample().heapMb)
    }
  }
  await mill.enqueue(sum, { every: members / 10 }, { after: { rows: rows() } })
  return { seconds: (machineMs() - startedAt) / 1_000, heapMb, rssMb: processSample().rssMb }
}

async function fill(count: number, areJoins: boolean, pauseMs: number): Promise<void> {
  const rows = Array.from({ length: 1_000 }, (_, n) => ({ n, pauseMs }))
  for (let i = 0; i < count; i += 1)
    await (areJoins ? mill.enqueue(sum, { every: 10_000 }, { after: { rows } }) : mill.enqueueMany(row, rows))
}

async function done(order: Order): Promise<unknown> {
  switch (order.order) {
    case 'join':
      return join(order.members)
    case 'fill':
      return fill(order.joins, order.areJoins, order.pauseMs)
    case 'work':
      return mill.worker({ queues: [order.queue], concurrency: order.concurrency }).start()
    case 'last':
      return lastEndAt
    case 'seen': {
      const seen: Seen = { joins, latenciesMs }
      joins = []
      latenciesMs = []
      return seen
    }
    case 'end':
      await mill.close()
      process.disconnect()
  }
}

process.on('message', async (order: Order) => {
  const answer = await done(order)
  if (process.connected) process.send?.({ answer })
})
process.send?.('ready')
