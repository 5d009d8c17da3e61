/** The types of `millrace/testing`: outcomes by task, inputs of what was enqueued, contexts by the kind of task. Checked by `npm run types`; never run. */

import { defineOrderedTask, defineTask, type JobRecord, type Mill, type Progress } from 'millrace'
import {
  type RanJob,
  type TestContext,
  type TestMill,
  type TestOrderedContext,
  testContext,
  testMill,
} from 'millrace/testing'
import { expectTypeOf } from 'vitest'

const mail = defineTask({ name: 'mail', queue: 'high', run: async (input: { to: string }) => ({ sent: input.to }) })
const tidy = defineTask({ name: 'tidy', run: async () => 3 })
const sync = defineOrderedTask({
  name: 'sync',
  run: (payloadsById: ReadonlyMap<string, readonly { rev: number }[]>) => payloadsById.size,
})
const mill = testMill({ queues: { low: {} }, tasks: [mail, tidy, sync], now: '2026-03-01T09:00:00Z' })
expectTypeOf(mill).toEqualTypeOf<
  TestMill<'low' | 'high' | 'default' | 'sync', typeof mail | typeof tidy | typeof sync>
>()
export const any: Mill = mill

for (const ran of await mill.drain()) {
  expectTypeOf(ran.task).toEqualTypeOf<'mail' | 'tidy' | 'sync'>()
  if (ran.task === 'mail') expectTypeOf(ran.result).toEqualTypeOf<{ sent: string } | undefined>()
  if (ran.task === 'tidy') expectTypeOf(ran.result).toEqualTypeOf<number | undefined>()
}
expectTypeOf<RanJob<typeof mail>['task']>().toEqualTypeOf<'mail'>()
const [waiting] = await mill.enqueued(mail)
expectTypeOf(waiting!).toExtend<JobRecord<{ to: string }, { sent: string }>>()
expectTypeOf(waiting!.input).toEqualTypeOf<{ to: string }>()
expectTypeOf((await mill.enqueued(sync))[0]!.payloads[0]!.input).toEqualTypeOf<{ rev: number } | undefined>()
expectTypeOf(mill.now).toEqualTypeOf<Date>()
mill.advance('5m')
await mill.drain({ queues: ['low'], limit: 3 })
mill.failNext('enqueue', new Error())
mill.outage()()
testMill({
  tasks: [mail, tidy, sync],
  handlers: {
    mail: async ({ to }) => ({ sent: to }),
    tidy: () => 4,
    sync: (payloadsById) => void payloadsById.get('a')?.[0]?.rev,
  },
})
// @ts-expect-error 11: the handler of a task that is not there
testMill({ tasks: [mail], handlers: { tidy: () => 4 } })
// @ts-expect-error 12: a handler with another result
testMill({ tasks: [mail], handlers: { mail: async () => ({ sent: 3 }) } })
// @ts-expect-error 1: a test mill has its own store
testMill({ store: 'memory:', tasks: [mail] })
// @ts-expect-error 2: a queue there is not
mill.queue('nope')
// @ts-expect-error 3: nor for a drain
await mill.drain({ queues: ['nope'] })
// @ts-expect-error 4: a duration
mill.advance('5 minuets')
// @ts-expect-error 5: a call there is not
mill.failNext('send')
// @ts-expect-error 6: an unknown option of a queue
testMill({ queues: { a: { wieght: 1 } } })

const ctx = testContext(mail, { attempt: 2, meta: { by: 'ada' } })
expectTypeOf(ctx).toEqualTypeOf<TestContext>()
expectTypeOf(ctx.progressed).toEqualTypeOf<readonly Progress[]>()
await mail.run!({ to: 'ada' }, ctx)
expectTypeOf(testContext(sync, { payloadsById: new Map([['a', [{ rev: 1 }]]]) })).toEqualTypeOf<TestOrderedContext>()
// @ts-expect-error 7: a field that jobs have not
testContext(mail, { attempts: 2 })
// @ts-expect-error 8: a batch has payloads
testContext(sync, {})
// @ts-expect-error 9: what handlers do is read, not written
ctx.logged.push('x')
