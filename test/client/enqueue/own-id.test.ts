import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../../test-mill.js'

describe.each(storeKinds)('an id of its own, on %s', (kind) => {
  it('cannot be enqueued by the job that has it; the error names snooze()', async () => {
    const errors: unknown[] = []
    const poll = defineTask({
      name: 'poll',
      async run(way: string, ctx): Promise<void> {
        const options = { id: ctx.job.id, ...(way === 'replace' && { ifWaiting: 'replace' as const }) }
        const call = way === 'many' ? ctx.enqueueMany([[poll, way, options]]) : ctx.enqueue(poll, way, options)
        await Promise.resolve(call).catch((error) => errors.push(error))
      },
    })
    const m = testMill({ tasks: [poll], queues: { other: {} } }, kind)
    const jobs = await m.enqueueMany(poll, ['plain', 'replace', 'many'], (way) => ({ id: way }))
    const ended = m.results(jobs, { timeout: '5s' })
    await m.worker().start()
    await ended

    expect(errors).toHaveLength(3)
    for (const error of errors) expect((error as Error).message).toMatch(/its own id '\w+'.*Return snooze\('1m'\)/s)
  })

  it('is free in another queue, and for the children of another job', async () => {
    const outcomes: unknown[] = []
    const next = defineTask({ name: 'next', queue: 'other' })
    const first = defineTask({
      name: 'first',
      async run(_: number, ctx) {
        outcomes.push((await ctx.enqueue(next, 1, { id: ctx.job.id })).outcome)
      },
    })
    const m = testMill({ tasks: [first, next] }, kind)
    const ended = (await m.enqueue(first, 1, { id: 'same' })).result({ timeout: '5s' })
    await m.worker({ queues: ['default'] }).start()
    await ended

    expect(outcomes).toEqual(['added'])
  })

  it('is remembered for as long as the enqueue says, or else the task, or else the mill', async () => {
    const quick = defineTask({ name: 'quick', run: async () => {} })
    const crawl = defineTask({ name: 'crawl', idempotency: 0, run: async () => {} })
    const m = testMill({ tasks: [quick, crawl], idempotency: '1h' }, kind)
    await m.worker().start()
    const again = async (task: typeof quick, id: string, idempotency?: 0 | '1h') => {
      const options = { id, ...(idempotency !== undefined && { idempotency }) }
      const job = await m.enqueue(task, undefined, options)
      await job.result({ timeout: '5s' }).catch(() => {})
      await expect.poll(() => m.queue('default').depth()).toMatchObject({ running: 0 })
      return (await m.enqueue(task, undefined, options)).outcome
    }

    expect(await again(quick, 'of the mill')).toBe('duplicate')
    await expect.poll(() => again(crawl as never, 'of the task')).toBe('added')
    expect(await again(crawl as never, 'of the enqueue', '1h')).toBe('duplicate')
    await expect.poll(() => again(quick, 'not at all', 0)).toBe('added')
  })

  it('of a replacing job leads to other ids for its children', async () => {
    const outcomes: unknown[] = []
    const mail = defineTask({ name: 'mail', queue: 'mails' })
    const digest = defineTask({
      name: 'digest',
      retry: { max: 3, backoff: () => 3_600_000 },
      async run(revision: number, ctx) {
        outcomes.push((await ctx.enqueue(mail, { to: 'ada' })).outcome)
        if (revision === 1) throw new Error('after it enqueued')
      },
    })
    const m = testMill({ tasks: [digest, mail] }, kind)
    await m.worker({ queues: ['default'] }).start()
    const failed = new Promise((resolve) => m.on('job.failed', resolve))
    await m.enqueue(digest, 1, { id: 'digest-ada' })
    await failed
    const second = await m.enqueue(digest, 2, { id: 'digest-ada', ifWaiting: 'replace' })
    await second.result({ timeout: '5s' })

    expect(outcomes).toEqual(['added', 'added'])
  })

  it('of a job that runs again leads to the same ids for its children', async () => {
    const outcomes: unknown[] = []
    const mail = defineTask({ name: 'mail', queue: 'mails' })
    const digest = defineTask({
      name: 'digest',
      retry: { max: 3, backoff: () => 0 },
      async run(_: number, ctx) {
        outcomes.push((await ctx.enqueue(mail, { to: 'ada' })).outcome)
        if (outcomes.length === 1) throw new Error('after it enqueued')
      },
    })
    const m = testMill({ tasks: [digest, mail] }, kind)
    await m.worker({ queues: ['default'] }).start()
    const job = await m.enqueue(digest, 2, { id: 'digest-ada', ifWaiting: 'replace' })
    await job.result({ timeout: '5s' })

    expect(outcomes).toEqual(['added', 'duplicate'])
  })
})
