/** The types of what handlers need: the handler says it, and a mill without it does not compile. Checked by `npm run types`; never run. */

import {
  type AnyTask,
  type BatchContext,
  defineOrderedTask,
  defineTask,
  type JobContext,
  type JoinContext,
  type Middleware,
  type MillOptions,
  millrace,
  type OrderedContext,
  type TaskInput,
  type TaskResult,
} from 'millrace'
import { testContext, testMill } from 'millrace/testing'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

interface Database {
  find(id: string): Promise<string>
}
interface Mailer {
  send(to: string, text: string): Promise<void>
}
declare const db: Database
declare const mailer: Mailer
const store = 'memory:'

// A handler sees what it says it needs, whatever gives the type of its input.
const bySchema = defineTask({
  name: 'by-schema',
  queue: 'high',
  input: z.object({ id: z.string() }),
  run: async ({ id }, ctx: JobContext<{ db: Database }>) => {
    expectTypeOf(id).toEqualTypeOf<string>()
    expectTypeOf(ctx.context).toEqualTypeOf<{ db: Database }>()
    expectTypeOf(ctx.job.attempt).toEqualTypeOf<number>()
    return ctx.context.db.find(id)
  },
})
expectTypeOf<TaskInput<typeof bySchema>>().toEqualTypeOf<{ id: string }>()
expectTypeOf<TaskResult<typeof bySchema>>().toEqualTypeOf<string>()
const byHandler = defineTask({
  name: 'by-handler',
  run: async (to: string, { context }: JobContext<{ mailer: Mailer }>) => context.mailer.send(to, 'hello'),
})
const frugal = defineTask({
  name: 'frugal',
  run: async (_: string, ctx) => expectTypeOf(ctx.context).toEqualTypeOf<unknown>(),
})
const elsewhere = defineTask({ name: 'elsewhere', input: z.object({ n: z.number() }) }).returns<number>()
const attached = elsewhere.handle(async ({ n }, ctx: JobContext<{ offset: number }>) => n + ctx.context.offset)
const batch = defineTask({
  name: 'batch',
  batch: { size: 2 },
  run: async (inputs: string[], ctx: BatchContext<{ db: Database }>) =>
    Promise.all(inputs.map((id) => ctx.context.db.find(id))),
})
expectTypeOf<TaskResult<typeof batch>>().toEqualTypeOf<string>()
const ordered = defineOrderedTask({
  name: 'ordered',
  input: z.object({ id: z.string() }),
  run: async (byId, ctx: OrderedContext<{ db: Database }>) => {
    expectTypeOf(byId).toEqualTypeOf<ReadonlyMap<string, readonly { id: string }[]>>()
    expectTypeOf(ctx.context.db).toEqualTypeOf<Database>()
  },
})
const join = defineTask({
  name: 'join',
  joins: { one: bySchema },
  run: async (_: string, ctx: JoinContext<{ one: typeof bySchema }, { mailer: Mailer }>) => {
    expectTypeOf(ctx.joined.one).toEqualTypeOf<string>()
    await ctx.context.mailer.send('ada', ctx.joined.one)
  },
})

// A mill gives all of it, and may give more.
millrace({ store, tasks: [bySchema, byHandler], context: async () => ({ db, mailer, more: 1 }) })
millrace({
  store,
  tasks: [bySchema, byHandler, frugal, attached, batch, ordered, join],
  context: () => ({ db, mailer, offset: 3, [Symbol.asyncDispose]: async () => {} }),
})
millrace({ store, tasks: [frugal, elsewhere] })
millrace({ store, tasks: [frugal], context: async () => ({ db }) })
millrace({ store, tasks: [], context: undefined })
// @ts-expect-error 1: without it
millrace({ store, tasks: [bySchema] })
// @ts-expect-error 2: without a part of it
millrace({ store, tasks: [bySchema, byHandler], context: async () => ({ db }) })
// @ts-expect-error 3: with another type
millrace({ store, tasks: [bySchema], context: async () => ({ db: mailer }) })
// @ts-expect-error 4: the value itself
millrace({ store, tasks: [bySchema], context: { db } })
// @ts-expect-error 5: of a handler that is attached
millrace({ store, tasks: [attached] })
// @ts-expect-error 6: of a batch task
millrace({ store, tasks: [batch], context: () => ({ mailer }) })
// @ts-expect-error 7: of an ordered task
millrace({ store, tasks: [ordered], context: () => ({ mailer }) })
// @ts-expect-error 8: of a join
millrace({ store, tasks: [join], context: () => ({ db }) })
// @ts-expect-error 9: a handler does not get more than it says
defineTask({ name: 'more', run: async (_: string, ctx: JobContext<{ db: Database }>) => ctx.context.mailer })
// @ts-expect-error 10: nor is its result of another type than the task's
elsewhere.handle(async (_, ctx: JobContext<{ offset: number }>) => String(ctx.context.offset))
// Tasks of a list whose types are not known need what only the run time knows.
export const ofAny = (tasks: readonly AnyTask[]) => millrace({ store, tasks })
export const options = { store, tasks: [bySchema], context: async () => ({ db }) } satisfies MillOptions

export const noting: Middleware<{ db: Database }> = {
  async run({ ctx }, next) {
    expectTypeOf(ctx.context).toEqualTypeOf<{ db: Database }>()
    return next()
  },
}
millrace({ store, tasks: [bySchema], context: async () => ({ db }), middleware: [noting] })

// A test gives its own.
testMill({
  tasks: [bySchema, byHandler],
  context: () => ({ db, mailer }),
  handlers: {
    'by-schema': async ({ id }, ctx) => {
      expectTypeOf(ctx.context).toEqualTypeOf<{ db: Database }>()
      return id
    },
    'by-handler': (_, { context }) => context.mailer.send('ada', ''),
  },
})
// @ts-expect-error 11: not without it
testMill({ tasks: [bySchema] })
// @ts-expect-error 12: nor with another
testMill({ tasks: [bySchema], context: () => ({ mailer }) })
const ctx = testContext(bySchema, { context: { db } })
expectTypeOf(ctx.context).toEqualTypeOf<{ db: Database }>()
await bySchema.run!({ id: 'a' }, ctx)
await batch.run!(['a'], testContext(batch, { inputs: ['a'], context: { db } }))
await join.run!('a', testContext(join, { joined: { one: 'a' }, context: { mailer } }))
await ordered.run!(new Map(), testContext(ordered, { payloadsById: new Map([['a', []]]), context: { db } }))
// @ts-expect-error 13: nor a context
testContext(bySchema)
// @ts-expect-error 14: nor one of another type
testContext(bySchema, { context: { mailer } })
// @ts-expect-error 15: nor of a batch
testContext(batch, { inputs: ['a'] })
