/** FIFO queues of SQS: order and exclusion by group, and of ordered tasks by id. */

import { defineOrderedTask, defineTask, snooze } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
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
