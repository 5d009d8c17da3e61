/** The types of `onDead`: which tasks it takes for the jobs of which, and wrong uses that must fail. Checked by `npm run types`; never run. */

import {
  type Death,
  type DeathTask,
  defineOrderedTask,
  defineTask,
  many,
  millrace,
  type TaskInput,
  type TaskResult,
} from 'millrace'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const any = defineTask({
  name: 'any',
  queue: 'obituaries',
  async run(death: Death, ctx) {
    expectTypeOf(death.input).toEqualTypeOf<unknown>()
    expectTypeOf(death.error).toEqualTypeOf<string | undefined>()
    expectTypeOf(death.diedAt).toEqualTypeOf<number>()
    expectTypeOf(ctx.job.id).toEqualTypeOf<string>()
  },
})
const ofMail = defineTask({
  name: 'of-mail',
  run: async ({ input }: Death<{ to: string }>) => {
    expectTypeOf(input).toEqualTypeOf<{ to: string } | undefined>()
  },
})
const some = defineTask({
  name: 'some',
  batch: { size: 10 },
  run: async (deaths: Death[]) => deaths.map(({ job }) => job),
})
const bySchema = defineTask({ name: 'by-schema', input: z.object({ job: z.string(), queue: z.string() }) })
const producer = defineTask({ name: 'producer' }).handle(async (death: unknown) => console.log(death))
const tagged = defineTask({ name: 'tagged', group: (death: Death) => death.queue, run: async () => {} })

for (const onDead of [any, some, bySchema, producer, tagged] as const)
  defineTask({ name: 'sum', onDead, run: async (n: number) => n + 1 })

const mail = defineTask({ name: 'mail', onDead: ofMail, run: async (input: { to: string; cc?: string }) => input.to })
expectTypeOf<TaskInput<typeof mail>>().toEqualTypeOf<{ to: string; cc?: string }>()
expectTypeOf<TaskResult<typeof mail>>().toEqualTypeOf<string>()
const schema = defineTask({ name: 'schema', input: z.object({ to: z.email() }), onDead: ofMail, run: async () => 1 })
expectTypeOf<TaskInput<typeof schema>>().toEqualTypeOf<{ to: string }>()
// The task that gets them says nothing of the input.
const untyped = defineTask({ name: 'untyped', onDead: any })
expectTypeOf<TaskInput<typeof untyped>>().toEqualTypeOf<unknown>()
const batched = defineTask({ name: 'batched', batch: { size: 2 }, onDead: any, run: async (all: string[]) => all })
const joining = defineTask({ name: 'joining', joins: { mails: many(mail) }, onDead: any, run: async () => {} })
const isolated = defineTask({ name: 'isolated', isolate: 'process', onDead: any, run: async (_: Date) => {} })
const tasks = [mail, schema, untyped, batched, joining, isolated, any, ofMail]
await millrace({ store: 'memory:', tasks }).enqueue(mail, { to: 'ada' })

// @ts-expect-error 1: jobs with another input
defineTask({ name: 'bad', onDead: ofMail, run: async (n: number) => n })
// @ts-expect-error 2: the same by a schema
defineTask({ name: 'bad', input: z.object({ from: z.string() }), onDead: ofMail })
// @ts-expect-error 3: a task that takes no death
defineTask({ name: 'bad', onDead: mail })
// @ts-expect-error 4: a function
defineTask({ name: 'bad', onDead: (death: Death) => console.log(death) })
// @ts-expect-error 5: a word of the sets of a join
defineTask({ name: 'bad', onDead: 'go-on' })
// @ts-expect-error 6: an ordered task
defineTask({ name: 'bad', onDead: defineOrderedTask({ name: 'o', id: (death: Death) => death.job }) })
// @ts-expect-error 7: a task that waits for others
defineTask({ name: 'bad', onDead: defineTask({ name: 'j', joins: { any }, run: async (_: Death) => {} }) })
// @ts-expect-error 8: payloads of an ordered task
defineOrderedTask({ name: 'bad', onDead: any })
// @ts-expect-error 9: jobs of a batch with another input
defineTask({ name: 'bad', batch: { size: 2 }, onDead: ofMail, run: async (all: number[]) => all })
expectTypeOf<typeof any>().toExtend<DeathTask<{ to: string }>>()
