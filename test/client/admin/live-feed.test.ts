import { defineTask } from 'millrace'
import type { Store } from 'millrace/store'
import { beforeEach, expect, it } from 'vitest'
import { LiveFeed, liveFeed } from '#src/client/admin/live-feed.js'
import { StoreCorruptError, StoreUnavailableError } from '#src/core/errors.js'
import { nextEvent } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'

let hear: (message: string | undefined) => void
let failures: Error[]
let watches: AbortSignal[]
let feed: LiveFeed
const closing = new AbortController()

beforeEach(() => {
  failures = []
  watches = []
  feed = new LiveFeed('video', async () => store, [closing.signal], 3, 0)
})

const store = {
  traits: { name: 'test' },
  live: {
    publish: async () => true,
    async watch(_: string, heard: typeof hear, signal: AbortSignal) {
      const failure = failures.shift()
      if (failure !== undefined) throw failure
      hear = heard
      watches.push(signal)
    },
  },
} as unknown as Store

function tell(ids: readonly string[], lost = 0): void {
  const events = ids.map((id) => ({
    type: 'job.started',
    at: 5,
    queue: 'video',
    id,
    task: 't',
    attempt: 1,
    worker: 'w',
  }))
  hear(JSON.stringify({ events, lost }))
}

const idOf = async () => {
  const { value } = await feed.next()
  return value?.type === 'events.lost' ? `lost ${value.count ?? 'some'}` : (value as { id?: string } | undefined)?.id
}

it('events arrive one by one, in order, with their time as a Date', async () => {
  const first = feed.next()
  await feed.ready()
  tell(['a', 'b'])
  expect(await first).toEqual({
    done: false,
    value: { type: 'job.started', at: new Date(5), queue: 'video', id: 'a', task: 't', attempt: 1, worker: 'w' },
  })
  expect(await idOf()).toBe('b')
})

it('a slow reader learns how many events it lost, at the place where they are missing', async () => {
  await feed.ready()
  tell(['a', 'b', 'c', 'd', 'e'])
  tell(['f'])
  expect([await idOf(), await idOf()]).toEqual(['a', 'b'])
  tell(['g'])
  expect([await idOf(), await idOf(), await idOf()]).toEqual(['c', 'lost 3', 'g'])
})

it('events lost on the way are reported, with a count if it is known', async () => {
  await feed.ready()
  tell(['a'], 7)
  expect([await idOf(), await idOf()]).toEqual(['lost 7', 'a'])
})

it('a gap of unknown size, or an unreadable event, is reported without a count', async () => {
  await feed.ready()
  hear(undefined)
  expect(await idOf()).toBe('lost some')
  hear('{"v":2}')
  expect(await idOf()).toBe('lost some')
})

it('a feed ends with its signal, with return() and with the loop, and stops watching', async () => {
  for (const end of ['signal', 'return', 'loop'] as const) {
    const own = new AbortController()
    const one = liveFeed('video', async () => store, closing.signal, { signal: own.signal })
    const waiting = one.next()
    await one.ready()
    if (end === 'signal') own.abort()
    else if (end === 'return') await one.return()
    else {
      tell(['a'])
      await waiting
      tell(['b'])
      for await (const _ of one) break
    }
    if (end !== 'loop') expect(await waiting).toEqual({ done: true, value: undefined })
    expect(await one.next()).toEqual({ done: true, value: undefined })
    expect(watches.at(-1)!.aborted).toBe(true)
  }
  expect((await liveFeed('video', async () => store, AbortSignal.abort(), {}).next()).done).toBe(true)
})

it('a feed waits for a store that is away at first', async () => {
  failures.push(new StoreUnavailableError('away'))
  await feed.ready()
  tell(['a'])
  expect(await idOf()).toBe('a')
})

it('a permanent store error is thrown once, and then the feed has ended', async () => {
  failures.push(new StoreCorruptError('damaged'))
  await expect(feed.next()).rejects.toThrow('damaged')
  expect(await feed.next()).toEqual({ done: true, value: undefined })
})

it('an invalid buffer and a store without live events are refused', async () => {
  for (const buffer of [0, 1.5, -1, Number.NaN, 'a' as never])
    expect(() => liveFeed('video', async () => store, undefined, { buffer })).toThrow(/buffer/)
  const none = liveFeed('video', async () => ({ traits: { name: 'sqs' } }) as Store, undefined, {})
  await expect(none.next()).rejects.toMatchObject({ code: 'unsupported-by-store' })
})

it('closing the mill ends its feeds', async () => {
  const mill = testMill({ queues: { video: {} } })
  const one = mill.queue('video').events()
  await one.ready()
  const waiting = one.next()
  await mill.close()
  expect(await waiting).toEqual({ done: true, value: undefined })
})

it.each(storeKinds)('a ready feed reports the end of a job that was already running, on %s', async (kind) => {
  let end = () => {}
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  const task = defineTask({ name: 'slow', run: () => over })
  const m = testMill({ tasks: [task] }, kind)
  await m.worker().start()
  const started = nextEvent(m, 'job.started')
  const job = await m.enqueue(task, {})
  await started
  const late = m.queue('default').events()
  await late.ready()
  end()

  expect((await late.next()).value).toMatchObject({ type: 'job.completed', id: job.id })
  await late.return()
})

it('a ready feed reports the end of a job that a listener holds', async () => {
  const long = defineTask({ name: 'long' })
  const m = testMill({ tasks: [long] })
  const job = await m.enqueue(long, {})
  const listener = m.listener('default')
  const claim = await listener.next()
  const late = m.queue('default').events()
  await late.ready()
  await claim.complete()

  expect((await late.next()).value).toMatchObject({ type: 'job.completed', id: job.id })
  await late.return()
})
