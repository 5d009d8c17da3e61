/** The methods of a context, taken out of it as `const { log, progress } = ctx` does. */

import { defineOrderedTask, defineTask } from 'millrace'
import { testContext } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { CommandProcess } from '../cli/command-process.js'
import { project } from '../cli/project.js'
import { storeKinds, testMill } from '../test-mill.js'

const child = defineTask({ name: 'child', queue: 'children' })
const settled = { timeout: '10s' } as const

describe.each(storeKinds)('a method taken out of its context, on %s', (kind) => {
  it('works in the handler of a plain task', async () => {
    const plain = defineTask({
      name: 'plain',
      retry: { max: 0 },
      async run(_, { log, progress, hold, checkpoint, enqueue, enqueueMany, fields: { set } }) {
        log('one line')
        progress(0.5, 'half')
        hold(0)
        await checkpoint({ page: 7 })
        await set({ node: 'eu-3' })
        const job = await enqueue(child, 1)
        return [job, ...(await enqueueMany(child, [2, 3]))].length
      },
    })
    const mill = testMill({ tasks: [plain, child] }, kind)
    const job = await mill.enqueue(plain, undefined)
    await mill.worker({ queues: ['default'] }).start()

    expect(await job.result(settled)).toBe(3)
    expect(await job.record()).toMatchObject({
      log: 'one line\n',
      progress: { fraction: 0.5, note: 'half' },
      fields: { node: 'eu-3' },
    })
  })

  it('works in the handler of a batch task', async () => {
    const batch = defineTask({
      name: 'batch',
      batch: { size: 10, wait: 0 },
      retry: { max: 0 },
      async run(inputs: readonly number[], { progress, hold, fail, enqueue, enqueueMany }) {
        progress(0.5)
        hold(0)
        await enqueue(child, 'one', { parent: 0 })
        await enqueueMany(child, ['two'], () => ({ parent: 1 }))
        fail(1, new Error('this one'))
        return inputs
      },
    })
    const mill = testMill({ tasks: [batch, child] }, kind)
    const jobs = await mill.enqueueMany(batch, [1, 2])
    await mill.worker({ queues: ['default'] }).start()

    expect((await mill.results(jobs, settled)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect((await mill.depths(['children']))[0]).toMatchObject({ ready: 2 })
  })

  it('works in the handler of an ordered task', async () => {
    const told: unknown[] = []
    const ordered = defineOrderedTask({
      name: 'ordered',
      retry: { max: 0 },
      async run(_, { progress, hold, fail, more, enqueue, enqueueMany }) {
        progress(1)
        hold(0)
        told.push(more('a'))
        await enqueue(child, 'one')
        await enqueueMany(child, ['two'])
        fail('a', new Error('this id'))
      },
    })
    const mill = testMill({ tasks: [ordered, child] }, kind)
    const job = await mill.enqueue(ordered, 1, { id: 'a' })
    await mill.worker({ queues: ['ordered'] }).start()

    await expect.poll(() => job.status()).toBe('dead')
    expect(told).toEqual([false])
    expect((await mill.depths(['children']))[0]).toMatchObject({ ready: 2 })
  })
})

describe('a method taken out of its context', () => {
  it('works in the process of an isolated job', { timeout: 60_000 }, async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'millrace.config.js': `
import { defineTask, millrace } from 'millrace'

const child = defineTask({ name: 'child', queue: 'children' })
const long = defineTask({
  name: 'long',
  isolate: 'process',
  retry: { max: 0 },
  async run(_, { log, progress, checkpoint, enqueue }) {
    log('one line')
    progress(0.5, 'half')
    await checkpoint({ page: 7 })
    await enqueue(child, 1)
    return 'done'
  },
})
export default millrace({ store: 'sqlite:jobs.db', tasks: [long, child] })`,
    })
    const long = defineTask({ name: 'long' })
    const mill = testMill({ store: `sqlite:${cwd}/jobs.db`, tasks: [long, child] })
    const job = await mill.enqueue(long, undefined)
    new CommandProcess('work --json --queues default', { cwd })

    expect(await job.result({ timeout: '30s' })).toBe('done')
    expect(await job.record()).toMatchObject({ log: 'one line\n', progress: { fraction: 0.5, note: 'half' } })
    expect((await mill.depths(['children']))[0]).toMatchObject({ ready: 1 })
  })

  it('works in a test context, and is recorded', async () => {
    const ctx = testContext(child)
    const { log, progress, hold, checkpoint, enqueue } = ctx
    log('one line')
    progress(0.5)
    hold('20s')
    hold('10s')
    await checkpoint(7)
    await enqueue(child, 1)

    expect([ctx.logged, ctx.progressed, ctx.checkpoints]).toEqual([['one line'], [{ fraction: 0.5 }], [7]])
    expect(ctx.enqueued).toHaveLength(1)
    expect(ctx.heldMs).toBe(20_000)
  })
})
