/** Many jobs of several tasks at once, and their results, each of its own type. Checked by `npm run types`; never run. */

import { defineOrderedTask, defineTask, type JobHandle, millrace } from 'millrace'
import { expectTypeOf } from 'vitest'

const resize = defineTask({ name: 'resize', run: async (input: { file: string }) => input.file.length })
const tidy = defineTask({ name: 'tidy', run: () => true })
const sync = defineOrderedTask({
  name: 'sync',
  run: (payloadsById: ReadonlyMap<string, readonly { rev: number }[]>) => payloadsById.size,
})
const mill = millrace({ store: 'memory:', queues: { low: {} }, tasks: [resize, tidy, sync] })

const jobs = await mill.enqueueMany([
  [resize, { file: 'a.png' }, { priority: 2, queue: 'low' }],
  [tidy],
  [sync, { rev: 1 }, { id: 7, score: 1 }],
])
expectTypeOf(jobs).toEqualTypeOf<
  [JobHandle<number, { file: string }>, JobHandle<boolean, unknown>, JobHandle<undefined, { rev: number }>]
>()
const files = ['a.png', 'b.png'].map((file) => [resize, { file }] as const)
expectTypeOf(await mill.enqueueMany(files)).toEqualTypeOf<JobHandle<number, { file: string }>[]>()
// @ts-expect-error 1: an input of the wrong type
await mill.enqueueMany([[resize, { file: 1 }], [tidy]])
// @ts-expect-error 2: no input
await mill.enqueueMany([[tidy], [resize]])
// @ts-expect-error 3: the input of another
await mill.enqueueMany([[resize, { rev: 1 }]])
// @ts-expect-error 4: an option there is not
await mill.enqueueMany([[resize, { file: '' }, { prioriti: 2 }]])
// @ts-expect-error 5: an option that ordered jobs have not
await mill.enqueueMany([[sync, { rev: 1 }, { priority: 2 }]])
// @ts-expect-error 6: a queue there is not
await mill.enqueueMany([[resize, { file: '' }, { queue: 'hihg' }]])
// @ts-expect-error 7: no task
await mill.enqueueMany([['resize', { file: '' }]])

const settled = await mill.results(jobs, { timeout: '1m' })
expectTypeOf(settled).toEqualTypeOf<
  [PromiseSettledResult<number>, PromiseSettledResult<boolean>, PromiseSettledResult<undefined>]
>()
const [first] = settled
if (first.status === 'fulfilled') expectTypeOf(first.value).toEqualTypeOf<number>()
expectTypeOf(await mill.results(await mill.enqueueMany(files))).toEqualTypeOf<PromiseSettledResult<number>[]>()
expectTypeOf(await mill.results([jobs[1], mill.job('x')])).toEqualTypeOf<
  [PromiseSettledResult<boolean>, PromiseSettledResult<unknown>]
>()
// @ts-expect-error 8: ids are no handles
await mill.results(['x'])
// @ts-expect-error 9: a timeout is a duration
await mill.results(jobs, { timeout: 'soon' })
