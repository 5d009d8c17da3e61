/** A test context: one call of a handler, and what it has done. */

import { defineOrderedTask, defineTask, type JobHandle } from 'millrace'
import { testContext } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const encode = defineTask({
  name: 'encode',
  queue: 'video',
  async run({ file }: { file: string }, ctx) {
    ctx.progress(0.5, file)
    ctx.log(`attempt ${ctx.job.attempt} of ${ctx.job.id}`)
    await ctx.checkpoint({ from: ctx.lastCheckpoint })
    ctx.signal.throwIfAborted()
    return ctx.job.meta['by']
  },
})

describe('the context of a plain task', () => {
  it('describes a first attempt, and records what the handler does', async () => {
    const ctx = testContext(encode)
    await encode.run!({ file: 'a.mp4' }, ctx)

    expect(ctx.job).toMatchObject({
      id: 'job-1',
      task: 'encode',
      queue: 'video',
      attempt: 1,
      crashes: 0,
      fence: 1,
      meta: {},
    })
    expect(ctx.progressed).toEqual([{ fraction: 0.5, note: 'a.mp4' }])
    expect(ctx.logged).toEqual(['attempt 1 of job-1'])
    expect(ctx.checkpoints).toEqual([{ from: undefined }])
  })

  it('describes the job that the test asks for', async () => {
    const ctx = testContext(encode, {
      ...{ id: 'x', attempt: 3, meta: { by: 'ada' }, lastCheckpoint: 7, lastError: 'no luck', group: 'g' },
      runAt: new Date(0),
    })

    expect(await encode.run!({ file: 'a.mp4' }, ctx)).toBe('ada')
    expect(ctx.job).toMatchObject({ id: 'x', attempt: 3, lastError: 'no luck', group: 'g', runAt: new Date(0) })
    expect(ctx.checkpoints).toEqual([{ from: 7 }])
  })

  it('records what the handler enqueues, checked and not sent', async () => {
    const thumb = defineTask({ name: 'thumb', input: z.object({ at: z.number() }), run: async () => 'a.png' })
    const cut = defineTask({
      name: 'cut',
      async run(_, ctx) {
        const job = await ctx.enqueue(thumb, { at: 3 }, { priority: 1, key: 'first' })
        await ctx.enqueueMany(thumb, [{ at: 4 }], () => ({ id: 'mine' }))
        return job
      },
    })
    const ctx = testContext(cut)
    const job = (await cut.run!(undefined, ctx)) as JobHandle

    expect(ctx.enqueued).toEqual([
      { task: thumb, input: { at: 3 }, options: { priority: 1, key: 'first' } },
      { task: thumb, input: { at: 4 }, options: { id: 'mine' } },
    ])
    expect(job).toMatchObject({ queue: 'default', outcome: 'added' })
    await expect(job.result()).rejects.toThrow('was enqueued in a test context, which runs no jobs')
    await expect(ctx.enqueue(thumb, { at: '3' as unknown as number })).rejects.toMatchObject({ code: 'job-invalid' })
  })

  it('records for which job of a batch the handler enqueues', async () => {
    const row = defineTask({ name: 'row', run: async (_: number) => {} })
    const rows = defineTask({
      name: 'rows',
      batch: { size: 10 },
      async run(inputs: readonly number[], ctx) {
        for (const [i, n] of inputs.entries()) await ctx.enqueue(row, n, { parent: i })
      },
    })
    const ctx = testContext(rows, { inputs: [7, 8] })
    await rows.run!([7, 8], ctx)

    expect(ctx.enqueued.map(({ input, options }) => [input, options])).toEqual([
      [7, { parent: 0 }],
      [8, { parent: 1 }],
    ])
  })

  it('is aborted by the test, with its reason or that of a stopping worker', async () => {
    const [stopped, timedOut] = [testContext(encode), testContext(encode)]
    stopped.abort()
    timedOut.abort(new Error('too long'))

    expect(stopped.signal.reason).toMatchObject({ code: 'worker-stopped' })
    await expect(encode.run!({ file: '' }, timedOut)).rejects.toThrow('too long')
  })

  it('refuses a checkpoint that a worker would refuse', async () => {
    await expect(testContext(encode).checkpoint('x'.repeat(2_000_000))).rejects.toMatchObject({
      code: 'payload-too-large',
    })
  })
})

describe('the context of an ordered task', () => {
  const sync = defineOrderedTask({
    name: 'sync',
    run(payloadsById: ReadonlyMap<string, readonly number[]>, ctx) {
      for (const [id, payloads] of payloadsById)
        if (payloads.includes(0)) ctx.fail(id, new Error('zero'))
        else ctx.done(id, 1)
      ctx.progress(1)
    },
  })

  it('records failed ids and finished payloads, and knows for which ids more follow', () => {
    const payloadsById = new Map([
      ['a', [1, 2]],
      ['b', [0]],
    ])
    const ctx = testContext(sync, { payloadsById, more: ['b'], attempt: 2 })
    sync.run!(payloadsById, ctx)

    expect([...ctx.failed]).toEqual([['b', new Error('zero')]])
    expect([...ctx.payloadsDone]).toEqual([['a', 1]])
    expect(ctx.progressed).toEqual([{ fraction: 1 }])
    expect([ctx.more('a'), ctx.more('b')]).toEqual([false, true])
    expect(ctx.jobs.get('a')).toMatchObject({ attempt: 2, payloads: [{ score: 0 }, { score: 1 }] })
    expect(() => ctx.fail('c', new Error())).toThrow('no id of this batch')
  })

  it('requires payloads', () => {
    expect(() => testContext(sync, {} as { payloadsById: Map<string, number[]> })).toThrow(
      "testContext() of the ordered task 'sync' needs the payloads",
    )
    expect(() => testContext('sync' as unknown as typeof sync, { payloadsById: new Map() })).toThrow('expects a task')
  })
})
