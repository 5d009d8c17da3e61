/** Delays, leases and the twelve hours for which SQS hides a message. */

import { describe, expect, it } from 'vitest'
import { sqsScenes } from './sqs-scene.js'

const scene = sqsScenes()
const [second, minute, hour] = [1_000, 60_000, 3_600_000]

describe('a delay beyond the limit of SQS', () => {
  it('uses several messages, and the job runs at its time, to the second, as its first attempt', async () => {
    const { add, claim, advance, calls, sqs, store } = await scene()
    const dueAt = sqs.now() + 40 * minute
    await add([{ id: 'later', delayMs: 40 * minute }])
    for (let passed = 0; passed < 40 * minute; passed += 15 * minute) {
      expect(await claim()).toEqual([])
      expect((await store.depth(['mail'])).depths[0]).toMatchObject({ ready: 0, scheduled: 1 })
      advance(Math.min(15 * minute, 40 * minute - passed - second))
    }
    expect(await claim()).toEqual([])
    advance(second)

    expect(await claim()).toMatchObject([{ id: 'later', attempt: 1, runAt: dueAt, createdAt: dueAt - 40 * minute }])
    expect(calls.byKind.SendMessageBatch).toBe(3)
  })

  it('is kept even if nobody forwarded it in time', async () => {
    const { add, claim, advance } = await scene()
    await add([{ id: 'later', delayMs: 2 * hour }])
    advance(3 * hour)

    expect(await claim()).toMatchObject([{ id: 'later', attempt: 1 }])
  })

  it('continues after a failed forward', async () => {
    const { sqs, add, claim, advance } = await scene()
    await add([{ id: 'later', delayMs: 20 * minute }])
    advance(15 * minute)
    await sqs.inject({ call: 'SendMessageBatch', error: 'InternalError', status: 500, times: 3 })
    expect(await claim()).toEqual([])
    advance(minute)
    expect(await claim()).toEqual([])
    advance(4 * minute)

    expect(await claim()).toMatchObject([{ id: 'later', attempt: 1 }])
  })

  it('is sent on once if SQS delivers it twice, or does not delete it', async () => {
    const { sqs, add, claim, advance, calls } = await scene()
    await add([{ id: 'later', delayMs: 40 * minute }])
    advance(15 * minute)
    await sqs.inject({ call: 'ReceiveMessage', twice: true })
    await sqs.inject({ call: 'DeleteMessageBatch', entries: [0], times: 4 })
    expect(await claim()).toEqual([])
    advance(minute)
    expect(await claim()).toEqual([])
    expect(calls.byKind.SendMessageBatch).toBe(2)
    advance(40 * minute)

    expect(await claim()).toMatchObject([{ id: 'later', attempt: 1 }])
  })

  it('ends its worker if SQS refuses to delete it', async () => {
    const { sqs, add, claim, advance } = await scene()
    await add([{ id: 'later', delayMs: 40 * minute }])
    advance(15 * minute)
    await sqs.inject({ call: 'DeleteMessageBatch', error: 'AccessDenied', status: 403 })
    expect(await claim()).toEqual([])

    await expect(claim()).rejects.toMatchObject({ code: 'store-refused', message: expect.stringMatching(/Delete/) })
    expect(await claim()).toEqual([])
  })
})

describe('a message that nobody can run or that comes early', () => {
  const refused = { error: 'AccessDenied', status: 403 }

  it('ends its worker if SQS refuses to send it on', async () => {
    const { sqs, add, claim, advance } = await scene()
    await add([{ id: 'later', delayMs: 40 * minute }])
    advance(15 * minute)
    await sqs.inject({ call: 'SendMessageBatch', ...refused })
    expect(await claim()).toEqual([])

    await expect(claim()).rejects.toMatchObject({ code: 'store-refused', message: expect.stringMatching(/Send/) })
    advance(minute)
    expect(await claim()).toEqual([])
  })

  it.each([
    ['ends its worker if there is no dead-letter queue', undefined, 'queue-missing'],
    ['does not end it if SQS takes others, but not this one', { MaximumMessageSize: '1024' }, undefined],
  ])('%s', async (_, dead, code) => {
    const { api, store, namespace } = await scene()
    const { QueueUrl = '' } = await api.call('CreateQueue', { QueueName: `${namespace}-bare`, Attributes: {} })
    if (dead !== undefined) await api.call('CreateQueue', { QueueName: `dlq-${namespace}-bare`, Attributes: dead })
    await store.open([{ name: 'bare', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    await api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody: 'x'.repeat(2_000) }] })
    const claim = () => store.claim([{ queue: 'bare', limit: 1 }], { worker: 'w', leaseMs: 30_000 })
    expect((await claim()).claims).toEqual([])

    if (code === undefined) expect((await claim()).claims).toEqual([])
    else await expect(claim()).rejects.toMatchObject({ code })
  })
})

describe('a retry on SQS', () => {
  it('hides the message in place: there is no copy, and each run is an attempt', async () => {
    const { add, claim, settle, advance, calls } = await scene()
    await add([{ id: 'a' }])
    for (const [i, delayMs] of [60, 120, 240, 480].map((seconds) => seconds * second).entries()) {
      const [held] = await claim()
      expect(held).toMatchObject({ attempt: i + 1 })
      await settle(held!, { kind: 'retry', delayMs })
      advance(delayMs - second)
      expect(await claim()).toEqual([])
      advance(second)
    }

    expect(await claim()).toMatchObject([{ attempt: 5 }])
    expect(calls.byKind.SendMessageBatch).toBe(1)
  })

  it('beyond the longest hiding time is sent as a new message, and keeps its attempts and its time', async () => {
    const { add, claim, settle, advance, sqs } = await scene()
    await add([{ id: 'a', payload: '"kept"', meta: '{"m":1}' }])
    const [held] = await claim()
    const dueAt = sqs.now() + 13 * hour
    expect(await settle(held!, { kind: 'retry', delayMs: 13 * hour })).toBe('ok')
    for (let passed = 0; passed < 13 * hour; passed += 15 * minute) {
      expect(await claim()).toEqual([])
      advance(15 * minute)
    }

    expect(await claim()).toMatchObject([{ id: 'a', attempt: 2, payload: '"kept"', meta: '{"m":1}', runAt: dueAt }])
  })
})

describe('a release on SQS', () => {
  it('never counts as an attempt, so that the first failure is the first', async () => {
    const { add, claim, settle, advance, sqs } = await scene()
    await add([{ id: 'a', payload: '"kept"', meta: '{"m":1}' }])
    const createdAt = sqs.now()
    for (let times = 0; times < 5; times += 1) {
      const [held] = await claim()
      expect(held).toMatchObject({ id: 'a', attempt: 1, payload: '"kept"', meta: '{"m":1}', createdAt })
      await settle(held!, { kind: 'release', delayMs: 60 * second })
      advance(59 * second)
      expect(await claim()).toEqual([])
      advance(second)
    }
    const [held] = await claim()
    await settle(held!, { kind: 'retry', delayMs: 0 })
    const [again] = await claim()
    await settle(again!, { kind: 'release', delayMs: 0 })

    expect([held!.attempt, again!.attempt]).toEqual([1, 2])
    expect(await claim()).toMatchObject([{ id: 'a', attempt: 2 }])
  })

  it('that is repeated after a lost answer leaves one job', async () => {
    const { sqs, add, claim, settle } = await scene()
    await add([{ id: 'a' }])
    const [held] = await claim()
    await sqs.inject({ call: 'DeleteMessageBatch', error: 'InternalError', status: 500, times: 3 })
    await expect(settle(held!, { kind: 'release', delayMs: 0 })).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await settle(held!, { kind: 'release', delayMs: 0 })).toBe('ok')

    expect(await claim()).toMatchObject([{ id: 'a', attempt: 1 }])
  })
})

describe('a lease on SQS', () => {
  it('is renewed up to twelve hours after the receive, and reported as lost before that', async () => {
    const { add, claim, advance, store } = await scene()
    await add([{ id: 'a' }])
    const [held] = await claim(1, hour)
    const { queue, id, fence } = held!
    const renew = () => store.extend([{ queue, id, fence, leaseMs: hour }])
    for (let passed = 0; passed < 11.5 * hour; passed += hour / 3) {
      advance(hour / 3)
      expect(await renew()).toEqual([passed < 11.2 * hour ? 'ok' : 'lost'])
    }
    expect(await claim()).toEqual([])
    advance(hour / 3)

    expect(await claim()).toMatchObject([{ id: 'a', attempt: 2 }])
  })

  it('may be the longest that the store has, also for a poll', async () => {
    const { add, claim, store } = await scene()
    const longest = store.traits.maxLeaseMs
    expect(await claim(10, longest)).toEqual([])
    const found = store.wait(['mail'], 20_000, new AbortController().signal)
    await add([{ id: 'a' }])
    expect(await found).toEqual(['mail'])

    expect(await claim(10, longest)).toMatchObject([{ id: 'a' }])
  })

  it('is not shortened, and costs no call if the message is hidden for long enough', async () => {
    const { add, claim, store, calls } = await scene()
    await add([{ id: 'a' }])
    const [held] = await claim(1, minute)
    const { queue, id, fence } = held!
    expect(await store.extend([{ queue, id, fence, leaseMs: 30 * second }])).toEqual(['ok'])

    expect(calls.byKind.ChangeMessageVisibilityBatch).toBeUndefined()
  })

  it('that has ended lets a job complete, and allows nothing else', async () => {
    const { add, claim, settle, advance } = await scene()
    await add([{ id: 'a' }, { id: 'b' }])
    const claims = await claim(10, 5 * second)
    const [a, b] = ['a', 'b'].map((id) => claims.find((held) => held.id === id)!)
    advance(6 * second)

    expect(await settle(a!, { kind: 'complete' })).toBe('ok')
    expect(await settle(b!, { kind: 'bury' })).toBe('lost')
    expect(await settle(b!, { kind: 'complete' })).toBe('gone')
    expect(await claim()).toMatchObject([{ id: 'b', attempt: 2 }])
  })

  it('that has ended is not renewed, and no call about it is made', async () => {
    const { add, claim, store, advance, calls } = await scene()
    await add([{ id: 'a' }])
    const [held] = await claim()
    const { queue, id, fence } = held!
    advance(30 * second)
    for (const leaseMs of [0, minute]) expect(await store.extend([{ queue, id, fence, leaseMs }])).toEqual(['lost'])

    expect(calls.byKind.ChangeMessageVisibilityBatch).toBeUndefined()
    expect(await claim()).toMatchObject([{ id: 'a', attempt: 2 }])
  })

  it('of an abandoned claim ends, and its job is run again by the same process', async () => {
    const { add, claim, advance, settle } = await scene()
    await add([{ id: 'a' }])
    const [first] = await claim(1, 5 * second)
    advance(6 * second)
    const [second_] = await claim(1, 5 * second)

    expect(second_).toMatchObject({ id: 'a', attempt: 2 })
    expect(second_!.fence).toBeGreaterThan(first!.fence)
    expect(await settle(first!, { kind: 'retry', delayMs: 0 })).toBe('lost')
    expect(await settle(second_!, { kind: 'complete' })).toBe('ok')
  })
})

describe('a message received by a poll', () => {
  it('is handed out again if the lease of its abandoned claim ended during the poll', async () => {
    const { add, advance, open } = await scene()
    const pending = [6 * second]
    // It came while the poll was under way, and the lease ended then.
    const store = await open(() => advance(pending.pop() ?? 0))
    const claim = () => store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 5 * second })
    await add([{ id: 'a' }])
    expect((await claim()).claims).toMatchObject([{ id: 'a', attempt: 1 }])
    expect((await claim()).claims).toEqual([])
    expect(await store.wait(['mail'], 1_000, new AbortController().signal)).toEqual(['mail'])

    expect((await claim()).claims).toMatchObject([{ id: 'a', attempt: 2 }])
  })

  it('is not sent anew when the store closes if its time was over and another has run it', async () => {
    const { add, store, open, advance } = await scene()
    const other = await open()
    const claim = () => other.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 30_000 })
    await add([{ id: 'a' }])
    expect(await store.wait(['mail'], 1_000, new AbortController().signal)).toEqual(['mail'])
    advance(36 * second)
    const { claims } = await claim()
    expect(claims).toMatchObject([{ id: 'a' }])
    const { queue, id, fence } = claims[0]!
    expect(await other.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['ok'])
    await store.close()

    expect((await claim()).claims).toEqual([])
  })

  it('is left to the end of its time when the store closes shortly before that', async () => {
    const { add, store, advance, calls } = await scene()
    await add([{ id: 'a' }])
    expect(await store.wait(['mail'], 1_000, new AbortController().signal)).toEqual(['mail'])
    advance(35 * second - 50)
    await store.close()

    expect(calls.byKind.SendMessageBatch).toBe(1)
  })

  it('is put back when the store closes, and others can receive it at once', async () => {
    const { add, store, open } = await scene()
    const other = await open()
    await add([{ id: 'a' }])
    expect(await store.wait(['mail'], 1_000, new AbortController().signal)).toEqual(['mail'])
    await store.close()
    const { claims } = await other.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 30_000 })

    // That it was received by a poll counts as no attempt.
    expect(claims).toMatchObject([{ id: 'a', attempt: 1 }])
  })

  it('is hidden for the whole lease of its claimer, even if it arrived earlier', async () => {
    const { add, claim, store, advance } = await scene()
    await claim()
    await add([{ id: 'a' }])
    await store.wait(['mail'], 1_000, new AbortController().signal)
    advance(4 * second)
    expect(await claim()).toMatchObject([{ id: 'a' }])
    advance(30 * second)

    expect(await claim()).toEqual([])
  })

  it('is put back if nobody claims it within five seconds', async () => {
    const { add, store, open, advance } = await scene()
    const other = await open()
    await add([{ id: 'a' }])
    await store.wait(['mail'], 1_000, new AbortController().signal)
    advance(5 * second)

    expect(await other.wait(['mail'], 20_000, new AbortController().signal)).toEqual(['mail'])
  }, 15_000)
})
