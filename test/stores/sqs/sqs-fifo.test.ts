/** FIFO queues of SQS: order and exclusion by group, and of ordered tasks by id. */

import { defineOrderedTask, defineTask, snooze } from 'millrace'
import { ManualClock } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Clock } from '#src/core/platform/clock.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SqsApi, SqsCall, SqsMessage } from '#src/stores/sqs/client/sqs-api.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { freshStores } from './fresh-store.js'

const { service, freshStore } = freshStores()

/** What ran, in the order in which it began and ended, by group. */
function history() {
  const events = new Map<string, string[]>()
  const note = (group: string, event: string) => void events.set(group, [...(events.get(group) ?? []), event])
  return { events, note }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5))

describe('a plain FIFO queue', () => {
  it('runs the jobs of a group one after the other, in order, even if one fails at first', async () => {
    const { events, note } = history()
    const task = defineTask({
      name: 'step',
      input: z.object({ group: z.string(), n: z.number() }),
      group: ({ group }) => group,
      retry: { max: 3, backoff: () => 1 },
      async run({ group, n }, ctx) {
        note(group, `begin ${n}`)
        await turn()
        if (group === 'b' && n === 1 && ctx.job.attempt === 1) {
          note(group, `fail ${n}`)
          throw new Error('not yet')
        }
        note(group, `end ${n}`)
      },
    })
    const mill = testMillOn((await freshStore()).store, { tasks: [task], queues: { default: { fifo: true } } })
    await mill.createQueues()
    const inputs = [0, 1, 2, 3].flatMap((n) => ['a', 'b', 'c'].map((group) => ({ group, n })))
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === inputs.length)
    await mill.enqueueMany(task, inputs)
    const worker = mill.worker({ concurrency: 10 })
    await worker.start()
    await ended
    await worker.stop()

    const inOrder = [0, 1, 2, 3].flatMap((n) => [`begin ${n}`, `end ${n}`])
    expect(events.get('a')).toEqual(inOrder)
    expect(events.get('b')).toEqual([...inOrder.slice(0, 2), 'begin 1', 'fail 1', ...inOrder.slice(2)])
    expect(events.get('c')).toEqual(inOrder)
  }, 30_000)

  it('keeps the order of a group if the service accepts all entries but one', async () => {
    const ran: string[] = []
    const task = defineTask({
      name: 'step',
      group: ({ group }: { group: string; n: number }) => group,
      run: async ({ group, n }) => void ran.push(`${group}${n}`),
    })
    const { store, calls } = await freshStore()
    const mill = testMillOn(store, { tasks: [task], queues: { default: { fifo: true } } })
    await mill.createQueues()
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === 12)
    await service().inject({ call: 'SendMessageBatch', entries: [2] })
    // The groups share a call; the jobs of one group do not.
    await mill.enqueueMany(
      task,
      [0, 1, 2, 3].flatMap((n) => ['a', 'b', 'c'].map((group) => ({ group, n }))),
    )
    expect(calls.byKind.SendMessageBatch).toBe(1 + 4)
    await mill.worker({ concurrency: 1 }).start()
    await ended

    for (const group of ['a', 'b', 'c'])
      expect(ran.filter((one) => one.startsWith(group))).toEqual([0, 1, 2, 3].map((n) => `${group}${n}`))
  }, 30_000)

  it('puts a released job back in its place, and counts the receive', async () => {
    const attempts: number[] = []
    const task = defineTask({
      name: 'step',
      run: async (_, { job }) => {
        attempts.push(job.attempt)
        return job.attempt === 1 ? snooze(0) : undefined
      },
    })
    const mill = testMillOn((await freshStore()).store, { tasks: [task], queues: { default: { fifo: true } } })
    await mill.createQueues()
    const completed = nextEvent(mill, 'job.completed')
    await mill.enqueue(task)
    await mill.worker().start()
    await completed

    expect(attempts).toEqual([1, 2])
  }, 30_000)

  it('refuses a delay, and nothing is sent', async () => {
    const task = defineTask({ name: 'step', run: async () => {} })
    const mill = testMillOn((await freshStore()).store, { tasks: [task], queues: { default: { fifo: true } } })
    await mill.createQueues()

    await expect(mill.enqueue(task, {}, { delay: '1s' })).rejects.toMatchObject({ code: 'unsupported-by-store' })
    expect(await mill.queue('default').depth()).toMatchObject({ ready: 0, scheduled: 0 })
  })
})

describe('an enqueue into a FIFO queue', () => {
  it('keeps its order over several calls, even if one is repeated, and sends nothing after a failed one', async () => {
    const ran: number[] = []
    const task = defineTask({
      name: 'step',
      input: z.number(),
      group: () => 'one',
      async run(n) {
        ran.push(n)
      },
    })
    const mill = testMillOn((await freshStore()).store, { tasks: [task], queues: { default: { fifo: true } } })
    await mill.createQueues()
    const inputs = Array.from({ length: 25 }, (_, n) => n)
    const throttled = { call: 'SendMessageBatch', error: 'ThrottlingException', status: 400 }
    // The SDK makes a call three times.
    await service().inject({ ...throttled, times: 3 })
    await expect(mill.enqueueMany(task, inputs)).rejects.toThrow('25 of 25 jobs were refused')
    await service().inject(throttled)
    await mill.enqueueMany(task, inputs)
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === inputs.length)
    const worker = mill.worker({ concurrency: 10 })
    await worker.start()
    await ended
    await worker.stop()

    expect(ran).toEqual(inputs)
  })
})

describe('a job of a FIFO queue that SQS does not take', () => {
  const settings: QueueSettings = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, fifo: true }
  const jobs = ['g1', 'h1', 'g2', 'h2', 'g3'].map((id) => ({
    ...{ id, task: 't', payload: '1', priority: 0, rememberMs: 0, group: id[0]! },
  }))
  const calls = [{ callId: 'call', queue: 'q', jobs }]

  it.each([
    ['now', {}, 'store-unavailable'],
    ['ever', { senderFault: true, code: 'InvalidMessageContents' }, 'store-refused'],
  ])('%s keeps those of its group back, and no others; a repeat sends them in order', async (_, fault, code) => {
    const { store, api, namespace } = await freshStore()
    await store.provision.create([settings])
    await store.open([settings])
    await service().inject({
      call: 'SendMessageBatch',
      entries: [0],
      times: code === 'store-refused' ? 1 : 4,
      ...fault,
    })
    await expect(store.enqueue(calls)).rejects.toMatchObject({ code })
    expect((await store.depth(['q'])).depths).toMatchObject([{ ready: 2 }])
    await store.enqueue(calls)
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-q.fifo` })
    const ids: unknown[] = []
    for (let i = 0; i < jobs.length; i += 1) {
      const input = { QueueUrl, MaxNumberOfMessages: 1, VisibilityTimeout: 30, WaitTimeSeconds: 0 }
      const names = { MessageSystemAttributeNames: [], MessageAttributeNames: [] }
      const { Messages = [] } = await api.call('ReceiveMessage', { ...input, ...names })
      for (const { Body = '', ReceiptHandle = '' } of Messages) {
        ids.push((JSON.parse(Body) as { id: unknown }).id)
        await api.call('DeleteMessageBatch', { QueueUrl, Entries: [{ Id: '0', ReceiptHandle }] })
      }
    }
    await store.close()

    expect(ids.filter((id) => String(id).startsWith('g'))).toEqual(['g1', 'g2', 'g3'])
    expect(ids.filter((id) => String(id).startsWith('h'))).toEqual(['h1', 'h2'])
  })
})

it('a job that is too large for a FIFO queue fails those behind it with a typed error', async () => {
  const { store } = await freshStore()
  const settings: QueueSettings = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, fifo: true }
  await store.provision.create([settings])
  await store.open([settings])
  await service().inject({ call: 'SendMessageBatch', error: 'BatchRequestTooLong', status: 400 })
  const enqueue = (id: string) => {
    const job = { id, task: 't', payload: '1', priority: 0, rememberMs: 0, group: 'g' }
    return store.enqueue([{ callId: id, queue: 'q', jobs: [job] }])
  }
  const ends = await Promise.allSettled([enqueue('large'), enqueue('small')])
  await store.close()

  expect(ends).toMatchObject(Array(2).fill({ status: 'rejected', reason: { code: 'payload-too-large' } }))
})

describe('an ordered task', () => {
  it('gets the payloads of an id in order and never two runs of it at once', async () => {
    const { events, note } = history()
    const task = defineOrderedTask({
      name: 'sync',
      input: z.object({ id: z.string(), n: z.number() }),
      id: ({ id }) => id,
      batchSize: 2,
      async run(payloadsById) {
        const ids = [...payloadsById.keys()]
        for (const id of ids) note(id, 'begin')
        await turn()
        for (const [id, payloads] of payloadsById) for (const { n } of payloads) note(id, String(n))
        for (const id of ids) note(id, 'end')
      },
    })
    const mill = testMillOn((await freshStore()).store, { tasks: [task] })
    await mill.createQueues()
    const ids = ['x', 'y', 'a long id '.repeat(20), 'naïve']
    const inputs = [0, 1, 2, 3, 4].flatMap((n) => ids.map((id) => ({ id, n })))
    const settled = recorded(mill, 'job.completed')
    await mill.enqueueMany(task, inputs)
    const worker = mill.worker({ concurrency: 5 })
    const ran = () => [...events.values()].flat().filter((event) => /^\d/.test(event)).length
    const ended = nextEvent(mill, 'job.completed', () => ran() === inputs.length)
    await worker.start()
    await ended
    await worker.stop()

    expect(settled.length).toBeGreaterThanOrEqual(ids.length)
    for (const id of ids) {
      expect(events.get(id)!.filter((event) => /^\d/.test(event))).toEqual(['0', '1', '2', '3', '4'])
      const runs = events.get(id)!.filter((event) => !/^\d/.test(event))
      expect(runs.every((event, i) => event === (i % 2 === 0 ? 'begin' : 'end'))).toBe(true)
    }
  }, 30_000)

  it.each([
    ['score', { score: () => 1 }, {}],
    ["merge: 'latest'", { merge: 'latest' as const }, {}],
    ["merge: 'distinct'", { merge: 'distinct' as const }, {}],
    ["exclusive: 'shard'", {}, { sync: { exclusive: 'shard' as const } }],
  ])('refuses %s when the mill is created, with a remedy', async (option, ofTask, queues) => {
    const task = defineOrderedTask({ name: 'sync', id: String, ...ofTask })
    const { store } = await freshStore()
    expect(() => testMillOn(store, { tasks: [task], queues })).toThrow(
      expect.objectContaining({
        code: 'unsupported-by-store',
        message: expect.stringContaining(`Leave \`${option}\` out`),
      }),
    )
    await store.close()
  })
})

/**
 * A service that gives several messages of a group in one receive, as SQS does and emulators may not. It hides no message
 * whose receipt is void.
 */
function batchingService(messages: SqsMessage[], voidReceipts: ReadonlySet<string>) {
  const sent: [SqsCall, string[]][] = []
  const call = async (
    kind: SqsCall,
    input: { QueueName?: string; Entries?: { Id: string; ReceiptHandle: string; VisibilityTimeout?: number }[] },
  ) => {
    if (kind === 'GetQueueUrl') return { QueueUrl: input.QueueName }
    if (kind === 'ReceiveMessage') return { Messages: messages.splice(0) }
    sent.push([
      kind,
      input.Entries!.map(({ ReceiptHandle, VisibilityTimeout }) =>
        `${ReceiptHandle} ${VisibilityTimeout ?? ''}`.trim(),
      ),
    ])
    const isVoid = ({ ReceiptHandle }: { ReceiptHandle: string }) =>
      kind === 'ChangeMessageVisibilityBatch' && voidReceipts.has(ReceiptHandle)
    const Failed = input
      .Entries!.filter(isVoid)
      .map(({ Id }) => ({ Id, Code: 'MessageNotInflight', SenderFault: true }))
    return { Failed }
  }
  return { api: { where: 'a service of the test', call: call as SqsApi['call'], made: () => ({}), close() {} }, sent }
}

const message = (n: number, group = 'g', more = {}, receives = 1): SqsMessage => ({
  ...{ MessageId: `m${n}`, ReceiptHandle: `r${n}` },
  Body: JSON.stringify({ v: 1, id: `job-${n}`, task: 't', payload: String(n), ...more }),
  Attributes: { ApproximateReceiveCount: String(receives), SentTimestamp: '1000', MessageGroupId: group },
})

async function storeWith(messages: SqsMessage[], settings: Partial<QueueSettings>, clock?: Clock) {
  const voidReceipts = new Set<string>()
  const { api, sent } = batchingService(messages, voidReceipts)
  const store = new SqsStore({ api, namespace: '', worthAsking: () => true, ...(clock === undefined ? {} : { clock }) })
  await store.open([{ name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...settings }])
  const claim = async (leaseMs = 30_000) =>
    (await store.claim([{ queue: 'q', limit: 10 }], { worker: 'w', leaseMs })).claims
  return { store, sent, claim, voidReceipts }
}

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
    ['the oldest is buried', { kind: 'retry', delayMs: 0, last: true }, 1],
    ['those before are done, and they fail', { kind: 'retry', delayMs: 0, done: 1 }, 2],
  ] as const)('have attempts of their own once %s', async (_, how, attempt) => {
    const messages = [1, 2].map((n) => message(n, 'g', {}, 3))
    const { store, claim } = await storeWith(messages, { kind: 'ordered' })
    const [held] = await claim()
    expect(held!.attempt).toBe(3)
    await store.settle([{ queue: 'q', id: held!.id, fence: held!.fence, ...how }])
    messages.push(message(2, 'g', {}, 4))

    expect(await claim()).toMatchObject([{ attempt, payloads: [{ payload: '2' }] }])
    await store.close()
  })

  it('go back if they have waited for their turn for long, so that each run has its twelve hours', async () => {
    const clock = new ManualClock(Date.now())
    const { store, sent, claim } = await storeWith([message(1), message(2), message(3)], { fifo: true }, clock)
    const [first] = await claim(3_600_000)
    clock.advance(16 * 60_000)
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'complete' }])

    expect(await claim(3_600_000)).toEqual([])
    await store.close()
    expect(sent.at(-1)).toEqual(['ChangeMessageVisibilityBatch', ['r2 0', 'r3 0']])
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

describe('the group of a job in a standard queue', () => {
  it('is its message group, by which SQS deals fairly, and is visible to its handler', async () => {
    const groups: unknown[] = []
    const task = defineTask({
      name: 'crawl',
      input: z.object({ host: z.string() }),
      group: ({ host }) => host,
      run: async (_, ctx) => void groups.push(ctx.job.group),
    })
    const mill = testMillOn((await freshStore()).store, { tasks: [task] })
    await mill.createQueues()
    const ended = nextEvent(mill, 'job.completed')
    await mill.enqueue(task, { host: 'example.com' })
    const worker = mill.worker()
    await worker.start()
    await ended
    await worker.stop()

    expect(groups).toEqual(['example.com'])
  })
})
