/** What the SQS store refuses: bad input at the edge, and what it has no means for. */

import { defineOrderedTask, defineTask, type Mill, type MillOptions, type MillraceError, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sqsStore } from '#src/stores/sqs/sqs-module.js'
import { testMillOn } from '../../test-mill.js'
import { sqsScenes } from './sqs-scene.js'

const sceneOf = sqsScenes()
const store = 'sqs://eu-central-1'
const task = defineTask({ name: 'send', queue: 'mail', run() {} })
const settings = { store, tasks: [task] }
const input = z.object({ id: z.string(), n: z.number() })
const sync = { name: 'sync', input, id: ({ id }: z.output<typeof input>) => id } as const

/** The error that a mill of these options is refused with. */
function refusalOf(options: Partial<MillOptions>): MillraceError {
  try {
    millrace({ ...settings, ...options })
  } catch (error) {
    return error as MillraceError
  }
  throw new Error('it was taken')
}

describe('an invalid SQS address', () => {
  it.each([
    ['SQS://eu-central-1', "got 'SQS://…'"],
    ['sqs:eu-central-1', 'expected'],
    ['sqs:/eu-central-1', 'expected'],
    ['https://sqs.eu-central-1.amazonaws.com/123/orders', "'sqs://region'"],
    ['arn:aws:sqs:eu-central-1:123:orders', "'sqs://region'"],
    ['sqs://localhost:9324', "'localhost:9324' is no region"],
    ['sqs://eu-central-1:9324', 'is no region'],
    ['sqs://eu-central-1 ', 'is no region'],
    ['sqs://eu_central_1', 'is no region'],
    ['sqs://eu-central', 'is no region'],
    ['sqs://-central-1', 'is no region'],
    ['sqs://eu-central-1?=', "'' is no parameter"],
    ['sqs://eu-central-1?endpoint=', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=//localhost', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=sqs://eu-central-1', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=http://localhost:99999', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=http://localhost:9324/000000000000/orders', 'a path'],
    ['sqs://eu-central-1?endpoint=http://localhost?x=1', 'a path or a query'],
    ['sqs://eu-central-1?endpoint=http://a&endpoint=http://b', "'endpoint' is given twice"],
    ['sqs://eu-central-1?poll=each&poll=first', "'poll' is given twice"],
    ['sqs://eu-central-1?poll=', "poll is ''"],
    ['sqs://eu-central-1?POLL=each', "'POLL' is no parameter"],
    ['sqs://eu-central-1?namespace=shop', "'namespace' is no parameter"],
    ['sqs://eu-central-1?accessKeyId=AKIA', 'Credentials come from the environment'],
  ])('is refused when the mill is created: %s', (address, said) => {
    expect(refusalOf({ store: address })).toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining(said),
    })
  })

  it('is refused by sqsStore() too', async () => {
    await expect(sqsStore({ url: 'sqs://nowhere' })).rejects.toMatchObject({ code: 'config-invalid' })
  })
})

it.each(['a b', 'a:b', 'a/b', 'ü', 'x'.repeat(81)])(
  'a namespace that no store accepts is refused when the mill is created: %s',
  (namespace) => {
    expect(refusalOf({ namespace })).toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('namespace: must be'),
    })
  },
)

describe('an option that SQS does not support', () => {
  const throttle = { limit: 1, window: '1s' } as const

  it.each<[string, Partial<MillOptions>]>([
    ["the order 'lifo'", { queues: { mail: { order: 'lifo' } } }],
    ["the order 'lifo'", { queues: { mail: { order: 'lifo', fifo: true } } }],
    ['maxRunning', { queues: { mail: { maxRunning: 2 } } }],
    ['maxRunning', { queues: { mail: { maxRunning: { perGroup: 1 } } } }],
    ['groupWeights', { queues: { mail: { groupWeights: { acme: 2 } } } }],
    ['maxPending', { queues: { mail: { maxPending: 100 } } }],
    ['the throttle', { queues: { mail: { throttle } } }],
    ['the throttle', { queues: { mail: { throttle: { ...throttle, by: 'group' } } } }],
    ['a lease', { queues: { mail: { lease: '11h46m' } } }],
    ['the time limit', { tasks: [defineTask({ name: 'long', queue: 'mail', timeLimit: '11h46m' })] }],
    ['the time limit', { tasks: [defineTask({ name: 'long', queue: 'mail', timeLimit: '3d', run() {} })] }],
    ["`exclusive: 'shard'`", { tasks: [defineOrderedTask(sync)], queues: { sync: { exclusive: 'shard' } } }],
    ['`score`', { tasks: [defineOrderedTask({ ...sync, score: ({ n }) => n })] }],
    ["`merge: 'latest'`", { tasks: [defineOrderedTask({ ...sync, merge: 'latest' })] }],
    ['`group`', { tasks: [defineOrderedTask({ ...sync, group: () => 'one' })] }],
    ['`onDead`', { tasks: [task, defineTask({ name: 'told', queue: 'mail', onDead: task })] }],
    ['waiting for replicas', { replicas: 1 }],
  ])('is refused when the mill is created, with an alternative: %s', (feature, options) => {
    expect(refusalOf(options)).toMatchObject({
      code: 'unsupported-by-store',
      message: expect.stringMatching(/^the sqs store cannot do this: .*\. (?:Leave|Set|A job|Make|Or)/),
    })
    expect(refusalOf(options).message).toContain(feature)
  })

  it('is refused when a worker is created: isolated tasks', () => {
    const mill = millrace({
      store,
      tasks: [defineTask({ name: 'encode', isolate: 'process', module: import.meta.url })],
    })

    expect(() => mill.worker()).toThrow(expect.objectContaining({ code: 'unsupported-by-store' }))
  })
})

describe('a call that SQS does not support', () => {
  const scene = sqsScenes()

  it.each<[string, (mill: Mill) => Promise<unknown>]>([
    ['a priority', (mill) => mill.enqueue(task, {}, { priority: 3 })],
    ['an id of your own', (mill) => mill.enqueue(task, {}, { id: 'welcome-42' })],
    ['a list of jobs', (mill) => mill.queue('mail').jobs.list({ state: 'ready' })],
    ['a job', (mill) => mill.queue('mail').jobs.get('a')],
    ['a cancel', (mill) => mill.queue('mail').jobs.cancel(['a'])],
    ['a delete', (mill) => mill.queue('mail').jobs.delete(['a'])],
    ['a run at once', (mill) => mill.queue('mail').jobs.runNow(['a'])],
    ['another place', (mill) => mill.queue('mail').jobs.reschedule(['a'], { priority: 1 })],
    ['a job again', (mill) => mill.queue('mail').jobs.enqueueAgain('a')],
    ['a pause', (mill) => mill.queue('mail').pause()],
    ['a resume', (mill) => mill.queue('mail').resume()],
    ['a drain', (mill) => mill.queue('mail').drain()],
    ['the state of a job', (mill) => mill.job(task, 'a').status()],
    ['a handle by id alone', (mill) => mill.job('a').status()],
  ])('is refused, and nothing is sent: %s', async (_, call) => {
    const { store: opened } = await scene()
    const mill = testMillOn(opened, { tasks: [task], queues: { mail: {} } })

    await expect(call(mill)).rejects.toMatchObject({ code: 'unsupported-by-store' })
    expect(await mill.queue('mail').depth()).toMatchObject({ ready: 0, scheduled: 0 })
  })
})

it('a queue that was looked up before it is opened is opened as what it is', async () => {
  const { store: opened, open } = await sceneOf()
  const books = { name: 'books', kind: 'ordered', order: 'fifo', maxCrashes: 3, dead: {} } as const
  await opened.provision.create([books])
  for (const isMeanwhile of [false, true]) {
    const other = await open()
    const looks = other.depth(['books'])
    if (!isMeanwhile) await looks
    await other.open([books])
    await looks
    const job = (payload: string) => ({ id: '7', task: 'book', payload, priority: 0, rememberMs: 0 })
    await other.enqueue([{ callId: `call-${isMeanwhile}`, queue: 'books', jobs: [job('1')] }])
    const { claims } = await other.claim([{ queue: 'books', limit: 2 }], { worker: 'w', leaseMs: 30_000 })
    expect(claims).toMatchObject([{ id: '7', payloads: [{ payload: '1' }] }])
    const { queue, id, fence } = claims[0]!
    expect(await other.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['ok'])
  }
})
