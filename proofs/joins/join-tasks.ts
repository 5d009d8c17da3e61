/**
 * The tasks of the joins drill. Members write their ends into the ledger before they end, joins what they were given.
 * Each process of the drill loads this file.
 */

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, many, millrace, type Settled, UnrecoverableError } from 'millrace'
import { failsOnce, isBroken, mendedIn, note, pauseOf, type Row, resultOf } from './join-plan.js'

const { MILLRACE_STORE: store = 'memory:', JOIN_FOLDER: folder = '.', JOIN_SEED = '0' } = process.env
const seed = Number(JOIN_SEED)
const retry = { max: 3, backoff: () => 0 }

export const row = defineTask({
  name: 'row',
  queue: 'rows',
  retry,
  run: async (input: Row, ctx) => {
    const value = resultOf(input)
    if (failsOnce(seed, input) && ctx.job.attempt === 1) throw new Error('once')
    if (isBroken(seed, input) && !existsSync(mendedIn(folder))) {
      note(folder, 'dies', value)
      throw new UnrecoverableError('broken')
    }
    // Time for operators and signals.
    await delay(pauseOf(seed, input))
    note(folder, 'ends', value)
    return value
  },
})

function told(one: string | Settled<string>): string {
  if (typeof one === 'string') return one
  return one.fate === 'completed' ? one.result : `(${one.fate})`
}

/** The input of a join: its name in the plan. */
interface Sum {
  readonly name: string
}

async function summed({ name }: Sum, rows: AsyncIterable<string | Settled<string>>): Promise<string> {
  const got: string[] = []
  for await (const one of rows) got.push(told(one))
  note(folder, 'joins', name, JSON.stringify(got))
  note(folder, 'ends', `sum of ${name}`)
  return `sum of ${name}`
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

export const top = defineTask({
  name: 'top',
  queue: 'tops',
  retry,
  joins: { left: sums['go-on'], right: sums['go-on'] },
  run: async ({ name }: Sum, ctx) => {
    note(folder, 'joins', name, JSON.stringify([ctx.joined.left, ctx.joined.right]))
    return name
  },
})

const queue = { lease: '3s', longPoll: '500ms', maxCrashes: 1_000, retention: { results: { age: '1h' } } } as const

export const mill = millrace({
  store,
  queues: { rows: { ...queue, retention: { results: 'none' } }, sums: queue, tops: queue },
  tasks: [row, sums['go-on'], sums.fail, sums.hold, top],
})
