/** What the types give: inputs, outputs and results flow from a task's definition to where it is used. Checked by `npm run types`; never run. */

import { type } from 'arktype'
import {
  defineOrderedTask,
  defineTask,
  type EnqueueOptions,
  type EnqueueOptionsOf,
  type ExhaustedPayload,
  hold,
  type JobHandle,
  millrace,
  type OrderedContext,
  type OrderedEnqueueOptions,
  type OutcomeValue,
  type PoppedJob,
  type ShardCandidate,
  snooze,
  type TaskInput,
  type TaskResult,
  type ThrottledQueue,
  type ThrottleStatus,
} from 'millrace'
import * as v from 'valibot'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type { PopWait } from '#src/workers/pops.js'

const mill = millrace({ store: 'memory:' })

const zodTask = defineTask({
  name: 'zod',
  input: z.object({ at: z.string().transform((text) => new Date(text)), tags: z.array(z.string()).default([]) }),
  async run(input, ctx) {
    expectTypeOf(input).toEqualTypeOf<{ at: Date; tags: string[] }>()
    expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>()
    expectTypeOf(ctx.job.attempt).toEqualTypeOf<number>()
    return { messageId: 'abc' }
  },
})
expectTypeOf<TaskInput<typeof zodTask>>().toEqualTypeOf<{ at: string; tags?: string[] | undefined }>()
expectTypeOf<TaskResult<typeof zodTask>>().toEqualTypeOf<{ messageId: string }>()
expectTypeOf(await mill.enqueue(zodTask, { at: '2026-01-01' })).toEqualTypeOf<
  JobHandle<{ messageId: string }, TaskInput<typeof zodTask>>
>()
expectTypeOf(await mill.job(zodTask, 'x').result()).toEqualTypeOf<{ messageId: string }>()
expectTypeOf(await mill.enqueueMany(zodTask, [{ at: '' }])).toEqualTypeOf<
  JobHandle<{ messageId: string }, TaskInput<typeof zodTask>>[]
>()

for await (const event of mill.job(zodTask, 'x').events({ signal: AbortSignal.abort() })) {
  expectTypeOf(event.type).toEqualTypeOf<'job' | 'log' | 'end'>()
  if (event.type === 'log') expectTypeOf(event.text).toEqualTypeOf<string>()
  if (event.type !== 'end') continue
  expectTypeOf(event.state).toEqualTypeOf<'completed' | 'dead' | 'cancelled' | undefined>()
  expectTypeOf(event.job?.result).toEqualTypeOf<{ messageId: string } | undefined>()
  expectTypeOf(event.job?.input).toEqualTypeOf<TaskInput<typeof zodTask> | undefined>()
}
// @ts-expect-error 0: a feed of one job has no buffer
mill.job(zodTask, 'x').events({ buffer: 3 })

const valibotTask = defineTask({ name: 'valibot', input: v.object({ n: v.number() }), run: ({ n }) => n * 2 })
expectTypeOf<TaskInput<typeof valibotTask>>().toEqualTypeOf<{ n: number }>()
expectTypeOf<TaskResult<typeof valibotTask>>().toEqualTypeOf<number>()

const arktypeTask = defineTask({ name: 'arktype', input: type({ url: 'string' }), run: ({ url }) => url.length })
expectTypeOf<TaskInput<typeof arktypeTask>>().toEqualTypeOf<{ url: string }>()
expectTypeOf<TaskResult<typeof arktypeTask>>().toEqualTypeOf<number>()

const outcomes = defineTask({
  name: 'outcomes',
  run: (): string | OutcomeValue => (Math.random() > 0.5 ? snooze('1m') : 'done'),
})
expectTypeOf<TaskResult<typeof outcomes>>().toEqualTypeOf<string>()

const polite = defineTask({
  name: 'polite',
  input: z.object({ url: z.string().transform((text) => new URL(text)) }),
  group: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ url: string }>()
    return input.url
  },
  run: (_, ctx): number | OutcomeValue => {
    expectTypeOf(ctx.job.group).toEqualTypeOf<string | undefined>()
    return Math.random() > 0.5 ? hold('30s') : 1
  },
})
expectTypeOf<TaskResult<typeof polite>>().toEqualTypeOf<number>()
await mill.enqueue(polite, { url: '' }, { group: 7 })

const pace = mill.queue('crawl').throttle
expectTypeOf(await pace.get('example.org')).toEqualTypeOf<ThrottleStatus | undefined>()
await pace.set({ limit: 5, window: '1s', moderate: true, elastic: { buffer: 2 } })
await pace.set([
  { limit: 5, window: '1s' },
  { limit: 100, window: 3_600_000 },
])

type Page = { url: string; depth?: number }
const pages = mill.throttledQueue<Page>('pages', {
  limit: 10,
  window: '60s',
  moderate: true,
  elastic: { buffer: 2 },
})
expectTypeOf(pages).toEqualTypeOf<ThrottledQueue<Page>>()
expectTypeOf(pages.push).toEqualTypeOf<(item: Page, priority?: number) => Promise<void>>()
await pages.push({ url: '' }, -5)
expectTypeOf(pages.pop()).toEqualTypeOf<Promise<Page | null>>()
expectTypeOf(pages.tryPop()).toEqualTypeOf<Promise<PoppedJob<Page>>>()
const popped = await pages.tryPop()
if (popped.wait === undefined) {
  expectTypeOf(popped.item).toEqualTypeOf<Page>()
  expectTypeOf(popped.forMs).toEqualTypeOf<undefined>()
} else {
  expectTypeOf(popped.item).toEqualTypeOf<undefined>()
  expectTypeOf(popped.wait).toEqualTypeOf<PopWait>()
  expectTypeOf(popped.wait).toEqualTypeOf<'empty' | 'throttled' | 'scheduled' | 'full' | 'paused'>()
  expectTypeOf(popped.forMs).toEqualTypeOf<number | undefined>()
}
expectTypeOf(pages.length()).toEqualTypeOf<Promise<number>>()
expectTypeOf(pages.clear()).toEqualTypeOf<Promise<number>>()
expectTypeOf(mill.throttledQueue('any').pop()).toEqualTypeOf<Promise<unknown>>()
expectTypeOf(mill.throttledQueue<null>('nulls').tryPop()).toEqualTypeOf<Promise<PoppedJob<null>>>()

const attached = defineTask({ name: 'attached', input: v.object({ n: v.number() }) }).handle(async ({ n }) => String(n))
expectTypeOf<TaskResult<typeof attached>>().toEqualTypeOf<string>()

expectTypeOf(zodTask.name).toEqualTypeOf<'zod'>()

const ordered = defineOrderedTask({
  name: 'ordered',
  input: z.object({ order: z.number(), at: z.string().transform((text) => new Date(text)) }),
  id: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ order: number; at: string }>()
    return input.order
  },
  score: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ order: number; at: string }>()
    return Date.parse(input.at)
  },
  group: (id) => {
    expectTypeOf(id).toEqualTypeOf<string>()
    return Number(id)
  },
  run(payloadsById, ctx) {
    expectTypeOf(payloadsById).toEqualTypeOf<ReadonlyMap<string, readonly { order: number; at: Date }[]>>()
    expectTypeOf(ctx).toEqualTypeOf<OrderedContext>()
    ctx.fail(ctx.more(1) ? 1 : '1', new Error())
  },
  onExhausted(payloads) {
    expectTypeOf(payloads).toEqualTypeOf<readonly ExhaustedPayload<{ order: number; at: Date }>[]>()
  },
})
expectTypeOf<TaskInput<typeof ordered>>().toEqualTypeOf<{ order: number; at: string }>()
expectTypeOf<TaskResult<typeof ordered>>().toEqualTypeOf<undefined>()
expectTypeOf<EnqueueOptionsOf<typeof ordered>>().toEqualTypeOf<OrderedEnqueueOptions>()
expectTypeOf<EnqueueOptionsOf<typeof zodTask>>().toEqualTypeOf<EnqueueOptions<string>>()
// Options that name no queue fit every mill, and so does what is not given.
expectTypeOf<EnqueueOptions>().toExtend<EnqueueOptions<'default' | 'high'>>()
expectTypeOf({ priority: undefined, delay: undefined }).toExtend<EnqueueOptions<'high'>>()
// The annotation of `id` types the payloads of an ordered task without a schema.
defineOrderedTask({
  name: 'annotated',
  id: (order: { id: string; rev: number }) => order.id,
  score: (order) => order.rev,
  run: (payloadsById) => {
    for (const [, orders] of payloadsById) expectTypeOf(orders).toEqualTypeOf<readonly { id: string; rev: number }[]>()
  },
})
expectTypeOf(await mill.enqueue(ordered, { order: 1, at: '' }, { id: 1, score: 2 })).toEqualTypeOf<
  JobHandle<undefined, { order: number; at: string }>
>()
await mill.enqueueMany(ordered, [{ order: 1, at: '' }], (input, i) => {
  expectTypeOf(input).toEqualTypeOf<{ order: number; at: string }>()
  return { id: input.order, score: i, runAt: input.at }
})
expectTypeOf(await mill.job(ordered, 42).result()).toEqualTypeOf<undefined>()
expectTypeOf(ordered.name).toEqualTypeOf<'ordered'>()

const unschooled = defineOrderedTask({ name: 'unschooled' })
expectTypeOf<TaskInput<typeof unschooled>>().toEqualTypeOf<unknown>()
const later = defineOrderedTask({ name: 'later', input: v.string() }).handle((payloadsById) => {
  expectTypeOf(payloadsById).toEqualTypeOf<ReadonlyMap<string, readonly string[]>>()
})
expectTypeOf<TaskInput<typeof later>>().toEqualTypeOf<string>()

millrace({
  store: 'memory:',
  tasks: [zodTask, ordered],
  queues: {
    orders: {
      ordered: true,
      shardOrder: (shards, random) => {
        expectTypeOf(shards).toEqualTypeOf<readonly ShardCandidate[]>()
        expectTypeOf(random()).toEqualTypeOf<number>()
        return shards.map(({ shard }) => shard)
      },
    },
  },
})

const chained = defineTask({
  name: 'chained',
  async run(_, ctx) {
    expectTypeOf(await ctx.enqueue(zodTask, { at: '' })).toEqualTypeOf<
      JobHandle<{ messageId: string }, TaskInput<typeof zodTask>>
    >()
    expectTypeOf(await ctx.enqueueMany(valibotTask, [{ n: 1 }], ({ n }) => ({ key: n }))).toEqualTypeOf<
      JobHandle<number, { n: number }>[]
    >()
    expectTypeOf(await ctx.enqueueMany([[valibotTask, { n: 1 }, { key: 1 }], [self]])).toEqualTypeOf<
      [JobHandle<number, { n: number }>, JobHandle<{ next: string }>]
    >()
    await ctx.enqueue(self, undefined, { key: 'self', delay: '1m' })
  },
})
expectTypeOf<TaskResult<typeof chained>>().toEqualTypeOf<void>()
/** Tasks that enqueue each other, and themselves: what they return must not come from what they enqueue, or be told. */
const self = defineTask({
  name: 'self',
  run: async (_, ctx): Promise<{ next: string }> => ({ next: (await ctx.enqueue(back, 1)).id }),
})
const back = defineTask({
  name: 'back',
  run: async (_, ctx) => {
    await ctx.enqueue(self, 1)
    await ctx.enqueue(back, 1)
  },
})

const idle = defineTask({ name: 'idle', run: () => {} })
const scheduling = millrace({
  store: 'memory:',
  tasks: [zodTask, idle],
  schedules: {
    nightly: { cron: '0 3 * * *', timeZone: 'Europe/Zurich', task: zodTask, input: { at: '2026' }, onMissed: 'all' },
    sync: { every: '15m', task: idle, overlap: 'skip', jitter: '30s', from: new Date(), until: '2030-01-01T00:00Z' },
  },
})
await scheduling.schedules.set('tenant-42', { every: '1h', task: zodTask, input: { at: '2026', tags: ['a'] } })
expectTypeOf((await scheduling.schedules.runNow('nightly')).id).toEqualTypeOf<string>()
