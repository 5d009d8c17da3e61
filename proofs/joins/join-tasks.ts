/**
 * The tasks of the joins drill. Members write their ends into the ledger before they end, joins what they were given.
 * Each process of the drill loads this file.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineOrderedTask, defineTask, many, millrace, type Settled, UnrecoverableError } from 'millrace'
import { failsOnce, isBroken, mendedIn, note, pauseOf, planOf, type Row, resultOf, rowsOf, sumOf } from './join-plan.js'

const { JOIN_FOLDER: folder = '.', JOIN_SEED = '0' } = process.env
export const seed = Number(JOIN_SEED)
const retry = { max: 3, backoff: () => 0 }

async function ended(input: Row, attempt: number): Promise<string> {
  const value = resultOf(input)
  if (failsOnce(seed, input) && attempt === 1) throw new Error('once')
  if (isBroken(seed, input) && !existsSync(mendedIn(folder))) {
    note(folder, 'dies', value)
    throw new UnrecoverableError('broken')
  }
  // Time for operators and signals.
  await delay(pauseOf(seed, input))
  note(folder, 'ends', value)
  return value
}

export const row = defineTask({
  name: 'row',
  queue: 'rows',
  retry,
  run: async (input: Row, ctx) => ended(input, ctx.job.attempt),
})

const looseRow = defineTask({
  name: 'loose-row',
  queue: 'loose',
  retry,
  run: async (input: Row, ctx) => ended(input, ctx.job.attempt),
})

function told(one: string | Settled<string>): string {
  if (typeof one === 'string') return one
  return one.fate === 'completed' ? one.result : `(${one.fate})`
}

/** The input of a join: its name in the plan. */
interface Sum {
  readonly name: string
}

async function summed(
  { name }: Sum,
  rows: AsyncIterable<string | Settled<string>>,
  parts: readonly string[] = [],
): Promise<string> {
  const got: string[] = []
  for await (const one of rows) got.push(told(one))
  got.push(...parts)
  note(folder, 'joins', name, JSON.stringify(got))
  note(folder, 'ends', sumOf(name))
  return sumOf(name)
}

export const sums = {
  'go-on': defineTask({
    name: 'sum-go-on',
    queue: 'sums',
    retry,
    joins: { rows: many(row, { onDead: 'go-on' }) },
    run: async (input: Sum, ctx) => summed(input, ctx.joined.rows),
  }),
  fail: defineTask({
    name: 'sum-fail',
    queue: 'sums',
    retry,
    joins: { rows: many(row, { cancelRest: true }) },
    run: async (input: Sum, ctx) => summed(input, ctx.joined.rows),
  }),
  hold: defineTask({
    name: 'sum-hold',
    queue: 'sums',
    retry,
    joins: { rows: many(row, { onDead: 'hold' }) },
    run: async (input: Sum, ctx) => summed(input, ctx.joined.rows),
  }),
} as const

export const looseSum = defineTask({
  name: 'sum-loose',
  queue: 'sums',
  retry,
  joins: { rows: many(looseRow, { onDead: 'go-on' }) },
  run: async (input: Sum, ctx) => summed(input, ctx.joined.rows),
})

export const top = defineTask({
  name: 'top',
  queue: 'tops',
  retry,
  joins: { left: sums['go-on'], right: sums['go-on'] },
  run: async ({ name }: Sum, ctx) => {
    note(folder, 'joins', name, JSON.stringify([ctx.joined.left, ctx.joined.right]))
    note(folder, 'ends', sumOf(name))
    return sumOf(name)
  },
})

export const crown = defineTask({
  name: 'crown',
  queue: 'tops',
  retry,
  joins: { rows: many(row, { onDead: 'go-on' }), a: top, b: top },
  run: async (input: Sum, ctx) => summed(input, ctx.joined.rows, [ctx.joined.a, ctx.joined.b]),
})

/** Its jobs enqueue joins, while its queue is given other shards again and again. */
export const order = defineOrderedTask({
  name: 'order',
  queue: 'orders',
  id: ({ number }: { number: number }) => String(number),
  batchSize: 1,
  retry: { max: 1_000, backoff: () => 100 },
  async run(byId, ctx) {
    for (const [, [input]] of byId) {
      const { name, rule, size, within } = planOf(seed, input!.number)
      await ctx.enqueue(sums[rule], { name }, { id: name, after: { rows: rowsOf(name, size) }, within })
    }
  },
})

const queue = { lease: '3s', longPoll: '500ms', maxCrashes: 1_000, retention: { results: { age: '1h' } } } as const
const forgetful = { ...queue, retention: { results: 'none' } } as const

/** `isUnkind`: each report comes twice, and late where reports travel. */
export function connect(store: string, isUnkind: boolean) {
  const unkind = { module: join(import.meta.dirname, 'unkind-store.mjs'), export: 'open' }
  return millrace({
    store: isUnkind ? unkind : store,
    queues: {
      rows: { ...forgetful, shards: 3 },
      loose: forgetful,
      sums: { ...queue, shards: 2 },
      tops: queue,
      orders: { lease: '3s', longPoll: '500ms', maxCrashes: 1_000, shards: 3 },
    },
    tasks: [row, looseRow, sums['go-on'], sums.fail, sums.hold, looseSum, top, crown, order],
  })
}

/** The mill of a process of the drill. */
export const ownMill = () => connect(process.env.MILLRACE_STORE ?? 'memory:', process.env.JOIN_STORE !== undefined)
