/** The ends of members as workers, listeners and pops make them: what the join that waits for them is told. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bury, cancel, defineTask, many, type Settled, UnrecoverableError } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { storeKinds, testMill, testMillOn } from '../test-mill.js'

const ends = {
  returns: () => 'result',
  throws: () => {
    throw new Error('broken')
  },
  'throws what no retry can mend': () => {
    throw new UnrecoverableError('broken for good')
  },
  'returns bury()': () => bury('not wanted'),
  'returns cancel()': () => cancel('not needed'),
} as const

const part = defineTask({
  name: 'part',
  queue: 'parts',
  retry: { max: 0 },
  run: async (how: keyof typeof ends): Promise<unknown> => ends[how](),
})
const foreign = defineTask({ name: 'foreign', queue: 'elsewhere', retry: { max: 0 } }).returns<unknown>()
const item = defineTask({ name: 'item', queue: 'items' }).returns<unknown>()

const told = (one: Settled<unknown>) => (one.fate === 'completed' ? `completed ${String(one.result)}` : one.fate)

const whole = defineTask({
  name: 'whole',
  queue: 'wholes',
  joins: {
    parts: many(part, { onDead: 'go-on' }),
    foreign: many(foreign, { onDead: 'go-on' }),
    items: many(item, { onDead: 'go-on' }),
  },
  async run(_: object, ctx) {
    const all: string[] = []
    for (const set of [ctx.joined.parts, ctx.joined.foreign, ctx.joined.items])
      for await (const one of set as AsyncIterable<Settled<unknown>>) all.push(told(one))
    return all
  },
})

const strict = defineTask({ name: 'strict', queue: 'wholes', joins: { parts: many(part) }, run: async () => {} })

const tasks = [part, foreign, item, whole, strict]
const queues = { elsewhere: {}, items: {} }
const none = { parts: [], foreign: [], items: [] }

/** On a file of its own. */
function freshSqlite(): SqliteStore {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ends-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return new SqliteStore({ file: join(folder, 'jobs.db') })
}

describe.each(storeKinds)('a join on %s hears of a member', (kind) => {
  it('that returns, fails for the last time, cannot be mended, or ends itself by its outcome', async () => {
    const mill = testMill({ tasks, queues }, kind)
    await mill.worker({ queues: ['parts', 'wholes'] }).start()
    const parts = Object.keys(ends) as (keyof typeof ends)[]
    const job = await mill.enqueue(whole, {}, { after: { ...none, parts } })

    expect(await job.result({ timeout: '10s' })).toEqual(['completed result', 'dead', 'dead', 'dead', 'cancelled'])
  })

  it('whose stored input cannot be read', async () => {
    const store = kind === 'memory' ? new MemoryStore() : freshSqlite()
    const { enqueue } = store.joins
    // As another program might have stored it.
    store.joins.enqueue = (calls) =>
      enqueue.call(
        store.joins,
        calls.map((call) => ({
          ...call,
          jobs: call.jobs.map((job) => (/\.parts\.1$/.test(job.id) ? { ...job, payload: '{"cut' } : job)),
        })),
      )
    const mill = testMillOn(store, { tasks, queues })
    await mill.worker({ queues: ['parts', 'wholes'] }).start()
    const after = { parts: ['returns', 'returns', 'returns'] as const }
    const going = await mill.enqueue(whole, {}, { after: { ...none, ...after } })
    const failing = await mill.enqueue(strict, {}, { after })

    expect(await going.result({ timeout: '10s' })).toEqual(['completed result', 'dead', 'completed result'])
    await expect(failing.result({ timeout: '10s' })).rejects.toThrow(/join-member-dead.*parts\.1' .* is dead: .*JSON/s)
  })

  it('that a listener completes or fails', async () => {
    const mill = testMill({ tasks, queues }, kind)
    await mill.worker({ queues: ['wholes'] }).start()
    const job = await mill.enqueue(whole, {}, { after: { ...none, foreign: [undefined, undefined] } })
    const listener = mill.listener('elsewhere')
    await (await listener.next())!.complete('elsewhere')
    expect(await job.status()).toBe('waiting')
    await (await listener.next())!.fail(new Error('broken'))

    expect((await job.result({ timeout: '10s' })).toSorted()).toEqual(['completed elsewhere', 'dead'])
  })

  it('that a pop of a throttled queue takes away', async () => {
    const mill = testMill({ tasks, queues }, kind)
    await mill.worker({ queues: ['wholes'] }).start()
    const job = await mill.enqueue(whole, {}, { after: { ...none, items: [undefined] } })
    expect(await job.status()).toBe('waiting')
    await mill.throttledQueue('items', { limit: 10, window: '1s' }).pop()

    expect(await job.result({ timeout: '10s' })).toEqual(['completed undefined'])
  })
})
