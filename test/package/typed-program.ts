/** A typed program: one that uses the types of the package, those that must refuse something too. */

export const typedProgram = `
import { defineTask, type JobHandle, type Mill, millrace, redisStore, type Schema } from 'millrace'
import type { Store } from 'millrace/store'
import { compareStores, memoryHarness, storeContract } from 'millrace/store-testing'
import { testMill } from 'millrace/testing'

declare const input: Schema<unknown, { to: string }>
const mail = defineTask({
  name: 'mail',
  input,
  run: async ({ to }, ctx) => ({ sent: to, attempt: ctx.job.attempt, isOver: ctx.signal.aborted }),
})
const typed = millrace({ store: 'memory:', tasks: [mail] })
const mill: Mill = typed
const job: JobHandle<{ sent: string; attempt: number }> = await mill.enqueue(mail, 'ada@example.com')
const { sent, attempt }: { sent: string; attempt: number } = await job.result()
await compareStores(await memoryHarness(), await memoryHarness(), { seed: attempt, steps: storeContract.length })
export const store: Store | string = sent
const [ran] = await testMill({ tasks: [mail] }).drain()
export const tested: { sent: string; attempt: number } | undefined = ran?.result
export const redis: Promise<Store> = redisStore({ url: { hosts: ['localhost'], tls: { ca: 'pem' } } })
export async function closing() {
  await using mill = millrace({ store: 'memory:', queues: { low: { lease: '30s' } } })
  await mill.queue('low').depth()
}
// @ts-expect-error: a queue there is not
mill.queue('nope' satisfies Parameters<typeof typed.queue>[0])
// @ts-expect-error: no duration
typed.worker({ grace: '5 minuets' })
// @ts-expect-error: how the command line starts a worker
typed.worker({}, {})
`
