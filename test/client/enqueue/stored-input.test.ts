// biome-ignore-all lint/suspicious/noExplicitAny: schemas of any input
import { defineOrderedTask, defineTask, type Schema } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { storeKinds, testMill } from '../../test-mill.js'

/** The inputs that a handler was given at each attempt. The first two attempts fail. */
function attempts<Input, Output>(input: Schema<Input, Output>) {
  const given: Output[] = []
  const task = defineTask({
    name: 'task',
    input,
    retry: { max: 2, backoff: () => 0 },
    async run(one: Output) {
      given.push(one)
      if (given.length % 3 !== 0) throw new Error('once more')
    },
  })
  return { task, given }
}

let count = 0
const counted = () => ++count

describe.each(storeKinds)('the output of a schema, on %s', (kind) => {
  const cases: readonly [name: string, schema: Schema<any, unknown>, input: unknown, stored: unknown][] = [
    ['a default', z.object({ a: z.number(), b: z.string().default('b') }), { a: 1 }, { a: 1, b: 'b' }],
    ['a coerced number', z.object({ n: z.coerce.number() }), { n: '5' }, { n: 5 }],
    ['a coerced date', z.coerce.date(), '2026-12-24T18:00:00Z', new Date('2026-12-24T18:00:00Z')],
    ['a trimmed text', z.string().trim(), ' a ', 'a'],
    ['an object without unknown keys', z.object({ a: z.number() }), { a: 1, b: 2 }, { a: 1 }],
    ['nothing new', z.object({ a: z.number() }), { a: 1 }, { a: 1 }],
    [
      'a default of an asynchronous schema',
      z.object({ a: z.number().default(7) }).refine(async () => true),
      {},
      { a: 7 },
    ],
  ] as never
  it.each(cases)('%s is stored, and every attempt gets it', async (_, schema, input, stored) => {
    const { task, given } = attempts(schema)
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, input)
    expect((await job.record())?.input).toEqual(stored)

    const ended = job.result({ timeout: '5s' })
    await m.worker().start()
    await ended
    expect(given).toEqual([stored, stored, stored])
  })

  it('a random default is the same for all attempts', async () => {
    const { task, given } = attempts(z.object({ key: z.number().default(counted) }))
    const m = testMill({ tasks: [task] }, kind)
    const ended = (await m.enqueue(task, {})).result({ timeout: '5s' })
    await m.worker().start()
    await ended

    expect(new Set(given.map(({ key }) => key)).size).toBe(1)
  })

  it('a value that the schema would refuse as input is not stored, so it is never transformed twice', async () => {
    const numbers = attempts(z.string().transform(Number))
    const shouted = attempts(z.string().transform((text) => `${text}!`))
    for (const { task, given, stored, made } of [
      { ...numbers, stored: '5', made: 5 },
      { ...shouted, stored: '5', made: '5!' },
    ]) {
      const m = testMill({ tasks: [task] }, kind)
      const job = await m.enqueue(task as typeof numbers.task, '5')
      expect((await job.record())?.input).toBe(stored)
      const ended = job.result({ timeout: '5s' })
      await m.worker().start()
      await ended
      expect(given).toEqual([made, made, made])
    }
  })

  it('a value that cannot be encoded is not stored', async () => {
    const { task, given } = attempts(z.string().transform((text) => new URL(text)))
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 'https://a.example/')
    expect((await job.record())?.input).toBe('https://a.example/')
    const ended = job.result({ timeout: '5s' })
    await m.worker().start()
    await ended

    expect(given.map((url) => url.host)).toEqual(['a.example', 'a.example', 'a.example'])
  })
})

describe('a schema', () => {
  it('that transforms differently each time is reported once', async () => {
    const task = defineTask({
      name: 'pay',
      input: z.object({ amount: z.string().transform(Number), key: z.number().default(counted) }),
    })
    const steady = defineTask({ name: 'steady', input: z.string().transform(Number) })
    const m = testMill({ tasks: [task, steady] })
    const told: unknown[] = []
    m.on('schema.varied', (event) => told.push(event))
    await m.enqueue(steady, '1')
    await m.enqueueMany(task, [{ amount: '1' }, { amount: '2' }])

    expect(told).toEqual([{ task: 'pay', queue: 'default' }])
  })

  it('of an ordered task yields the payload; id and score get the input', async () => {
    const given: unknown[] = []
    const task = defineOrderedTask({
      name: 'sync',
      input: z.object({ id: z.string().trim(), rev: z.coerce.number(), by: z.string().default('me') }),
      id(input) {
        given.push(input)
        return input.id
      },
      score: ({ rev }) => Number(rev),
    })
    const m = testMill({ tasks: [task] })
    const job = await m.enqueue(task, { id: ' a', rev: '7' })

    expect(job.id).toBe(' a')
    expect(given).toEqual([{ id: ' a', rev: '7' }])
    expect((await job.record())?.payloads).toMatchObject([{ input: { id: 'a', rev: 7, by: 'me' }, score: 7 }])
  })

  it('of a batch task transforms each input once', async () => {
    const seen: number[][] = []
    const task = defineTask({
      name: 'rows',
      batch: { size: 10 },
      input: z.object({ key: z.number().default(counted) }),
      retry: { max: 1, backoff: () => 0 },
      async run(inputs) {
        seen.push(inputs.map(({ key }) => key))
        if (seen.length === 1) throw new Error('once more')
      },
    })
    const m = testMill({ tasks: [task] })
    const jobs = await m.enqueueMany(task, [{}, {}, {}])
    const ended = m.results(jobs, { timeout: '5s' })
    await m.worker({ concurrency: 1 }).start()
    await ended

    expect(new Set(seen.flat()).size).toBe(3)
  })

  it('creates a new default for each tick of a schedule', async () => {
    const task = defineTask({ name: 'tick', input: z.object({ key: z.number().default(counted) }) })
    const m = testMill({ tasks: [task] })
    await m.schedules.set('hourly', { task, input: {}, every: '1h' })

    expect((await m.schedules.get('hourly'))?.input).toEqual({})
  })
})
