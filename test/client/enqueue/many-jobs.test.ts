/** Jobs of several tasks enqueued together, and the results of many jobs. */

import { defineOrderedTask, defineTask, type JobHandle, type Middleware, type Mill } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { EnqueueManyError } from '#src/core/errors.js'
import { storeKinds, testMill } from '../../test-mill.js'

const double = defineTask({ name: 'double', input: z.number(), retry: { max: 0 }, run: async (n) => n * 2 })
const shout = defineTask({ name: 'shout', queue: 'loud', run: async (text: string) => text.toUpperCase() })
const failing = defineTask({
  name: 'failing',
  retry: { max: 0 },
  async run(): Promise<string> {
    throw new Error('no luck')
  },
})
const orders = defineOrderedTask({ name: 'orders', id: (order: string) => order, run() {} })
const idle = defineTask({ name: 'idle', queue: 'unserved' })
const tasks = [double, shout, failing, orders, idle] as const

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: EnqueueManyError) => error,
  )
const depths = async (mill: Mill) =>
  (await mill.depths()).map(({ queue, ready, scheduled }) => [queue, ready + scheduled])

describe.each(storeKinds)('jobs of several tasks, on %s', (kind) => {
  it('are stored in their queues with their own options, and answered in order', async () => {
    const mill = testMill({ tasks }, kind)
    const jobs = await mill.enqueueMany([
      [double, 1],
      [shout, 'a', { priority: 3, id: 'loud' }],
      [orders, 'o-1'],
      [double, 2, { delay: '1h' }],
      [orders, 'o-1', { score: 5 }],
    ])

    expect(jobs.map(({ queue, outcome }) => [queue, outcome])).toEqual([
      ['default', 'added'],
      ['loud', 'added'],
      ['orders', 'added'],
      ['default', 'added'],
      ['orders', 'merged'],
    ])
    expect(await jobs[1].record()).toMatchObject({ id: 'loud', input: 'a', priority: 3 })
    expect(await jobs[3].record()).toMatchObject({ input: 2, state: 'scheduled' })
  })

  it('are all checked before any is sent: after one wrong input nothing is stored', async () => {
    const mill = testMill({ tasks }, kind)
    const error = await refusal(
      mill.enqueueMany([
        [shout, 'a'],
        [double, 'two' as unknown as number],
        [double, 3],
      ]),
    )

    expect(error).toBeInstanceOf(EnqueueManyError)
    expect(error!.message).toMatch(
      /^1 of 3 jobs are not valid; nothing was stored:\n {2}job 1: the input of a job of task/,
    )
    expect(error!.results).toMatchObject([{ error: {} }, { error: { code: 'job-invalid' } }, { error: {} }])
    expect((await depths(mill)).every(([, waiting]) => waiting === 0)).toBe(true)
  })

  it('can be accepted by one queue and refused by a full one, as each result says', async () => {
    const mill = testMill({ tasks, queues: { loud: { maxPending: 1 } } }, kind)
    const error = await refusal(
      mill.enqueueMany([
        [shout, 'a'],
        [double, 1],
        [shout, 'b'],
      ]),
    )

    expect(error!.results).toMatchObject([
      { error: { code: 'queue-full' } },
      { job: { queue: 'default' } },
      { error: { code: 'queue-full' } },
    ])
    expect(await depths(mill)).toContainEqual(['default', 1])
  })
})

describe('jobs of several tasks', () => {
  it('are one enqueue call for middleware', async () => {
    const seen: string[][] = []
    const middleware: Middleware = {
      async enqueue(items, next) {
        seen.push(items.map(({ task }) => task.name))
        await next()
      },
    }
    await testMill({ tasks, middleware: [middleware] }).enqueueMany([
      [double, 1],
      [shout, 'a'],
    ])

    expect(seen).toEqual([['double', 'shout']])
  })

  it('are not stored if a middleware takes some of them out', async () => {
    const middleware: Middleware = {
      async enqueue(items, next) {
        items.splice(1, 1)
        await next()
      },
    }
    const mill = testMill({ tasks, middleware: [middleware] })

    expect(await refusal(mill.enqueueMany(double, [1, 2, 3]))).toMatchObject({
      code: 'enqueue-many-refused',
      message: expect.stringMatching(/^a middleware took jobs out of an enqueue/),
    })
    expect(await depths(mill)).toContainEqual(['default', 0])
  })

  it.each([
    [
      'no task',
      [
        [double, 1],
        ['double', 1],
      ],
      /^job 1 of enqueueMany\(jobs\) expects a task made by defineTask/,
    ],
    ['no list', [[double, 1], double], /^job 1 of enqueueMany\(jobs\) must be a list of task, input and options/],
  ])('are refused if one is %s, and the error names its position', async (_, jobs, message) => {
    const given = jobs as unknown as [typeof double, number][]

    await expect(testMill({ tasks }).enqueueMany(given)).rejects.toThrow(message)
  })

  it('may be an empty list', async () => {
    expect(await testMill({ tasks }).enqueueMany([])).toEqual([])
  })

  it('can be of one task only as a list of inputs', async () => {
    const inputs = 7 as unknown as number[]

    await expect(testMill({ tasks }).enqueueMany(double, inputs)).rejects.toThrow(
      'enqueueMany(task, inputs) expects a list of inputs; got',
    )
  })
})

describe.each(storeKinds)('results of many jobs, on %s', (kind) => {
  it('settle one by one, in the order of the handles', async () => {
    const mill = testMill({ tasks }, kind)
    const jobs = await mill.enqueueMany([[double, 21], [failing], [shout, 'a'], [idle]])
    await jobs[3].cancel('not now')
    const results = mill.results([...jobs, mill.job(double, 'never')], { timeout: '10s' })
    await mill.worker({ queues: ['default', 'loud'] }).start()

    expect(await results).toMatchObject([
      { status: 'fulfilled', value: 42 },
      { status: 'rejected', reason: { code: 'job-dead', message: expect.stringContaining('no luck') } },
      { status: 'fulfilled', value: 'A' },
      { status: 'rejected', reason: { code: expect.stringMatching(/job-cancelled|result-not-kept/) } },
      { status: 'rejected', reason: { code: 'result-not-kept' } },
    ])
  })

  it('are those that exist when the timeout ends; the others are reported as timed out', async () => {
    const mill = testMill({ tasks }, kind)
    const jobs = await mill.enqueueMany([[double, 1], [idle], [idle]])
    const first = jobs[0].result()
    await mill.worker({ queues: ['default'] }).start()
    await first

    expect(await mill.results(jobs, { timeout: 50 })).toMatchObject([
      { status: 'fulfilled', value: 2 },
      { status: 'rejected', reason: { code: 'result-timeout' } },
      { status: 'rejected', reason: { code: 'result-timeout' } },
    ])
  })
})

it('results() refuses anything but a list of handles, and an invalid timeout', async () => {
  const mill = testMill({ tasks })
  const job = mill.job('x')

  for (const handles of ['x', [job, 'x'], [undefined]])
    await expect(mill.results(handles as unknown as JobHandle[])).rejects.toMatchObject({ code: 'argument-invalid' })
  await expect(mill.results([job, 'x' as unknown as JobHandle])).rejects.toThrow('results()[1] must be a handle')
  await expect(mill.results([job], { timeout: -1 })).rejects.toThrow('results({ timeout }) must be a duration')
})
