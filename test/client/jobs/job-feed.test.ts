/** The feed of a job: from its present state to its end, with no end missed, on every store that keeps records. */

import { defineOrderedTask, defineTask, type JobEvent } from 'millrace'
import { testMill as drainedMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent } from '../../next-event.js'
import { testMill, testMillOn } from '../../test-mill.js'
import { fatal, followedMill, followJobs } from './followed-jobs.js'

it.each(['memory', 'sqlite', 'redis', 'postgres'] as const)(
  'each of 48 jobs on %s that is followed from a random moment of its life on is seen to end once, as it did',
  { timeout: 60_000 },
  async (kind) => {
    const { wrong, inTime } = await followJobs(await followedMill(kind), 48, 4711)

    expect(wrong).toEqual([])
    expect(inTime).toBeGreaterThan(5)
  },
)

async function all(feed: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const events: JobEvent[] = []
  for await (const event of feed) events.push(event)
  return events
}

describe('the feed of a job', () => {
  /** A task that waits until the test says so, and then until it is aborted. */
  function gated() {
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const task = defineTask({
      name: 'gated',
      async run(_: unknown, ctx) {
        ctx.log('begun')
        ctx.progress(0.5, 'half')
        await ctx.fields.set({ node: 'eu-3' })
        await gate
        ctx.log('done')
        return 7
      },
    })
    return { task, open }
  }

  it('begins with the present state, tells progress, fields and log, and ends with the result', async () => {
    const { task, open } = gated()
    const m = testMill({ tasks: [task] })
    const job = await m.enqueue(task, {})
    const events: JobEvent[] = []
    const logs: string[] = []
    for await (const event of job.events()) {
      if (events.length === 0) void m.worker().start()
      events.push(event)
      if (event.type === 'log') logs.push(event.text)
      if (event.type === 'job' && event.job.progress !== undefined && event.job.fields !== undefined) open()
    }

    expect(events[0]).toMatchObject({ type: 'job', job: { state: 'ready', attempt: 1 } })
    expect(events).toContainEqual(
      expect.objectContaining({
        job: expect.objectContaining({
          state: 'running',
          progress: { fraction: 0.5, note: 'half' },
          fields: { node: 'eu-3' },
        }),
      }),
    )
    expect(logs.join('')).toBe('begun\ndone\n')
    expect(events.some((event) => event.type === 'job' && 'log' in event.job)).toBe(false)
    expect(events.at(-1)).toMatchObject({ type: 'end', state: 'completed', job: { result: 7 } })
  })

  it('ends at once, without saying how, if nothing is kept of the job', async () => {
    const { task } = gated()
    const m = testMill({ tasks: [task] })

    expect(await all(m.job('never').events())).toEqual([{ type: 'end', state: undefined }])
    expect(await all(m.job(task, 'never').events())).toEqual([{ type: 'end', state: undefined }])
  })

  it('finds the queue of a handle by id alone, and tells the result of its job', async () => {
    const task = defineTask({ name: 't', queue: 'other', run: async () => 7 })
    const m = testMill({ tasks: [task], queues: { default: {}, other: {} } })
    const { id } = await m.enqueue(task, {})
    const job = m.job(id)
    const feed = job.events()
    expect(await feed.next()).toMatchObject({ value: { type: 'job', job: { state: 'ready' } } })
    const rest = all(feed)
    await m.worker().start()

    expect((await rest).at(-1)).toMatchObject({ type: 'end', state: 'completed', job: { result: 7 } })
  })

  it('knows that a job has completed of which nothing is kept, if it has seen it before', async () => {
    const task = defineTask({ name: 't', run: async () => {} })
    const m = testMill({ tasks: [task], queues: { default: { retention: { results: 'none' } } } })
    const job = await m.enqueue(task, {})
    const feed = job.events()
    await feed.next()
    const rest = all(feed)
    await m.worker().start()

    expect((await rest).at(-1)).toEqual({ type: 'end', state: 'completed' })
  })

  it('tells an end at once: it does not wait for its next look', async () => {
    const { task, open } = gated()
    open()
    const mill = drainedMill({ tasks: [task] })
    const job = await mill.enqueue(task, {})
    const feed = job.events()
    await feed.next()
    // No look comes by itself from now on.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const rest = all(feed)
    await mill.drain()

    expect((await rest).at(-1)).toMatchObject({ type: 'end', state: 'completed' })
  })

  it('ends without knowing how if the job is deleted', async () => {
    const { task } = gated()
    const m = testMill({ tasks: [task] })
    const job = await m.enqueue(task, {})
    const feed = job.events()
    await feed.next()
    const rest = all(feed)
    await m.queue('default').jobs.delete([job.id])

    expect(await rest).toEqual([{ type: 'end', state: undefined }])
  })

  it('says at once of a job in the morgue that it is dead, and why', async () => {
    const m = testMill({ tasks: [fatal] })
    const job = await m.enqueue(fatal, { fate: 'buried' })
    const buried = nextEvent(m, 'job.buried')
    await m.worker().start()
    await buried
    const [first, ...rest] = await all(job.events())

    expect(first).toMatchObject({ type: 'job', job: { state: 'dead', reason: 'of no use' } })
    expect(rest.at(-1)).toMatchObject({ type: 'end', state: 'dead', job: { reason: 'of no use' } })
  })

  it('ends for an ordered id once no job of it waits or runs', async () => {
    const sync = defineOrderedTask({
      name: 'sync',
      run: async (_: ReadonlyMap<string, readonly { rev: number }[]>) => {},
    })
    const m = testMill({ tasks: [sync] })
    const job = await m.enqueue(sync, { rev: 1 }, { id: 'a' })
    const feed = job.events()
    expect(await feed.next()).toMatchObject({ value: { job: { state: 'ready', payloadCount: 1 } } })
    const rest = all(feed)
    await m.worker().start()

    expect((await rest).at(-1)).toMatchObject({ type: 'end', state: undefined })
  })

  it.each(['a signal that aborts', 'mill.close()', 'return()'])(
    'is ended at once by %s, without an end',
    async (by) => {
      const { task } = gated()
      const m = testMill({ tasks: [task] })
      const job = await m.enqueue(task, {})
      const over = new AbortController()
      const feed = job.events({ signal: over.signal })
      await feed.next()
      const next = feed.next()
      if (by === 'return()') void feed.return(undefined)
      else if (by === 'mill.close()') void m.close()
      else over.abort()

      expect(await next).toEqual({ done: true, value: undefined })
      expect(await all(job.events({ signal: AbortSignal.abort() }))).toEqual([])
    },
  )

  it('waits while the store is away, and misses no end', async () => {
    const { task, open } = gated()
    open()
    const mill = drainedMill({ tasks: [task] })
    const job = await mill.enqueue(task, {})
    const begun = job.events()
    await begun.next()
    const isBack = mill.outage()
    const feeds = [all(begun), all(job.events())]
    await expect(job.status()).rejects.toMatchObject({ code: 'store-unavailable' })
    isBack()
    await mill.drain()

    for (const events of await Promise.all(feeds))
      expect(events.at(-1)).toMatchObject({ type: 'end', state: 'completed', job: { result: 7 } })
  })

  it('holds nothing once its loop is left: neither a watch nor a kept result', async () => {
    const { task } = gated()
    const store = new MemoryStore()
    const watches = new Set<AbortSignal>()
    const told: [string, number][] = []
    const { records } = store
    const [watch, expects] = [records.watch.bind(records), records.expect.bind(records)]
    Object.assign(records, {
      watch: (jobs: never, forMs: number, signal: AbortSignal) => {
        watches.add(signal)
        return watch(jobs, forMs, signal).finally(() => watches.delete(signal))
      },
      expect: (jobs: never[], by: string, forMs: number) => {
        told.push([by, forMs])
        return expects(jobs, by, forMs)
      },
    })
    const m = testMillOn(store, { tasks: [task] })
    const job = await m.enqueue(task, {})
    for await (const event of job.events()) {
      expect(event.type).toBe('job')
      break
    }
    expect(watches.size).toBe(0)
    await expect.poll(() => told.map(([, forMs]) => forMs)).toEqual([60_000, 0])
  })

  it('is refused in a handler of the same queue, which would wait for ever once every slot waits', async () => {
    const child = defineTask({ name: 'child', run: async () => {} })
    const parent = defineTask({
      name: 'parent',
      retry: { max: 0 },
      run: async (_: unknown, ctx) => all((await ctx.enqueue(child)).events()),
    })
    const m = testMill({ tasks: [child, parent] })
    const job = await m.enqueue(parent, {})
    await m.worker().start()

    await expect(job.result()).rejects.toThrow('a handler must not wait for the result of job')
  })

  it('refuses an unknown option', async () => {
    const { task } = gated()
    const m = testMill({ tasks: [task] })
    const job = await m.enqueue(task, {})

    expect(() => job.events({ buffer: 3 } as object)).toThrow(/events.*buffer/s)
  })
})
