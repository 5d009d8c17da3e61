/** The types of steps and signals, and wrong uses that must fail. Checked by `npm run types`; never run. */

import {
  type AnySignal,
  defineOrderedTask,
  defineSignal,
  defineTask,
  type JobHandle,
  type Mill,
  type SignalData,
} from 'millrace'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const approved = defineSignal({
  name: 'approved',
  data: z.object({ yes: z.boolean(), by: z.string().default('nobody') }),
})
const stopped = defineSignal({ name: 'stopped' })
const note = defineSignal<string>({ name: 'note' })

expectTypeOf<SignalData<typeof approved>>().toEqualTypeOf<{ yes: boolean; by: string }>()
expectTypeOf<SignalData<typeof stopped>>().toEqualTypeOf<undefined>()
expectTypeOf(approved).toExtend<AnySignal>()

export const order = defineTask({
  name: 'order',
  async run(input: { id: string }, ctx) {
    const paid = await ctx.step('charge', ({ key, signal }) => {
      expectTypeOf(key).toEqualTypeOf<string>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return { receipt: input.id }
    })
    expectTypeOf(paid).toEqualTypeOf<{ receipt: string }>()
    expectTypeOf(await ctx.step('later', async () => 7)).toEqualTypeOf<number>()
    expectTypeOf(await ctx.sleep('nap', '3d')).toEqualTypeOf<void>()
    expectTypeOf(await ctx.waitFor(approved)).toEqualTypeOf<{ yes: boolean; by: string }>()
    const answer = await ctx.waitFor(approved, { timeout: '7d' })
    expectTypeOf(answer).toEqualTypeOf<{ yes: boolean; by: string } | undefined>()
    expectTypeOf(await ctx.waitFor(note)).toEqualTypeOf<string>()
    // @ts-expect-error 1: it may not have come in time
    answer.yes
    // @ts-expect-error 2: a step needs a function
    await ctx.step('charge', 7)
    // @ts-expect-error 3: a sleep needs a name
    await ctx.sleep('3d')
    // @ts-expect-error 4: no such duration
    await ctx.sleep('nap', 'soon')
    // @ts-expect-error 5: a signal, not its name
    await ctx.waitFor('approved')
    // @ts-expect-error 6: another field than the result has
    paid.amount
    return answer?.by
  },
})

defineOrderedTask({
  name: 'sync',
  id: (one: { id: string }) => one.id,
  async run(_, ctx) {
    // @ts-expect-error 7: an ordered task has no steps
    await ctx.step('a', () => 1)
  },
})

defineTask({
  name: 'batch',
  batch: { size: 5 },
  async run(_: number[], ctx) {
    // @ts-expect-error 8: nor has a batch
    await ctx.sleep('a', '1s')
  },
})

export async function signals(mill: Mill, job: JobHandle): Promise<void> {
  expectTypeOf(await mill.signal(job, approved, { yes: true })).toEqualTypeOf<
    'delivered' | 'kept' | 'duplicate' | 'full' | 'gone'
  >()
  await mill.signal('some-id', stopped)
  await mill.signal('some-id', note, 'text')
  // @ts-expect-error 9: its data is missing
  await mill.signal(job, approved)
  // @ts-expect-error 10: data of another type
  await mill.signal(job, approved, { yes: 'no' })
  // @ts-expect-error 11: it has no data
  await mill.signal(job, stopped, { yes: true })
  // @ts-expect-error 12: a signal, not its name
  await mill.signal(job, 'approved', { yes: true })
}
