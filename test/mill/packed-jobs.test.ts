/** Jobs that are compressed and sealed: every way that a value goes, on every store, and what the store has of it. */

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { bury, defineOrderedTask, defineTask, type Mill, type MillOptions, many } from 'millrace'
import { describe, expect, it } from 'vitest'
import { newKey, oldKey } from '../core/seal-keys.js'
import { nextEvent } from '../next-event.js'
import { packedKinds, packedStores, storedInput } from './packed-stores.js'

/** In each value, and nowhere else. */
const secret = 'DE02120300000000202051'
const seal = { current: '2026-11', keys: { '2026-11': newKey } }
const packing = { compress: { above: 200 }, seal }
const long = { iban: secret, lines: Array.from({ length: 50 }, (_, i) => `line ${i}`) }

const pay = defineTask({
  name: 'pay',
  retry: { max: 1, backoff: () => 0 },
  run: async (input, ctx) => {
    if (ctx.lastCheckpoint === undefined) {
      await ctx.checkpoint({ done: secret })
      throw new Error('not yet')
    }
    return { input, meta: ctx.job.meta, was: ctx.lastCheckpoint }
  },
})
const none: unknown[] = []
const booking = (ran = none) =>
  defineOrderedTask({
    name: 'book',
    queue: 'books',
    merge: 'distinct',
    run: (payloads) => void ran.push([...payloads.entries()]),
  })

describe.each(packedKinds)('sealed and compressed jobs, on %s', (kind) => {
  it('run as others do, and the store holds no readable byte of their content', async () => {
    const on = await packedStores[kind]()
    const mill = on.mill({ ...packing, tasks: [pay, booking()] })
    const jobs = [await mill.enqueue(pay, long, { meta: { for: secret } }), await mill.enqueue(pay, secret)]
    await mill.enqueue(booking(), long, { id: 'a', meta: { by: secret }, delay: '1h' })
    await mill.throttledQueue('items', { limit: 5, window: '1s' }).push(secret)
    await mill.worker({ queues: ['default'] }).start()

    expect(await jobs[0]!.result()).toEqual({ input: long, meta: { for: secret }, was: { done: secret } })
    expect(await jobs[1]!.result()).toMatchObject({ input: secret })
    const record = await mill.queue('default').jobs.get(jobs[0]!.id)
    expect(record).toMatchObject({ state: 'completed', attempt: 2, input: long, meta: { for: secret } })
    const store = await on.store()
    expect(await store.records!.get('default', jobs[0]!.id)).toMatchObject({
      codec: 'json+gzip+sealed',
      result: { codec: 'json+gzip+sealed' },
    })
    expect((await storedInput(store, 'default', jobs[1]!.id)).codec).toBe('json+sealed')
    const written = await on.written()
    if (written !== undefined) expect(written.includes(jobs[0]!.id)).toBe(true)
    expect(written?.includes(secret) ?? false).toBe(false)
    expect(written?.includes(Buffer.from(secret).toString('base64').slice(2, 20)) ?? false).toBe(false)
  })

  it("with equal payloads merge in an ordered queue with `merge: 'distinct'`, also after a move", async () => {
    const on = await packedStores[kind]()
    const old = defineOrderedTask({ name: 'old', queue: 'old', merge: 'distinct' })
    const mill = on.mill({ ...packing, tasks: [old, booking()] })
    const outcomes = []
    for (const input of [long, { ...long }, secret, secret, 1])
      outcomes.push((await mill.enqueue(old, input, { id: 'a' })).outcome)
    await mill.enqueue(booking(), long, { id: 'a', meta: { by: 'another' } })
    expect(outcomes).toEqual(['added', 'merged', 'merged', 'merged', 'merged'])
    expect((await mill.queue('old').jobs.get('a'))?.payloads?.map(({ input }) => input)).toEqual([long, secret, 1])
    await mill.queue('old').move('books')
    const record = await mill.queue('books').jobs.get('a')
    expect(record?.error).toBeUndefined()
    expect(record?.payloads?.map(({ input }) => input)).toEqual([long, secret, 1])

    const ran: unknown[] = []
    const worker = on.mill({ seal, tasks: [booking(ran)] })
    const done = nextEvent(worker, 'job.completed')
    await worker.worker().start()
    await done
    expect(ran).toEqual([[['a', [long, secret, 1]]]])
  })

  it('are revived from the morgue unchanged', async () => {
    const on = await packedStores[kind]()
    const ran: unknown[] = []
    let isWrong = true
    const task = defineTask({ name: 't', run: (input) => (isWrong ? bury('wrong') : void ran.push(input)) })
    const ordered = defineOrderedTask({
      name: 'o',
      queue: 'o',
      run: (all) => (isWrong ? bury('wrong') : void ran.push([...all])),
    })
    const mill = on.mill({ ...packing, tasks: [task, ordered] })
    const job = await mill.enqueue(task, long)
    await mill.enqueue(ordered, secret, { id: 'a' })
    const ended = (name: 'job.buried' | 'job.completed') =>
      Promise.all(['default', 'o'].map((queue) => nextEvent(mill, name, (event) => event.queue === queue)))
    const buried = ended('job.buried')
    await mill.worker().start()
    await buried
    expect(await mill.queue('default').morgue.get(job.id)).toMatchObject({ input: long })
    expect(await mill.queue('o').morgue.get('a')).toMatchObject({ payloads: [{ input: secret }] })

    isWrong = false
    const completed = ended('job.completed')
    await mill.queue('default').morgue.revive([job.id])
    await mill.queue('o').morgue.revive(['a'])
    await completed
    expect(ran).toHaveLength(2)
    expect(ran).toEqual(expect.arrayContaining([long, [['a', [secret]]]]))
  })

  it('can be received by listeners and throttled queues', async () => {
    const on = await packedStores[kind]()
    const mill = on.mill({ ...packing, queues: { video: {} }, tasks: [defineTask({ name: 'v', queue: 'video' })] })
    const job = await mill.enqueue(mill.tasks.get('v')!, long, { meta: { for: secret } } as never)
    const listener = mill.listener('video')
    const claim = await listener.next()
    await claim!.checkpoint({ done: secret })
    await claim!.release()
    const again = await listener.next()
    expect(again).toMatchObject({ input: long, meta: { for: secret }, lastCheckpoint: { done: secret } })
    await again!.complete(long)
    expect(await job.result()).toEqual(long)

    const items = mill.throttledQueue('items', { limit: 5, window: '1s' })
    await items.push(long)
    expect(await items.pop()).toEqual(long)
  })
})

/** A store in memory with a worker on it, and the event that tells how the next of its jobs ends. */
async function scene(options: Omit<MillOptions, 'store'>) {
  const on = await packedStores.memory()
  const task = defineTask({ name: 'pay', run: (input) => input })
  const mill = on.mill({ ...options, tasks: [task] })
  const ends = async (name: 'job.buried' | 'job.released' | 'job.completed', of: Mill = mill) => {
    const end = nextEvent(of, name)
    const worker = of.worker()
    await worker.start()
    const event = await end
    await worker.stop()
    return event
  }
  return { on, task, mill, ends }
}

describe.each(packedKinds)('sealed results of members, on %s', (kind) => {
  it('are read by their join, whatever queue a member was sent to', async () => {
    const on = await packedStores[kind]()
    const part = defineTask({ name: 'part', run: async (n: number) => n * 2 })
    const whole = defineTask({
      name: 'whole',
      joins: { one: part, all: many(part) },
      async run(_: string, ctx) {
        const all: number[] = []
        for await (const n of ctx.joined.all) all.push(n)
        return [ctx.joined.one, ...all]
      },
    })
    const mill = on.mill({ ...packing, queues: { aside: {} }, tasks: [part, whole] })
    const job = await mill.flow((f) =>
      f.job(whole, 'x', {
        after: { one: f.job(part, 1, { queue: 'aside' }), all: f.jobs(part, [2, 3], { queue: 'aside' }) },
      }),
    )
    const worker = mill.worker()
    await worker.start()

    expect(await job.result({ timeout: '10s' })).toEqual([2, 4, 6])
    await worker.stop()
  })
})

describe('a job sealed by a key that the worker lacks', () => {
  it('waits for a worker that has the key, which its record names', async () => {
    const { on, task, mill, ends } = await scene({ seal: { current: '2026-10', keys: { '2026-10': oldKey } } })
    const keyed = on.mill({ seal, tasks: [task] })
    const job = await keyed.enqueue(task, secret)

    expect(await ends('job.released')).toMatchObject({ id: job.id, reason: 'unknown-key', delayMs: 20 })
    const record = await mill.queue('default').jobs.get(job.id)
    expect(record).toMatchObject({ attempt: 1 })
    expect(record).not.toHaveProperty('input')
    expect(record?.error).toMatch(
      /^sealed by key '2026-11', which workers that claimed it lacked from \S+Z to \S+Z\. It is put back until a worker has it, for a day at most\. The last one has the keys '2026-10'\.\ninput was sealed by key '2026-11', this mill has the keys '2026-10'$/,
    )
    await on
      .mill({ tasks: [task] })
      .queue('default')
      .jobs.runNow([job.id])
    expect(await ends('job.completed', on.mill({ seal, tasks: [task] }))).toMatchObject({ id: job.id })
  })

  it('waits in an ordered queue too', async () => {
    const on = await packedStores.memory()
    const mill = on.mill({ seal, tasks: [booking()] })
    await mill.enqueue(booking(), secret, { id: 'a' })
    const bare = on.mill({ tasks: [booking()] })
    const released = nextEvent(bare, 'job.released')
    await bare.worker().start()

    expect(await released).toMatchObject({ id: 'a', reason: 'unknown-key', delayMs: 20 })
    expect((await bare.queue('books').jobs.get('a'))?.error).toMatch(
      /\npayload 1 of 1 \(score [\d.]+\) was sealed by key '2026-11', this mill has no keys$/,
    )
  })

  it('stays in a throttled queue, like a job of another codec', async () => {
    const on = await packedStores.memory()
    const limit = { limit: 5, window: '1s' } as const
    await on.mill({ seal }).throttledQueue('items', limit).push(secret)
    const bare = on.mill({})
    const released = nextEvent(bare, 'job.released')

    expect(await bare.throttledQueue('items', limit).tryPop()).toMatchObject({ wait: expect.any(String) })
    expect(await released).toMatchObject({ queue: 'items', reason: 'unknown-key', delayMs: 30_000 })
  })

  it('has a result that is an error, not undefined', async () => {
    const { on, task, mill, ends } = await scene({ seal })
    const job = await mill.enqueue(task, secret)
    await ends('job.completed')

    await expect(
      on
        .mill({ tasks: [task] })
        .job(task, job.id)
        .result(),
    ).rejects.toMatchObject({
      code: 'codec-failed',
      message: `the result of job '${job.id}' in queue '${task.queue}' cannot be read: it is sealed by key '2026-11', and this mill has no keys.`,
    })
  })
})

describe('keys that are rotated', () => {
  it('step by step leave no job that a worker cannot open', async () => {
    const on = await packedStores.memory()
    const task = defineTask({ name: 'pay' })
    const keys = { '2026-10': oldKey, '2026-11': newKey }
    const steps = [
      {},
      { seal: { keys: { '2026-10': oldKey } } },
      { seal: { current: '2026-10', keys: { '2026-10': oldKey } } },
      { seal: { current: '2026-10', keys } },
      { seal: { current: '2026-11', keys } },
      { seal: { current: '2026-11', keys: { '2026-11': newKey } } },
    ]
    const mills = steps.map((options) => on.mill({ ...options, tasks: [task] }))
    // While a step is rolled out, mills of it and of the one before read what the others have enqueued.
    for (const [i, writer] of mills.entries()) {
      const { id } = await writer.enqueue(task, `step ${i}`)
      for (const reader of mills.slice(Math.max(0, i - 1), i + 2)) {
        const record = await reader.queue('default').jobs.get(id)
        expect(record?.error).toBeUndefined()
        expect(record?.input).toBe(`step ${i}`)
      }
    }
  })
})

describe('a job forged in the store', () => {
  /** The job that is put in, with what another one carries. */
  async function forged(
    options: Omit<MillOptions, 'store'>,
    change: (payload: Uint8Array) => Uint8Array | string,
    codec?: string,
  ) {
    const of = await scene(options)
    const first = await of.mill.enqueue(of.task, secret, { delay: '1h' })
    const store = await of.on.store()
    const { payload } = await storedInput(store, 'default', first.id)
    const job = { id: 'forged', task: 'pay', payload: change(payload as Uint8Array), priority: 0, rememberMs: 1 }
    await store.enqueue([{ callId: randomUUID(), queue: 'default', jobs: [{ ...job, ...(codec && { codec }) }] }])
    return { ...of, event: await of.ends('job.buried') }
  }

  it('is buried if it has the sealed input of another job', async () => {
    const { mill, event } = await forged({ seal }, (payload) => payload, 'json+sealed')
    expect(event).toMatchObject({ id: 'forged', reason: 'bad-payload' })
    const dead = await mill.queue('default').morgue.get('forged')
    expect(dead?.error).toMatch(/CodecError: its seal does not open/)
    expect(dead?.error).toMatch(/\ninput cannot be decoded: its seal does not open by key '2026-11'/)
  })

  it('is buried if it is a zip bomb', async () => {
    const { event } = await forged({}, () => gzipSync(Buffer.alloc(20_000_000)), 'json+gzip')

    expect(event).toMatchObject({
      reason: 'bad-payload',
      error: expect.stringMatching(/more than 16777216 bytes/),
    })
  })

  it('runs if it is not sealed, and is buried if only sealed jobs are accepted', async () => {
    const { event } = await forged({ seal: { ...seal, only: true } }, () => '"from somebody"')

    expect(event).toMatchObject({
      id: 'forged',
      reason: 'bad-payload',
      error: expect.stringMatching(/it is not sealed/),
    })
    const { on, task, ends, mill } = await scene({ seal })
    await on.mill({ tasks: [task] }).enqueue(task, 'from before')
    await ends('job.completed')
    expect(await mill.depths()).toMatchObject([{ dead: 0, processed: 1 }])
  })
})

describe('the limit of a payload', () => {
  it('applies to the stored size: compression makes room', async () => {
    const { on, task, mill } = await scene({ compress: { above: '1kB' }, maxPayloadBytes: 2_000 })
    const roomy = await mill.enqueue(task, 'a'.repeat(100_000))

    expect((await mill.queue('default').jobs.get(roomy.id))?.input).toHaveLength(100_000)
    await expect(on.mill({ maxPayloadBytes: 2_000, tasks: [task] }).enqueue(task, 'a'.repeat(2_000))).rejects.toThrow(
      /the input of a job of task 'pay' takes 2002 bytes, the limit is 2000/,
    )
    const sealing = on.mill({ seal, maxPayloadBytes: 2_000, tasks: [task] })
    await expect(sealing.enqueue(task, 'a'.repeat(1_990))).rejects.toThrow(/takes 2030 bytes, the limit is 2000/)
  })
})
