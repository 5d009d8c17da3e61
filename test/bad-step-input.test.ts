/** Bad input to steps, sleeps and signals: each mistake has its message, and leaves nothing behind. */

import { defineOrderedTask, defineSignal, defineTask, type JobContext, type Mill, MillraceError } from 'millrace'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { nextEvent } from './next-event.js'
import { testMill } from './test-mill.js'

const approved = defineSignal({ name: 'approved', data: z.object({ yes: z.boolean() }) })
const stopped = defineSignal({ name: 'stopped' })
const note = defineSignal<unknown>({ name: 'note' })
const circle: { self?: unknown } = {}
circle.self = circle

/** What the second of two calls that were made at once says. */
const second = async (...calls: Promise<unknown>[]) =>
  Promise.allSettled(calls).then(([, other]) => {
    throw (other as PromiseRejectedResult).reason
  })

const inHandlers: readonly [string, (ctx: JobContext) => Promise<unknown>, string][] = [
  [
    'a name twice',
    async (ctx) => [await ctx.step('a', () => 1), await ctx.step('a', () => 2)],
    "'a' was given to ctx.step() twice",
  ],
  [
    'a sleep with the name of a step',
    async (ctx) => [await ctx.step('a', () => 1), await ctx.sleep('a', 5)],
    "'a' was given to ctx.sleep() twice",
  ],
  [
    'a signal twice',
    async (ctx) => Promise.all([ctx.waitFor(stopped), ctx.waitFor(stopped)]),
    "'stopped' was given to ctx.waitFor() twice",
  ],
  [
    'an empty name',
    async (ctx) => ctx.step('', () => 1),
    'must get a name, text of 1 to 200 characters without lone surrogates; got ""',
  ],
  ['a long name', async (ctx) => ctx.step('x'.repeat(201), () => 1), 'text of 1 to 200 characters'],
  ['a name with half of a character', async (ctx) => ctx.step('half \ud83c', () => 1), 'without lone surrogates; got'],
  ['no name', async (ctx) => ctx.step(undefined as never, () => 1), 'must get a name'],
  ['a name that is a number', async (ctx) => ctx.sleep(7 as never, 5), 'ctx.sleep(name) must get a name'],
  ['no function', async (ctx) => ctx.step('a', 7 as never), "ctx.step('a', run) must get a function; got 7"],
  ['a promise for a function', async (ctx) => ctx.step('a', Promise.resolve(1) as never), 'must get a function'],
  ['a time that is none', async (ctx) => ctx.sleep('a', 'soon' as never), "ctx.sleep('a', time)"],
  ['no time', async (ctx) => ctx.sleep('a', undefined as never), "ctx.sleep('a', time)"],
  ['a time in the past', async (ctx) => ctx.sleep('a', -1), "ctx.sleep('a', time)"],
  ['a time without end', async (ctx) => ctx.sleep('a', Number.POSITIVE_INFINITY), "ctx.sleep('a', time)"],
  [
    'a timeout that is none',
    async (ctx) => ctx.waitFor(stopped, { timeout: 'soon' as never }),
    'ctx.waitFor({ timeout })',
  ],
  ['an option that is none', async (ctx) => ctx.waitFor(stopped, { timeOut: 5 } as never), 'timeOut'],
  ['a timeout without a name', async (ctx) => ctx.waitFor(stopped, '5m' as never), 'ctx.waitFor'],
  ['a signal by its name', async (ctx) => ctx.waitFor('approved' as never), 'must get a signal of defineSignal()'],
  ['no signal', async (ctx) => ctx.waitFor(undefined as never), 'must get a signal of defineSignal(); got undefined'],
  [
    'a result that cannot be encoded',
    async (ctx) => ctx.step('a', () => (() => 1) as never),
    "step 'a': the value is a function",
  ],
  ['a result that contains itself', async (ctx) => ctx.step('a', () => circle), 'contains itself'],
  ['a result that is too large', async (ctx) => ctx.step('a', () => 'x'.repeat(2_000_000)), "the result of step 'a'"],
  [
    'results that are too large together',
    async (ctx) => {
      for (let n = 0; n < 5; n += 1) await ctx.step(`a${n}`, () => 'x'.repeat(1_000_000))
    },
    'would bring those of the job to more than 4 MiB. Keep large results elsewhere',
  ],
  [
    'more steps than a job may have',
    async (ctx) => {
      for (let n = 0; n <= 1_000; n += 1) await ctx.step(`a${n}`, () => undefined)
    },
    "step 'a1000' would be one more than the 1000 steps that a job may have",
  ],
  ['two sleeps at once', async (ctx) => second(ctx.sleep('a', 1_000), ctx.sleep('b', 1_000)), 'two of these at once'],
  ['two waits at once', async (ctx) => second(ctx.waitFor(stopped), ctx.waitFor(note)), 'two of these at once'],
  ['a sleep beside a wait', async (ctx) => second(ctx.waitFor(note), ctx.sleep('a', 1_000)), 'two of these at once'],
]

it.each(inHandlers)('a handler is refused %s', async (_, run, message) => {
  const seen: unknown[] = []
  const order = defineTask({
    name: 'order',
    retry: { max: 0 },
    run: async (_: unknown, ctx) => {
      await run(ctx).catch((error) => {
        seen.push(error)
        throw error
      })
    },
  })
  const mill = testMill({ tasks: [order], maxPayloadBytes: 1_048_576 }, 'memory')
  const ended = Promise.race([nextEvent(mill, 'job.buried'), nextEvent(mill, 'job.released')])
  await mill.worker().start()
  await mill.enqueue(order, undefined)
  await ended

  expect(String((seen[0] as Error).message)).toContain(message)
})

it('a step is refused under the name of a sleep of an earlier run, and the other way round', async () => {
  const said: string[] = []
  const order = defineTask({
    name: 'order',
    retry: { max: 1, backoff: () => 0 },
    run: async (_: unknown, ctx) => {
      if (ctx.job.attempt === 1) {
        await ctx.step('a', () => 1)
        throw new Error('the code is changed now')
      }
      await ctx.sleep('a', 5).catch((error: Error) => {
        said.push(error.message)
        throw error
      })
    },
  })
  const mill = testMill({ tasks: [order] }, 'memory')
  const buried = nextEvent(mill, 'job.buried')
  await mill.worker().start()
  await mill.enqueue(order, undefined)
  await buried

  expect(said).toEqual([
    "'a' was a step in an earlier run of this job, and is none now. Give what has changed another name, or let the step run again: millrace jobs forget-step.",
  ])
})

const sent: readonly [string, (mill: Mill, id: string) => Promise<unknown>, code: string, message: string][] = [
  [
    'data that the schema refuses',
    (mill, id) => mill.signal(id, approved, { yes: 'maybe' } as never),
    'job-invalid',
    "the data of signal 'approved' does not match its schema",
  ],
  [
    'no data',
    (mill, id) => mill.signal(id, approved, undefined as never),
    'job-invalid',
    "the data of signal 'approved'",
  ],
  [
    'what is no signal',
    (mill, id) => mill.signal(id, { name: 'approved' } as never, undefined as never),
    'argument-invalid',
    'must get a signal of defineSignal()',
  ],
  [
    'a signal by its name',
    (mill, id) => mill.signal(id, 'approved' as never, undefined as never),
    'argument-invalid',
    'got "approved"',
  ],
  [
    'no signal',
    (mill, id) => mill.signal(id, undefined as never, undefined as never),
    'argument-invalid',
    'got undefined',
  ],
  ['a job that is a number', (mill) => mill.signal(7 as never, stopped), 'argument-invalid', 'a job id must be'],
  ['no job', (mill) => mill.signal(undefined as never, stopped), 'argument-invalid', 'a job id must be'],
  ['an empty id', (mill) => mill.signal('', stopped), 'argument-invalid', 'a job id must be'],
  ['an id that is too long', (mill) => mill.signal('x'.repeat(257), stopped), 'argument-invalid', 'a job id must be'],
  ['data that cannot be encoded', (mill, id) => mill.signal(id, note, () => 1), 'codec-failed', 'function'],
  ['data that contains itself', (mill, id) => mill.signal(id, note, circle), 'codec-failed', 'contains itself'],
  [
    'data that is too large',
    (mill, id) => mill.signal(id, note, 'x'.repeat(2_000_000)),
    'payload-too-large',
    "the data of signal 'note'",
  ],
  [
    'a step whose name is no text, to be forgotten',
    (mill, id) => mill.queue('default').jobs.forgetStep(id, 7 as never),
    'argument-invalid',
    'the name of a step must be a text; got 7',
  ],
  [
    'a step to be forgotten, with an option that is none',
    (mill, id) => mill.queue('default').jobs.forgetStep(id, 'a', { signals: true } as never),
    'argument-invalid',
    'jobs.forgetStep({ signals })',
  ],
  [
    'a signal to be forgotten, by its name for a yes',
    (mill, id) => mill.queue('default').jobs.forgetStep(id, 'a', { signal: 'approved' as never }),
    'argument-invalid',
    'jobs.forgetStep({ signal })',
  ],
  [
    'an id that is empty, of a step to be forgotten',
    (mill) => mill.queue('default').jobs.forgetStep('', 'a'),
    'argument-invalid',
    'a job id must be',
  ],
]

it.each(sent)('a sender is refused %s, and nothing is kept', async (_, send, code, message) => {
  const order = defineTask({ name: 'order', run: async (_: unknown, ctx) => ctx.waitFor(approved) })
  const mill = testMill({ tasks: [order] }, 'memory')
  const job = await mill.enqueue(order, undefined)
  const refusal = await send(mill, job.id).then(
    () => undefined,
    (error: unknown) => error,
  )

  expect(refusal).toBeInstanceOf(MillraceError)
  expect(refusal).toMatchObject({ code, message: expect.stringContaining(message) })
  expect((await job.record())?.steps).toBeUndefined()
})

it.each([
  [{}, 'name: is missing'],
  [{ name: '' }, 'name: must be 1 to 200 characters'],
  [{ name: 'a\nb' }, 'name: must be 1 to 200 characters without control characters'],
  [{ name: 'half \ud83c' }, 'name: must be 1 to 200 characters without control characters'],
  [{ name: 'a', data: { type: 'object' } }, 'data: must be a Standard Schema'],
  [{ name: 'a', schema: approved.data }, 'schema: is not an option'],
  ['approved', 'must be an object'],
])('defineSignal() refuses %o', (options, message) => {
  expect(() => defineSignal(options as never)).toThrow(message)
})

it('jobs of ordered and batch tasks have no steps', async () => {
  const sync = defineOrderedTask({ name: 'sync', queue: 'ids', id: () => 'a', run: async () => {} })
  const mill = testMill({ tasks: [sync] }, 'memory')
  const job = await mill.enqueue(sync, undefined)

  await expect(mill.signal(job, stopped)).rejects.toMatchObject({
    code: 'argument-invalid',
    message: "job 'a' in queue 'ids' gets no signals: jobs of ordered queues have no steps.",
  })
  expect(() => defineTask({ name: 'mails', batch: { size: 2 }, signals: [stopped] } as never)).toThrow(
    'signals: cannot be together with batch',
  )
})
