/** Workers and holds: a handler that holds its group beside a result, what obeys it, and an operator who ends it. */
import { defineOrderedTask, defineTask, hold, type JobContext } from 'millrace'
import { describe, expect, it } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

const settled = { timeout: '10s' } as const
type Visit = { readonly host: string; readonly holds?: string }

/** Visits hosts; the answer of some says how long the host is to be left alone. */
function crawler(end: (visit: Visit, ctx: JobContext) => unknown) {
  const seen: string[] = []
  const crawl = defineTask({
    name: 'crawl',
    queue: 'q',
    retry: { max: 0 },
    async run(visit: Visit, ctx): Promise<unknown> {
      seen.push(`${visit.host} ${visit.holds ?? '-'}`)
      return end(visit, ctx)
    },
    group: ({ host }) => host,
  })
  return { crawl, seen }
}

/** It holds the host for as long as the visit says. */
function holding() {
  return crawler((visit, ctx) => {
    if (visit.holds !== undefined) ctx.hold(visit.holds)
    return 'a page'
  })
}

describe.each(storeKinds)('ctx.hold(), on %s', (kind) => {
  it('holds the group of a job that completes, which does not run again; a release ends the hold', async () => {
    const { crawl, seen } = holding()
    const mill = testMill({ tasks: [crawl] }, kind)
    const first = await mill.enqueue(crawl, { host: 'slow', holds: '10m' })
    const worker = mill.worker({ concurrency: 1 })
    await worker.start()
    expect(await first.result(settled)).toBe('a page')

    const [waits, other] = await mill.enqueueMany(crawl, [{ host: 'slow' }, { host: 'fast' }])
    await other!.result(settled)
    const queue = mill.queue('q')
    const { holds, total } = await queue.throttle.holds()
    expect({ holds, total }).toEqual({
      holds: [{ group: 'slow', until: expect.any(Date), forMs: expect.any(Number) }],
      total: 1,
    })
    const record = await waits!.record()
    expect(record).toMatchObject({ state: 'ready', held: { until: expect.any(Date) } })
    expect((await queue.jobs.list({ state: 'ready' })).jobs[0]?.held).toEqual({ until: expect.any(Date) })

    expect(await queue.throttle.release('slow')).toBe(1)
    await waits!.result(settled)
    expect(seen).toEqual(['slow 10m', 'fast -', 'slow -'])
    expect(await queue.throttle.holds()).toEqual({ holds: [], total: 0 })
  })

  it('for a group that an operator has paused starts nothing until it is resumed', async () => {
    const { crawl, seen } = holding()
    const mill = testMill({ tasks: [crawl] }, kind)
    const queue = mill.queue('q')
    await mill.ready()
    await queue.pause({ group: 'slow' })
    const [waits, other] = await mill.enqueueMany(crawl, [{ host: 'slow' }, { host: 'fast' }])
    await mill.worker({ concurrency: 2 }).start()
    await other!.result(settled)

    expect((await queue.depth()).paused).toBe(false)
    expect(await queue.throttle.holds({ group: 'slow' })).toEqual({ holds: [{ group: 'slow' }], total: 1 })
    expect(await waits!.record()).toMatchObject({ state: 'ready', held: { paused: true } })
    await queue.resume({ group: 'slow' })
    await waits!.result(settled)
    expect(seen).toEqual(['fast -', 'slow -'])
  })
})

describe('ctx.hold()', () => {
  it.each<[string, () => unknown, 'job.failed' | 'job.released' | 'job.completed']>([
    ['an error', () => Promise.reject(new Error('full')), 'job.failed'],
    ['an outcome with a shorter hold', () => hold('1s'), 'job.released'],
    ['a result', () => 'done', 'job.completed'],
  ])('works together with %s, and its event carries the duration', async (_, end, name) => {
    const { crawl } = crawler((_visit, ctx) => {
      ctx.hold('5m')
      ctx.hold('10s')
      return end()
    })
    const mill = testMillOn(new MemoryStore(), { tasks: [crawl] })
    const ended = nextEvent(mill, name)
    await mill.enqueue(crawl, { host: 'slow' })
    await mill.worker().start()

    expect(await ended).toMatchObject({ holdMs: 300_000 })
    expect((await mill.queue('q').throttle.holds()).total).toBe(1)
  })

  it('puts jobs that were claimed ahead back in their places, uncounted', async () => {
    const { crawl, seen } = holding()
    const mill = testMillOn(new MemoryStore(), { tasks: [crawl] })
    const released = recorded(mill, 'job.released')
    // Short jobs first: a worker then claims ahead.
    await mill.enqueueMany(
      crawl,
      Array.from({ length: 200 }, () => ({ host: 'fast' })),
    )
    await mill.enqueueMany(crawl, [
      { host: 'slow', holds: '10m' },
      ...Array.from({ length: 20 }, () => ({ host: 'slow' })),
    ])
    const done = nextEvent(mill, 'job.completed', () => seen.filter((one) => one === 'fast -').length === 200)
    await mill.worker({ concurrency: 1 }).start()
    await done

    expect(seen.filter((one) => one.startsWith('slow'))).toEqual(['slow 10m'])
    expect(new Set(released.map(({ reason }) => reason))).not.toContain('no-slot')
    await expect.poll(async () => (await mill.queue('q').depth()).ready).toBe(20)
  })

  it('in a batch holds the group of each of its jobs', async () => {
    const sync = defineOrderedTask({
      name: 'sync',
      batchSize: 2,
      group: (id) => String(id)[0]!,
      run: (_, ctx) => ctx.hold('1h'),
    })
    const mill = testMillOn(new MemoryStore(), { tasks: [sync], queues: { sync: { shards: 1 } } })
    await mill.enqueueMany(sync, [1, 2], (_, i) => ({ id: ['a1', 'b1'][i]! }))
    const ended = nextEvent(mill, 'job.completed', ({ id }) => id === 'b1')
    await mill.worker({ concurrency: 1 }).start()
    await ended

    expect((await mill.queue('sync').throttle.holds()).holds.map(({ group }) => group)).toEqual(['a', 'b'])
  })

  it("on a listener's claim is sent with the call that settles it", async () => {
    const film = defineTask({ name: 'film', queue: 'video', group: ({ host }: Visit) => host })
    const mill = testMillOn(new MemoryStore(), { tasks: [film] })
    await mill.enqueue(film, { host: 'slow' })
    const listener = mill.listener('video')
    const claim = (await listener.next())!
    claim.hold('20s')
    expect((await mill.queue('video').throttle.holds()).total).toBe(0)
    await claim.complete()

    expect((await mill.queue('video').throttle.holds()).holds).toMatchObject([{ group: 'slow' }])
    await listener.close()
  })

  it('is refused after the run has ended', async () => {
    let late: JobContext | undefined
    const { crawl } = crawler((_visit, ctx) => {
      late = ctx
    })
    const mill = testMillOn(new MemoryStore(), { tasks: [crawl] })
    const ended = nextEvent(mill, 'job.completed')
    await mill.enqueue(crawl, { host: 'slow' })
    await mill.worker().start()
    await ended

    expect(() => late!.hold('10s')).toThrow(expect.objectContaining({ code: 'argument-invalid' }))
  })
})

describe('an operator', () => {
  it.each([[{ group: '' }], [{}], ['slow'], [{ group: 'slow', queue: 'q' }], [{ group: {} }]])(
    'cannot pause %o',
    async (choice) => {
      const { crawl } = holding()
      const mill = testMillOn(new MemoryStore(), { tasks: [crawl] })

      await expect(mill.queue('q').pause(choice as never)).rejects.toMatchObject({ code: 'argument-invalid' })
      await expect(mill.queue('q').resume(choice as never)).rejects.toMatchObject({ code: 'argument-invalid' })
      expect((await mill.queue('q').depth()).paused).toBe(false)
    },
  )
})
