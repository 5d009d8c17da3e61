/** What the types give: inputs, outputs and results flow from a task's definition to where it is used. Checked by `npm run types`; never run. */

import { type } from 'arktype'
import {
  defineTask,
  type JobHandle,
  millrace,
  type OutcomeValue,
  snooze,
  type TaskInput,
  type TaskResult,
} from 'millrace'
import * as v from 'valibot'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

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
expectTypeOf(await mill.enqueue(zodTask, { at: '2026-01-01' })).toEqualTypeOf<JobHandle<{ messageId: string }>>()
expectTypeOf(await mill.job(zodTask, 'x').result()).toEqualTypeOf<{ messageId: string }>()
expectTypeOf(await mill.enqueueMany(zodTask, [{ at: '' }])).toEqualTypeOf<JobHandle<{ messageId: string }>[]>()

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

const attached = defineTask({ name: 'attached', input: v.object({ n: v.number() }) }).handle(async ({ n }) => String(n))
expectTypeOf<TaskResult<typeof attached>>().toEqualTypeOf<string>()

expectTypeOf(zodTask.name).toEqualTypeOf<'zod'>()
