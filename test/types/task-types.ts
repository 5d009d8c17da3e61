/** What a task's definition gives its types: with and without a schema, with and without input, with a handler from elsewhere. Checked by `npm run types`; never run. */

import {
  type AnyTask,
  defineOrderedTask,
  defineTask,
  type JobHandle,
  type JobRecord,
  millrace,
  type OutcomeValue,
  snooze,
  type TaskInput,
  type TaskResult,
} from 'millrace'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const mill = millrace({ store: 'memory:' })

// Input by an annotated handler
const resize = defineTask({ name: 'resize', run: async (input: { file: string; width?: number }) => input.file.length })
expectTypeOf<TaskInput<typeof resize>>().toEqualTypeOf<{ file: string; width?: number }>()
expectTypeOf<TaskResult<typeof resize>>().toEqualTypeOf<number>()
const noted = defineTask({
  name: 'noted',
  async run(input: { n: number }, ctx) {
    expectTypeOf(ctx.job.attempt).toEqualTypeOf<number>()
    return input.n
  },
  group: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ n: number }>()
    return input.n
  },
  shouldRun: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ n: number }>()
    return true
  },
})
expectTypeOf<TaskInput<typeof noted>>().toEqualTypeOf<{ n: number }>()
await mill.enqueue(resize, { file: 'a.png' })
await mill.enqueueMany(resize, [{ file: 'a.png', width: 3 }])
// @ts-expect-error 1: another input than the handler takes
await mill.enqueue(resize, { path: 'a.png' })
// @ts-expect-error 2: a field of the wrong type
await mill.enqueue(resize, { file: 'a.png', width: '3' })
// @ts-expect-error 3: a field too many
await mill.enqueue(resize, { file: 'a.png', height: 3 })
// @ts-expect-error 4: no input
await mill.enqueue(resize)
const sync = defineOrderedTask({
  name: 'sync',
  run: (payloadsById: ReadonlyMap<string, readonly { rev: number }[]>) => payloadsById.size,
})
expectTypeOf<TaskInput<typeof sync>>().toEqualTypeOf<{ rev: number }>()
// @ts-expect-error 5: another payload than the handler takes
await mill.enqueue(sync, { rev: '1' }, { id: 'a' })
const kinds = defineTask({ name: 'kinds', run: (input: { kind: 'daily' | 'weekly' }) => input.kind })
await mill.enqueue(kinds, { kind: 'daily' })
// @ts-expect-error 6: a kind there is not
await mill.enqueue(kinds, { kind: 'hourly' })

// No input
const tidy = defineTask({ name: 'tidy', run: async () => 3 })
expectTypeOf(await mill.enqueue(tidy)).toEqualTypeOf<JobHandle<number, unknown>>()
await mill.enqueue(tidy, undefined, { delay: '5m' })
const optional = defineTask({
  name: 'optional',
  input: z.object({ n: z.number() }).optional(),
  run: (input) => input?.n,
})
await mill.enqueue(optional)
await mill.enqueue(optional, { n: 1 }, { priority: 1 })
// @ts-expect-error 7: what is given is checked all the same
await mill.enqueue(optional, { n: '1' })

// A wrapper of one's own
export async function twice<T extends AnyTask>(task: T, input: TaskInput<T>): Promise<TaskResult<T>[]> {
  const jobs = [await mill.enqueue(task, input), await mill.enqueue(task, input, {})]
  return Promise.all(jobs.map((job) => job.result()))
}
expectTypeOf(twice(resize, { file: '' })).toEqualTypeOf<Promise<number[]>>()
// @ts-expect-error 8: the wrapper is as strict
await twice(resize, { file: 1 })

// A handler from elsewhere
const encode = defineTask({ name: 'encode', input: z.object({ file: z.string() }) }).returns<{ seconds: number }>()
expectTypeOf<TaskResult<typeof encode>>().toEqualTypeOf<{ seconds: number }>()
expectTypeOf<TaskInput<typeof encode>>().toEqualTypeOf<{ file: string }>()
expectTypeOf(await (await mill.enqueue(encode, { file: '' })).result()).toEqualTypeOf<{ seconds: number }>()
expectTypeOf(encode.handle(async ({ file }) => ({ seconds: file.length }))).toEqualTypeOf<typeof encode>()
encode.handle((): { seconds: number } | OutcomeValue => ({ seconds: 1 }))
// @ts-expect-error 9: another result than was said
encode.handle(async ({ file }) => ({ minutes: file.length }))
// @ts-expect-error 10: none
encode.handle(async () => {})
const unsaid = defineTask({ name: 'unsaid' }).handle(async () => 'done')
expectTypeOf<TaskResult<typeof unsaid>>().toEqualTypeOf<string>()

// Records
expectTypeOf(await mill.job(resize, 'x').record()).toEqualTypeOf<
  JobRecord<{ file: string; width?: number }, number> | undefined
>()
expectTypeOf(await mill.job('x').record()).toEqualTypeOf<JobRecord | undefined>()
const queue = mill.queue('default')
expectTypeOf((await queue.jobs.list({ task: encode })).jobs).toEqualTypeOf<
  JobRecord<{ file: string }, { seconds: number }>[]
>()
expectTypeOf((await queue.morgue.list({ task: resize })).jobs[0]!.input).toEqualTypeOf<
  { file: string; width?: number } | undefined
>()
expectTypeOf((await mill.queue('sync').jobs.list({ task: sync })).jobs[0]!.payloads![0]!.input).toEqualTypeOf<
  { rev: number } | undefined
>()
expectTypeOf((await queue.jobs.list({ state: 'dead' })).jobs).toEqualTypeOf<JobRecord[]>()
// @ts-expect-error 11: a task is given as its value
await queue.jobs.list({ task: 'encode' })
// @ts-expect-error 12: its result has no such field
;(await mill.job(encode, 'x').record())!.result!.minutes

// Batch tasks: inputs together, results one by one
const insert = defineTask({
  name: 'insert',
  queue: 'rows',
  batch: { size: 500, wait: '200ms' },
  input: z.object({ at: z.string().transform((text) => new Date(text)) }),
  async run(inputs, ctx) {
    expectTypeOf(inputs).toEqualTypeOf<{ at: Date }[]>()
    expectTypeOf(ctx.jobs[0]!.attempt).toEqualTypeOf<number>()
    ctx.fail(3, new Error('broken'))
    return inputs.map(({ at }): number | OutcomeValue => (at.getTime() > 0 ? at.getTime() : snooze('1m')))
  },
})
expectTypeOf<TaskInput<typeof insert>>().toEqualTypeOf<{ at: string }>()
expectTypeOf<TaskResult<typeof insert>>().toEqualTypeOf<number>()
expectTypeOf(await (await mill.enqueue(insert, { at: '' })).result()).toEqualTypeOf<number>()
// @ts-expect-error 13: an input is one, not many
await mill.enqueue(insert, [{ at: '' }])
const noResult = defineTask({
  name: 'no-result',
  batch: { size: 2 },
  run: async (inputs: readonly string[]) => void inputs,
})
expectTypeOf<TaskInput<typeof noResult>>().toEqualTypeOf<string>()
const annotated = defineTask({
  name: 'annotated',
  batch: { size: 2 },
  run: (inputs: readonly { n: number }[], ctx) => {
    expectTypeOf(ctx.job.queue).toEqualTypeOf<string>()
    return inputs.map(({ n }) => String(n))
  },
  group: (input) => input.n,
})
expectTypeOf<TaskInput<typeof annotated>>().toEqualTypeOf<{ n: number }>()
expectTypeOf<TaskResult<typeof annotated>>().toEqualTypeOf<string>()
const elsewhere = defineTask({ name: 'elsewhere', batch: { size: 2 } }).returns<string>()
elsewhere.handle((inputs) => inputs.map(String))
// @ts-expect-error 14: another result for each than was said
elsewhere.handle((inputs) => inputs.map(Number))
// @ts-expect-error 15: a batch has a size
defineTask({ name: 'sizeless', batch: { wait: '1s' } })
// @ts-expect-error 16: an isolated job has a process of its own
defineTask({ name: 'apart', batch: { size: 2 }, isolate: 'process' })
// @ts-expect-error 17: a single job has no jobs
defineTask({ name: 'single', run: (_, ctx) => ctx.jobs })
