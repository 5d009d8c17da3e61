/** What goes wrong between the store and SQS, and what comes of it. */

import { describe, expect, it } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import { sqsScenes } from './sqs-scene.js'

const scene = sqsScenes()
const ids = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `job-${i}` }))
const idsOf = (claims: readonly { readonly id: string }[]) => claims.map(({ id }) => id).sort()

describe('a batch with failing entries', () => {
  it('is sent again with those entries only, and every job exists once', async () => {
    const { sqs, add, claim, calls } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', entries: [1, 3] })
    await add(ids(5))

    expect(calls.byKind.SendMessageBatch).toBe(2)
    expect(idsOf(await claim())).toEqual(idsOf(ids(5)))
  })

  it('is refused for entries that SQS will never accept, and a repeat sends only those', async () => {
    const { sqs, add, claim } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', entries: [0], senderFault: true, code: 'InvalidMessageContents' })
    await expect(add(ids(3), 'call')).rejects.toMatchObject({ code: 'store-refused' })
    await add(ids(3), 'call')

    expect(idsOf(await claim())).toEqual(idsOf(ids(3)))
  })

  it('fails as unavailable if entries fail again and again, and a repeat sends only those', async () => {
    const { sqs, add, claim } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', entries: [2], times: 1 })
    await sqs.inject({ call: 'SendMessageBatch', entries: [0], times: 3 })
    await expect(add(ids(3), 'call')).rejects.toMatchObject({ code: 'store-unavailable', inDoubt: false })
    await add(ids(3), 'call')

    expect(idsOf(await claim())).toEqual(idsOf(ids(3)))
  })

  it('deletes what it can at once, and the others with the next call', async () => {
    const { sqs, add, claim, store, advance } = await scene()
    await add(ids(4))
    const claims = await claim()
    await sqs.inject({ call: 'DeleteMessageBatch', entries: [0, 2] })
    const answers = await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
    advance(60_000)

    expect(answers).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(await claim()).toEqual([])
  })
})

describe('a call that is too long for the service', () => {
  const large = (count: number, bytes = 90_000) =>
    ids(count).map((job) => ({ ...job, payload: JSON.stringify('x'.repeat(bytes)) }))

  it('is sent in halves, and later calls are shorter from the start', async () => {
    const { sqs, add, claim, calls } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', error: 'BatchRequestTooLong', status: 400 })
    await add(large(4))
    // One that was refused, and its halves.
    expect(calls.byKind.SendMessageBatch).toBe(3)
    await add(large(4, 80_000).map(({ id, payload }) => ({ id: `next-${id}`, payload })))

    expect(calls.byKind.SendMessageBatch).toBe(5)
    expect(await claim()).toHaveLength(8)
  })

  it('with a single message is refused for its size, and the other messages are sent', async () => {
    const { sqs, add, claim } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', error: 'BatchRequestTooLong', status: 400, times: 2 })

    // The first half of two is one message.
    await expect(add(large(2), 'call')).rejects.toMatchObject({ code: 'payload-too-large' })
    expect(idsOf(await claim())).toEqual(['job-1'])
  })
})

describe('a batch of heartbeats or retries with failing entries', () => {
  const keys = (claims: readonly Claim[]) => claims.map(({ queue, id, fence }) => ({ queue, id, fence }))

  it('is sent again with those entries only, and every lease is renewed', async () => {
    const { sqs, add, claim, store, calls, advance } = await scene()
    await add(ids(4))
    const claims = await claim(10, 30_000)
    advance(20_000)
    await sqs.inject({ call: 'ChangeMessageVisibilityBatch', entries: [0, 3] })
    expect(await store.extend(keys(claims).map((key) => ({ ...key, leaseMs: 30_000 })))).toEqual(Array(4).fill('ok'))
    advance(20_000)

    expect(calls.byKind.ChangeMessageVisibilityBatch).toBe(2)
    expect(await claim()).toEqual([])
  })

  it('is answered entry by entry: one with a void receipt is lost, and the others are not', async () => {
    const { sqs, add, claim, store } = await scene()
    await add(ids(3))
    const claims = await claim()
    const isVoid = { entries: [1], senderFault: true, code: 'ReceiptHandleIsInvalid' }
    await sqs.inject({ call: 'ChangeMessageVisibilityBatch', ...isVoid })
    expect(await store.extend(keys(claims).map((key) => ({ ...key, leaseMs: 60_000 })))).toEqual(['ok', 'lost', 'ok'])
    await sqs.inject({ call: 'ChangeMessageVisibilityBatch', ...isVoid })
    const retried = await store.settle(keys(claims).map((key) => ({ ...key, kind: 'retry', delayMs: 0 })))

    expect(retried).toEqual(['ok', 'lost', 'ok'])
    expect(idsOf(await claim())).toEqual([claims[0]!.id, claims[2]!.id].sort())
  })
})

describe('a call that fails as a whole', () => {
  it('settles nothing, and can be repeated', async () => {
    const { sqs, add, claim, settle, advance } = await scene()
    await add(ids(1))
    const [held] = await claim()
    await sqs.inject({ call: 'DeleteMessageBatch', error: 'InternalError', status: 500, times: 3 })
    await expect(settle(held!, { kind: 'complete' })).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await settle(held!, { kind: 'complete' })).toBe('ok')
    advance(60_000)

    expect(await claim()).toEqual([])
  })

  it('keeps its partial success when it is repeated with the others', async () => {
    const { sqs, add, claim, store } = await scene()
    await add(ids(2))
    const [a, b] = await claim()
    await sqs.inject({ call: 'ChangeMessageVisibilityBatch', error: 'InternalError', status: 500, times: 3 })
    const items = [
      { queue: 'mail', id: a!.id, fence: a!.fence, kind: 'complete' as const },
      { queue: 'mail', id: b!.id, fence: b!.fence, kind: 'retry' as const, delayMs: 0 },
    ]
    await expect(store.settle(items)).rejects.toMatchObject({ code: 'store-unavailable' })

    expect(await store.settle(items)).toEqual(['ok', 'ok'])
    expect(idsOf(await claim())).toEqual([b!.id])
  })

  it('is repeated by the SDK after throttling, and fails as not carried out if that goes on', async () => {
    const { sqs, add } = await scene()
    const refused = { call: 'SendMessageBatch', error: 'ThrottlingException', status: 400 }
    await sqs.inject({ ...refused, times: 1 })
    await add(ids(1))
    await sqs.inject({ ...refused, times: 3 })
    await expect(add(ids(1))).rejects.toMatchObject({ code: 'store-unavailable', inDoubt: false })
  })

  it.each([
    ['ServiceUnavailable', 503, 3, 'ServiceUnavailable'],
    ['InternalError', 500, 3, 'InternalError'],
    ['ExpiredToken', 403, 1, 'the credentials have expired'],
    ['RequestTimeTooSkewed', 403, 1, 'the clock of this machine is wrong'],
  ])('with %s fails as temporary, and a repeat finds the job', async (error, status, times, said) => {
    const { sqs, add, claim } = await scene()
    await add(ids(1))
    await sqs.inject({ call: 'ReceiveMessage', error, status, times })
    await expect(claim()).rejects.toMatchObject({ code: 'store-unavailable', message: expect.stringContaining(said) })

    expect(idsOf(await claim())).toEqual(['job-0'])
  })

  it('names the missing right and its remedy, and shows no credential', async () => {
    const { sqs, claim } = await scene()
    await sqs.inject({ call: 'ReceiveMessage', error: 'AccessDenied', status: 403 })
    const error = await claim().catch((thrown: Error) => thrown)

    expect(error).toMatchObject({
      code: 'store-refused',
      message: expect.stringMatching(/policy.*ReceiveMessage on sqs:/),
    })
    expect(String(error)).not.toMatch(/accessKey|secret/i)
  })

  it('loses no job if its answer is lost: received messages return, and sent ones are there', async () => {
    const { sqs, add, claim, advance } = await scene()
    await sqs.inject({ call: 'SendMessageBatch', cut: 'after' })
    await add([{ id: 'sent' }])
    await sqs.inject({ call: 'ReceiveMessage', cut: 'after' })
    const first = await claim()
    advance(30_000)

    // The SDK has sent the job again: SQS has it twice, which is what it promises.
    expect(new Set([...idsOf(first), ...idsOf(await claim())])).toEqual(new Set(['sent']))
  })
})

describe('on SQS', () => {
  it('messages in another order are settled separately', async () => {
    const { sqs, add, claim, settle, advance } = await scene()
    await add(ids(3))
    await sqs.inject({ call: 'ReceiveMessage', reversed: true })
    const claims = await claim()
    expect(claims.map(({ id }) => id)).toEqual(['job-2', 'job-1', 'job-0'])
    expect(await settle(claims[0]!, { kind: 'complete' })).toBe('ok')
    expect(await settle(claims[1]!, { kind: 'release', delayMs: 0 })).toBe('ok')
    expect(idsOf(await claim())).toEqual(['job-1'])
    advance(30_000)

    expect(idsOf(await claim())).toEqual(['job-0', 'job-1'])
  })

  it('a receive that finds nothing although there is something is repeated', async () => {
    const { sqs, add, claim, store } = await scene()
    await add(ids(1))
    await sqs.inject({ call: 'ReceiveMessage', empty: true })
    expect(await claim()).toEqual([])
    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ ready: 1 })

    expect(idsOf(await claim())).toEqual(['job-0'])
  })

  it('a copy of a running or completed message is not handed out again by the same process', async () => {
    const { sqs, add, claim, settle } = await scene()
    await add(ids(1))
    await sqs.inject({ call: 'ReceiveMessage', copies: 1, times: 2 })
    const [held] = await claim()
    expect(await claim()).toEqual([])
    expect(await sqs.copies()).toMatchObject({ bodies: [expect.stringContaining('job-0')], left: 1 })
    expect(await settle(held!, { kind: 'complete' })).toBe('ok')

    expect(await sqs.copies()).toMatchObject({ left: 0 })
  })

  it('a copy that reaches another process is handed out there, and both may complete it', async () => {
    const { sqs, add, claim, settle, open } = await scene()
    const other = await open()
    await add(ids(1))
    await sqs.inject({ call: 'ReceiveMessage', copies: 1 })
    const [held] = await claim()
    const { claims } = await other.claim([{ queue: 'mail', limit: 10 }], { worker: 'v', leaseMs: 30_000 })
    expect(idsOf(claims)).toEqual(['job-0'])
    expect(await settle(held!, { kind: 'complete' })).toBe('ok')
    const { queue, id, fence } = claims[0]!

    expect(await other.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['ok'])
  })
})

describe('a message', () => {
  it('that is delivered twice at once is handed out once', async () => {
    const { sqs, add, claim } = await scene()
    await add(ids(3))
    await sqs.inject({ call: 'ReceiveMessage', twice: true })

    expect(idsOf(await claim())).toEqual(idsOf(ids(3)))
  })

  it('is buried before it is deleted, and only once if the delete fails', async () => {
    const { sqs, add, claim, settle, bodies, namespace, advance } = await scene()
    await add(ids(1))
    const [held] = await claim()
    await sqs.inject({ call: 'DeleteMessageBatch', error: 'InternalError', status: 500, times: 3 })
    await expect(settle(held!, { kind: 'bury', reason: 'unrecoverable', error: 'never' })).rejects.toThrow()
    expect(await bodies(`dlq-${namespace}-mail`)).toHaveLength(1)
    expect(await settle(held!, { kind: 'bury', reason: 'unrecoverable', error: 'never' })).toBe('ok')
    advance(60_000)

    expect(await claim()).toEqual([])
    const [dead, ...others] = await bodies(`dlq-${namespace}-mail`)
    expect(others).toEqual([])
    expect(dead!.body).toMatchObject({
      v: 1,
      id: 'job-0',
      task: 'send',
      reason: 'unrecoverable',
      error: 'never',
      attempts: 1,
    })
  })

  it('that is not ours is buried unchanged, and its worker goes on', async () => {
    const { api, add, store, namespace, bodies } = await scene()
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-mail` })
    await api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody: 'gASVJQAAAAAAAAB9lA==' }] })
    await add(ids(1))
    const { claims, buried } = await store.claim([{ queue: 'mail', limit: 10 }], { worker: 'w', leaseMs: 30_000 })

    expect(idsOf(claims)).toEqual(['job-0'])
    expect(buried).toMatchObject([{ queue: 'mail', reason: 'bad-payload' }])
    const [dead] = await bodies(`dlq-${namespace}-mail`)
    expect(dead).toMatchObject({ body: 'gASVJQAAAAAAAAB9lA==', attributes: { reason: 'bad-payload' } })
  })

  it('that is not ours and of the largest size is buried unchanged too', async () => {
    const { api, store, namespace, bodies } = await scene()
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-mail` })
    const body = 'x'.repeat(1_048_576)
    await api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody: body }] })
    const { buried } = await store.claim([{ queue: 'mail', limit: 10 }], { worker: 'w', leaseMs: 30_000 })

    expect(buried).toMatchObject([{ queue: 'mail', reason: 'bad-payload' }])
    expect(await bodies(`dlq-${namespace}-mail`)).toEqual([{ body, attributes: {} }])
  })

  it('of the largest size is buried, without its error if that does not fit', async () => {
    const { add, claim, settle, bodies, namespace } = await scene()
    await expect(add([{ id: 'a', payload: 'x'.repeat(1_048_000) }])).rejects.toMatchObject({
      code: 'payload-too-large',
    })
    await add([{ id: 'a', payload: 'x'.repeat(1_047_900) }])
    const [held] = await claim()
    expect(await settle(held!, { kind: 'bury', reason: 'max-retries', error: 'e'.repeat(2_000) })).toBe('ok')

    const [dead] = await bodies(`dlq-${namespace}-mail`)
    expect(dead!.body).toMatchObject({ id: 'a', reason: 'max-retries' })
    expect(dead!.body).not.toHaveProperty('error')
  })

  it('of the largest size is buried with as much of a long reason as fits', async () => {
    const { add, claim, settle, bodies, namespace } = await scene()
    await add([{ id: 'a', payload: 'x'.repeat(1_047_950) }])
    const [held] = await claim()
    const reason = '€'.repeat(1_000)
    expect(await settle(held!, { kind: 'bury', reason, error: 'e' })).toBe('ok')

    const [dead] = await bodies(`dlq-${namespace}-mail`)
    const { reason: kept } = dead!.body as { reason: string }
    expect(reason.startsWith(kept)).toBe(true)
    expect(Buffer.byteLength(JSON.stringify(dead!.body))).toBeGreaterThan(1_048_576 - 4)
  })

  it.each([
    ['buried', { kind: 'bury', reason: 'broken' }, 'dlq-'],
    ['released', { kind: 'release', delayMs: 0 }, ''],
  ] as const)('of another sender that has no room for anything is %s as it came', async (_, how, prefix) => {
    const { api, add, claim, settle, bodies, namespace } = await scene()
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-mail` })
    const envelope = { v: 1, task: 'send', payload: '' }
    envelope.payload = 'x'.repeat(1_048_576 - JSON.stringify(envelope).length)
    await api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody: JSON.stringify(envelope) }] })
    const [held] = await claim()
    await add(ids(1))
    const [other] = await claim()
    expect(await settle(held!, how)).toBe('ok')
    expect(await settle(other!, { kind: 'complete' })).toBe('ok')

    expect((await bodies(`${prefix}${namespace}-mail`)).map(({ body }) => body)).toEqual([envelope])
  })

  it.each([
    ['retried after 13 hours', { kind: 'retry', delayMs: 46_800_000 }, 43_100_000],
    ['released for an hour', { kind: 'release', delayMs: 3_600_000 }, 3_600_000],
  ] as const)('of another sender that has no room for anything keeps its attempts when it is %s', async (...row) => {
    const [, how, hiddenMs] = row
    const { api, claim, settle, namespace, advance } = await scene()
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-mail` })
    const envelope = { v: 1, task: 'send', payload: '' }
    envelope.payload = 'x'.repeat(1_048_576 - JSON.stringify(envelope).length)
    await api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody: JSON.stringify(envelope) }] })
    const [held] = await claim()
    expect(await settle(held!, how)).toBe('ok')
    advance(hiddenMs - 1_000)
    expect(await claim()).toEqual([])
    advance(60_000)

    // A release counts here: nothing could say that it does not.
    expect(await claim()).toMatchObject([{ id: held!.id, attempt: 2 }])
  })

  it.each([
    ['is buried', { kind: 'bury', reason: 'max-retries' }, 'dlq-', { reason: 'max-retries' }],
    ['is retried after 13 hours', { kind: 'retry', delayMs: 46_800_000 }, '', { attempts: 1 }],
  ] as const)('that leaves no room for its error in a queue with a limit of its own %s without it', async (...row) => {
    const [, how, prefix, kept] = row
    const { api, store, bodies, namespace, advance } = await scene()
    const settings = { name: 'small', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
    for (const name of [`${namespace}-small`, `dlq-${namespace}-small`])
      await api.call('CreateQueue', { QueueName: name, Attributes: { MaximumMessageSize: '262144' } })
    await store.open([settings])
    const job = { id: 'a', task: 't', payload: 'x'.repeat(255_000), priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: 'call', queue: 'small', jobs: [job] }])
    const { claims } = await store.claim([{ queue: 'small', limit: 1 }], { worker: 'w', leaseMs: 30_000 })
    const { queue, id, fence } = claims[0]!
    expect(await store.settle([{ queue, id, fence, ...how, error: 'e'.repeat(8_000) }])).toEqual(['ok'])
    advance(900_000)

    const [found, ...others] = await bodies(`${prefix}${namespace}-small`)
    expect(others).toEqual([])
    expect(found!.body).toMatchObject({ id: 'a', ...kept })
    expect(found!.body).not.toHaveProperty('error')
  })

  it('in a large batch is sent in several calls, none larger than SQS accepts', async () => {
    const { add, claim, calls } = await scene()
    await add(Array.from({ length: 3 }, (_, i) => ({ id: `big-${i}`, payload: 'x'.repeat(600_000) })))

    expect(calls.byKind.SendMessageBatch).toBe(3)
    const found = [...(await claim()), ...(await claim()), ...(await claim())]
    expect(idsOf(found)).toEqual(['big-0', 'big-1', 'big-2'])
  })
})

describe('a missing queue', () => {
  it('is named with the command that creates it, and is not created', async () => {
    const { open, namespace } = await scene()
    const store = await open()
    const settings = { name: 'orders', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const

    await expect(store.open([settings])).rejects.toMatchObject({
      code: 'queue-missing',
      message: expect.stringMatching(new RegExp(`'${namespace}-orders'.*millrace queues create`)),
    })
    await expect(store.depth(['orders'])).rejects.toMatchObject({ code: 'queue-unknown' })
  })
})
