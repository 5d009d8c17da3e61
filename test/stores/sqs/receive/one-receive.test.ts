/** Several messages of a group in one receive, and one that comes again. */

import { ManualClock } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SqsMessage } from '#src/stores/sqs/client/sqs-api.js'
import { message, storeWith } from './batching-service.js'

describe('several messages of a group in one receive', () => {
  it('are claimed one after the other in a plain queue', async () => {
    const { store, claim } = await storeWith([message(1), message(2), message(3, 'h')], { fifo: true })
    const first = await claim()
    expect(first.map(({ id }) => id)).toEqual(['job-1', 'job-3'])
    expect(await claim()).toEqual([])
    await store.settle([{ queue: 'q', id: 'job-1', fence: first[0]!.fence, kind: 'complete' }])

    expect((await claim()).map(({ id }) => id)).toEqual(['job-2'])
    await store.close()
  })

  it('go back behind the one that is retried', async () => {
    const { store, sent, claim } = await storeWith([message(1), message(2), message(3)], { fifo: true })
    const [first] = await claim()
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'retry', delayMs: 60_000 }])
    expect(await claim()).toEqual([])
    await store.close()

    const changes = sent.filter(([kind]) => kind === 'ChangeMessageVisibilityBatch').flatMap(([, entries]) => entries)
    // Those behind were hidden for longer while they waited.
    expect(changes).toEqual(['r2 35', 'r3 35', 'r1 60', 'r2 0', 'r3 0'])
  })

  it('use no attempt when they go back behind one that is retried', async () => {
    const messages: SqsMessage[] = []
    const { store, claim } = await storeWith(messages, { fifo: true })
    const received = (...them: [number, number][]) =>
      messages.push(...them.map(([n, receives]) => message(n, 'g', {}, receives)))
    const settle = async (how: { kind: 'complete' } | { kind: 'retry'; delayMs: number }) => {
      const [{ id, fence, attempt }] = (await claim()) as [Claim]
      await store.settle([{ queue: 'q', id, fence, ...how }])
      return `${id} ${attempt}`
    }
    const retry = { kind: 'retry', delayMs: 0 } as const
    received([1, 1], [2, 1])
    expect(await settle(retry)).toBe('job-1 1')
    received([1, 2], [2, 2])
    expect(await settle(retry)).toBe('job-1 2')
    received([1, 3], [2, 3])
    expect(await settle({ kind: 'complete' })).toBe('job-1 3')
    expect(await settle(retry)).toBe('job-2 1')
    received([2, 4])

    expect(await settle({ kind: 'complete' })).toBe('job-2 2')
    await store.close()
  })

  it('use no attempt when they come before their time', async () => {
    const messages = [message(1, 'g', { dueAt: Date.now() + 600_000 })]
    const { store, claim } = await storeWith(messages, { fifo: true })
    expect(await claim()).toEqual([])
    messages.push(message(1, 'g', {}, 2))

    expect(await claim()).toMatchObject([{ id: 'job-1', attempt: 1 }])
    await store.close()
  })

  it('use no attempt when SQS refuses to hide them for their claim', async () => {
    const messages = [message(1)]
    const { store, claim, voidReceipts } = await storeWith(messages, { fifo: true })
    expect(await store.wait(['q'], 1_000, new AbortController().signal)).toEqual(['q'])
    voidReceipts.add('r1')
    expect(await claim(60_000)).toEqual([])
    voidReceipts.clear()
    messages.push(message(1, 'g', {}, 2))

    expect(await claim(60_000)).toMatchObject([{ id: 'job-1', attempt: 1 }])
    await store.close()
  })

  it('use no attempt when nobody claims them in time', async () => {
    const messages = [message(1)]
    const clock = new ManualClock(Date.now())
    const { store, claim } = await storeWith(messages, { fifo: true }, clock)
    const wait = () => store.wait(['q'], 1_000, new AbortController().signal)
    expect(await wait()).toEqual(['q'])
    clock.advance(36_000)
    messages.push(message(1, 'g', {}, 2))
    expect(await wait()).toEqual(['q'])

    expect(await claim()).toMatchObject([{ id: 'job-1', attempt: 1 }])
    await store.close()
  })

  it('use no attempt when another of their group comes before they are claimed', async () => {
    const messages = [message(2)]
    const clock = new ManualClock(Date.now())
    const { store, claim } = await storeWith(messages, { fifo: true }, clock)
    const wait = () => store.wait(['q'], 1_000, new AbortController().signal)
    expect(await wait()).toEqual(['q'])
    messages.push(message(1))
    expect(await wait()).toEqual(['q'])
    const [first] = await claim()
    expect(first).toMatchObject({ id: 'job-1', attempt: 1 })
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'complete' }])
    messages.push(message(2, 'g', {}, 2))

    expect(await claim()).toMatchObject([{ id: 'job-2', attempt: 1 }])
    await store.close()
  })

  it('stay in order if the first of them is too heavy for the claim', async () => {
    const heavy = ['a', 'b', 'c', 'd'].map((group, i) => message(i + 1, group, { payload: 'x'.repeat(262_144) }))
    const { store, claim } = await storeWith([...heavy, message(5), message(6)], { fifo: true })
    expect((await claim()).map(({ id }) => id)).toEqual(['job-1', 'job-2', 'job-3', 'job-4'])

    expect((await claim()).map(({ id }) => id)).toEqual(['job-5'])
    await store.close()
  })

  it.each<[string, Partial<QueueSettings>]>([
    ['a plain queue', { fifo: true }],
    ['an ordered queue', { kind: 'ordered' }],
  ])('go back behind one that comes before its time, in %s', async (_, settings) => {
    const early = message(1, 'g', { dueAt: Date.now() + 600_000 })
    const { store, sent, claim } = await storeWith([early, message(2), message(3, 'h'), message(4)], settings)
    expect((await claim()).map(({ id }) => id)).toEqual(['job-3'])
    expect(await claim()).toEqual([])
    await store.close()

    const changes = sent.filter(([kind]) => kind === 'ChangeMessageVisibilityBatch').flatMap(([, entries]) => entries)
    expect(changes).toEqual(['r1 600', 'r2 0', 'r4 0'])
  })

  it('go back if the next of them can no longer be hidden, and none overtakes it', async () => {
    const messages = [message(1), message(2), message(3), message(4)]
    const { store, sent, claim, voidReceipts } = await storeWith(messages, { fifo: true })
    const [first] = await claim()
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'complete' }])
    voidReceipts.add('r2')
    // A longer lease: the message must be hidden for longer before it is handed out. Two claims come at the same time.
    expect(await Promise.all([claim(60_000), claim(60_000)])).toEqual([[], []])
    expect(await claim(60_000)).toEqual([])
    await store.close()

    const changes = sent.filter(([kind]) => kind === 'ChangeMessageVisibilityBatch').flatMap(([, entries]) => entries)
    expect(changes.slice(3)).toEqual(['r2 60', 'r3 0', 'r4 0'])
  })

  it('are handed to an ordered task together, and only the oldest is buried after the last attempt', async () => {
    const { store, sent, claim } = await storeWith([message(1), message(2), message(3)], { kind: 'ordered' })
    const [held, ...others] = await claim()
    expect(others).toEqual([])
    expect(held!.payloads!.map(({ payload }) => payload)).toEqual(['1', '2', '3'])
    expect(held!.payloads!.map(({ score }) => score)).toEqual([1_000, 1_000.001, 1_000.002])
    const how = { kind: 'retry', delayMs: 0, last: true, reason: 'max-retries' } as const
    expect(await store.settle([{ queue: 'q', id: held!.id, fence: held!.fence, ...how }])).toEqual(['ok'])
    await store.close()

    expect(sent.map(([kind]) => kind)).toEqual([
      ...['SendMessageBatch', 'DeleteMessageBatch', 'ChangeMessageVisibilityBatch'],
    ])
    expect(sent.slice(1).map(([, entries]) => entries)).toEqual([['r1'], ['r2 0', 'r3 0']])
  })

  it.each([
    ['is retried', { kind: 'retry', delayMs: 60_000 }, ['r1 r2', 'r3 60']],
    ['is released', { kind: 'release', delayMs: 0 }, ['r1 r2', 'r3 0']],
    ['is buried', { kind: 'bury', reason: 'broken' }, ['r1 r2', 'r3']],
  ] as const)('have the finished ones deleted before the rest %s', async (_, how, ends) => {
    const { store, sent, claim } = await storeWith([message(1), message(2), message(3)], { kind: 'ordered' })
    const [held] = await claim()
    expect(await store.settle([{ queue: 'q', id: held!.id, fence: held!.fence, ...how, done: 2 }])).toEqual(['ok'])
    await store.close()

    const changes = sent.filter(([kind]) => kind !== 'SendMessageBatch').map(([, entries]) => entries.join(' '))
    expect(changes).toEqual(ends)
  })
})

it('a message of a standard queue that comes again before it is claimed is claimed once', async () => {
  const messages = [message(1)]
  const clock = new ManualClock(Date.now())
  const { store, claim } = await storeWith(messages, {}, clock)
  const wait = () => store.wait(['q'], 1_000, new AbortController().signal)
  expect(await wait()).toEqual(['q'])
  // The process was suspended until the message was visible again. SQS may take a receipt from before.
  clock.advance(36_000)
  messages.push(message(1, 'g', {}, 2))
  expect(await wait()).toEqual(['q'])

  expect(await claim()).toMatchObject([{ id: 'job-1', attempt: 2 }])
  await store.close()
})

it('a message of a standard queue whose time is over before it is claimed is left to its next receiver', async () => {
  const clock = new ManualClock(Date.now())
  const { store, sent, claim } = await storeWith([message(1)], {}, clock)
  expect(await store.wait(['q'], 1_000, new AbortController().signal)).toEqual(['q'])
  // The process was suspended until the message was visible again, and another has it. SQS may take a receipt from before.
  clock.advance(36_000)

  expect(await claim()).toEqual([])
  await store.close()
  expect(sent).toEqual([])
})

it('a message of a standard queue that comes again while it is hidden for its claim is claimed once', async () => {
  const messages = [message(1)]
  const clock = new ManualClock(Date.now())
  const { store, claim } = await storeWith(messages, {}, clock)
  const wait = () => store.wait(['q'], 1_000, new AbortController().signal)
  expect(await wait()).toEqual(['q'])
  clock.advance(34_000)
  messages.push(message(1, 'g', {}, 2))
  const first = claim()
  // The process was suspended before the call was answered.
  clock.advance(2_000)
  expect(await wait()).toEqual(['q'])

  expect([...(await first), ...(await claim())]).toMatchObject([{ id: 'job-1', attempt: 2 }])
  await store.close()
})
