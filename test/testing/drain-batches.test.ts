import { defineTask, snooze } from 'millrace'
import { testContext, testMill } from 'millrace/testing'
import { expect, it } from 'vitest'

const given: number[][] = []
const insert = defineTask({
  name: 'insert',
  batch: { size: 3 },
  retry: { max: 1, backoff: () => 60_000 },
  async run(inputs: number[], ctx) {
    given.push(inputs)
    const odd = inputs.indexOf(7)
    if (odd !== -1) ctx.fail(odd, new Error('seven'))
    return inputs.map((input) => (input === 9 ? snooze('5m') : 2 * input))
  },
})

it('drain() gives a batch task at most its batch size, and reports the end of each job', async () => {
  const mill = testMill({ tasks: [insert] })
  await mill.enqueueMany(insert, [1, 7, 9, 4])
  const ran = await mill.drain()

  expect(given).toEqual([[1, 7, 9], [4]])
  expect(ran.map(({ state, result, error }) => [state, result, error])).toEqual([
    ['completed', 2, undefined],
    ['scheduled', undefined, new Error('seven')],
    ['scheduled', undefined, undefined],
    ['completed', 8, undefined],
  ])
})

it('testContext() of a batch task accepts its inputs, and lists the jobs that the handler has failed', async () => {
  const ctx = testContext(insert, { inputs: [1, 7] })
  await insert.run!([1, 7], ctx)

  expect(ctx.failed).toEqual(new Map([[1, new Error('seven')]]))
  expect(ctx.jobs.map(({ id, attempt }) => [id, attempt])).toEqual([
    ['job-1', 1],
    ['job-2', 1],
  ])
  expect(() => testContext(insert, { inputs: [] })).toThrow(/needs the inputs/)
})

it('testContext() keeps the fields that a handler has set, and refuses invalid ones', async () => {
  const encode = defineTask({
    name: 'encode',
    run: async (_: string, ctx) => {
      await ctx.fields.set({ node: 'eu-3', codec: 'av1' })
      await ctx.fields.set({ codec: null })
    },
  })
  const ctx = testContext(encode)
  await encode.run!('a', ctx)

  expect(ctx.fieldsWritten).toEqual({ node: 'eu-3' })
  await expect(ctx.fields.set({ 'no name': 1 })).rejects.toMatchObject({ code: 'argument-invalid' })
})
