/** Jobs enqueued by the names of their tasks. */

import { defineOrderedTask, defineTask } from 'millrace'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../test-mill.js'

const mail = defineTask({
  name: 'mail',
  aliases: ['email'],
  queue: 'mail',
  input: v.object({ to: v.string(), copies: v.optional(v.number(), 1) }),
  run: async ({ to }) => to,
})
const sync = defineOrderedTask({
  name: 'sync',
  queue: 'orders',
  id: ({ id }: { id: string }) => id,
  run: async () => {},
})

describe.each(storeKinds)('a job enqueued by the name of its task, on %s', (kind) => {
  const queues = { mail: {}, crawl: {}, orders: { ordered: true } }

  it('is checked by the schema of the declared task, which may be named by an alias', async () => {
    const mill = testMill({ queues, tasks: [mail, sync] }, kind)
    const job = await mill.enqueueNamed('email', { to: 'ada' }, { id: 'welcome', priority: 2 })
    const ordered = await mill.enqueueNamed('sync', { id: 'e-1' }, { score: 4 })

    expect(await job.record()).toMatchObject({
      task: 'mail',
      id: 'welcome',
      priority: 2,
      input: { to: 'ada', copies: 1 },
    })
    expect(await ordered.record()).toMatchObject({ task: 'sync', payloads: [{ score: 4 }] })
    await expect(mill.enqueueNamed('mail', { to: 1 })).rejects.toMatchObject({ code: 'job-invalid' })
    await expect(mill.enqueueNamed('mail', { to: 'ada' }, { prio: 1 } as never)).rejects.toMatchObject({
      ...{ code: 'job-invalid', message: expect.stringContaining("'prio'") },
    })
    expect((await mill.queue('mail').depth()).ready).toBe(1)
  })

  it('needs its queue if only workers elsewhere know the task', async () => {
    const mill = testMill({ queues, tasks: [mail] }, kind)
    await expect(mill.enqueueNamed('crawl-page', 1)).rejects.toMatchObject({ code: 'task-unknown' })
    await expect(mill.enqueueNamed('crawl-page', 1, { queue: 'films' })).rejects.toMatchObject({
      code: 'queue-unknown',
    })
    await expect(mill.enqueueNamed('', 1, { queue: 'crawl' })).rejects.toMatchObject({ code: 'argument-invalid' })
    const job = await mill.enqueueNamed('crawl-page', 1, { queue: 'crawl' })
    expect(await job.record()).toMatchObject({ task: 'crawl-page', queue: 'crawl', input: 1 })
  })
})
