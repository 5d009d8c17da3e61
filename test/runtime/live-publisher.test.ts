import { beforeEach, expect, it } from 'vitest'
import { Events } from '#src/core/events.js'
import { type LiveBatch, liveBatch } from '#src/core/live-event.js'
import { LivePublisher } from '#src/runtime/live-publisher.js'
import type { LiveMessages } from '#src/stores/contract/live-messages.js'
import { givenSurroundings } from './given-surroundings.js'

/** Messages of a store that the test answers for. */
class FakeMessages implements LiveMessages {
  isWatched = false
  failure: Error | undefined
  asked = 0
  readonly batches: LiveBatch[] = []
  #told = () => {}

  async publish(_: string, message?: string): Promise<boolean> {
    this.asked += 1
    if (this.failure !== undefined) throw this.failure
    if (message !== undefined && this.isWatched) this.batches.push(liveBatch(message)!)
    this.#told()
    return this.isWatched
  }

  watch(): Promise<void> {
    throw new Error('a publisher does not watch')
  }

  async batch(count: number): Promise<LiveBatch[]> {
    while (this.batches.length < count) await new Promise<void>((resolve) => (this.#told = resolve))
    return this.batches
  }
}

let messages: FakeMessages
let events: Events
let mono: number
let publisher: LivePublisher
beforeEach(() => {
  messages = new FakeMessages()
  events = new Events()
  mono = 0
  publisher = new LivePublisher(givenSurroundings({ events, now: () => 1_000, mono: () => mono }), { live: messages })
  publisher.start()
})

const job = { queue: 'video', id: 'a', task: 'encode' }
const claimed = () => events.emit('queue.claimed', { queue: 'video', jobs: 1, worker: 'w' })
const started = (id = 'a') => events.emit('job.started', { ...job, id, attempt: 1, worker: 'w' })
/** Until what was asked is answered. */
const answered = () => new Promise((resolve) => setImmediate(resolve))

it('unwatched: frequent events are not built, and the store is asked once in half a second', async () => {
  for (let n = 0; n < 100; n += 1) claimed()
  await answered()
  expect(messages.asked).toBe(1)
  expect(events.has('job.started') || events.has('job.completed')).toBe(false)
  mono = 499
  claimed()
  await answered()
  expect(messages.asked).toBe(1)
  mono = 500
  claimed()
  await answered()
  expect(messages.asked).toBe(2)
})

it('a process that holds jobs notices a watch without a claim until its last job has ended, and then stops asking', async () => {
  let held = ['video']
  const leave = publisher.holding(() => held)
  claimed()
  await answered()
  messages.isWatched = true
  mono = 500
  await expect.poll(() => messages.asked).toBe(2)
  events.emit('job.completed', { ...job, attempt: 1, runMs: 5 })
  expect((await messages.batch(1))[0]!.events).toMatchObject([{ type: 'job.completed', id: 'a' }])
  messages.isWatched = false
  held = []
  leave()
})

it('a process that claims nothing does not ask', async () => {
  await answered()
  expect(messages.asked).toBe(0)
})

it('the first job claimed after a watch began is reported, with its later events', async () => {
  messages.isWatched = true
  claimed()
  started()
  events.emit('job.progressed', { ...job, attempt: 1, progress: { fraction: 0.5 } })
  events.emit('job.failed', { ...job, attempt: 1, error: new Error('no disk'), retryMs: 10 })
  const [batch] = await messages.batch(1)
  expect(batch).toEqual({
    lost: 0,
    events: [
      { type: 'job.started', at: 1_000, ...job, attempt: 1, worker: 'w' },
      { type: 'job.progressed', at: 1_000, ...job, attempt: 1, progress: { fraction: 0.5 } },
      { type: 'job.failed', at: 1_000, ...job, attempt: 1, error: 'no disk', retryMs: 10 },
    ],
  })
})

it('a rare event asks by itself: a burial without a claim', async () => {
  messages.isWatched = true
  events.emit('job.buried', { ...job, reason: 'crashed', error: undefined })
  expect((await messages.batch(1))[0]!.events).toMatchObject([{ type: 'job.buried', reason: 'crashed' }])
})

it('events beyond the buffer are counted, and the next message says so', async () => {
  messages.isWatched = true
  claimed()
  for (let n = 0; n < 1_200; n += 1) started(String(n))
  const batches = await messages.batch(4)
  expect(batches.map((batch) => [batch.events.length, batch.lost])).toEqual([
    [250, 200],
    [250, 0],
    [250, 0],
    [250, 0],
  ])
})

it('events that the store did not take are counted, and reported when it is back', async () => {
  messages.isWatched = true
  claimed()
  started()
  await messages.batch(1)
  messages.failure = new Error('away')
  const asked = messages.asked
  started('b')
  while (messages.asked === asked) await new Promise((resolve) => setTimeout(resolve, 5))
  messages.failure = undefined
  await answered()
  started('c')
  expect((await messages.batch(2))[1]).toMatchObject({ lost: 1, events: [{ id: 'c' }] })
})

it('when the last watcher has gone, frequent events are no longer built', async () => {
  messages.isWatched = true
  claimed()
  started()
  await messages.batch(1)
  messages.isWatched = false
  const asked = messages.asked
  started('b')
  while (messages.asked === asked) await new Promise((resolve) => setTimeout(resolve, 5))
  await answered()
  expect(events.has('job.started')).toBe(false)
})

it('closing sends the remaining events', async () => {
  messages.isWatched = true
  claimed()
  await answered()
  started()
  await publisher.close()
  expect(messages.batches).toMatchObject([{ events: [{ type: 'job.started' }] }])
  started('b')
  expect(events.has('job.started')).toBe(false)
})

it('a store without live events is left alone', () => {
  const lonely = new Events()
  new LivePublisher(givenSurroundings({ events: lonely }), {}).start()
  expect(lonely.has('queue.claimed')).toBe(false)
})
