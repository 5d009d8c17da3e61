/** A revive of all dead jobs beside a worker under which they die again. */

import type { Step } from 'millrace/store'
import { expect, it, onTestFinished } from 'vitest'
import { QueueAdmin } from '#src/client/admin/queue-admin.js'
import { harnesses } from '../../stores/harnesses.js'
import { adminParts } from '../enqueue/ordered-scene.js'

const queue = 'mail'
const jobs = 1_300

it.each(['memory', 'sqlite', 'redis', 'postgres'])('revives each job once, on %s', async (name) => {
  const harness = await harnesses.get(name)!()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  const claimed = async () => {
    const { claims } = await store.claim([{ queue, limit: 250 }], { worker: 'w', leaseMs: 30_000 })
    const keys = claims.map(({ id, fence }) => ({ queue, id, fence }))
    await store.settle(keys.map((key) => ({ ...key, kind: 'bury' as const, error: 'broken' })))
    return claims.map(({ id }) => id)
  }
  const dieAll = async () => {
    const died: string[] = []
    for (let some = await claimed(); some.length > 0; some = await claimed()) died.push(...some)
    return died
  }
  for (let from = 0; from < jobs; from += 100)
    await store.enqueue([
      {
        ...{ callId: `call-${from}`, queue },
        jobs: Array.from({ length: 100 }, (_, i) => ({
          ...{ id: `job-${from + i}`, task: 'send', payload: '1', priority: 0, rememberMs: 0 },
        })),
      },
    ])
  await dieAll()
  await harness.advance(1_000)

  const died: string[] = []
  const loop = async (step: () => Promise<Step>): Promise<number> => {
    let changed = 0
    for (let more = true; more; ) {
      const done = await step()
      changed += done.changed
      more = done.more
      await harness.advance(1_000)
      died.push(...(await dieAll()))
      if (died.length > 3 * jobs) throw new Error('it goes on and on')
    }
    return changed
  }
  const revived = await new QueueAdmin(queue, adminParts(store), loop).morgue.revive('all')

  expect(died).toHaveLength(revived)
  expect(new Set(died).size).toBe(jobs)
  expect(revived).toBe(jobs)
})
