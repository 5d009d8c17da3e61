/** A worker next to a damaged queue: it serves the others, tells of it, and ends when none is left. */

import { defineTask, type EventMap, type Mill, millrace } from 'millrace'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { healthOf } from '#src/cli/supervise/health-server.js'
import { digestOf } from '#src/cli/supervise/supervisor-messages.js'
import { systemClock } from '#src/core/platform/clock.js'

let server: RedisServer
let namespace = 'q'
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(() => {
  namespace += 'x'
  running = 0
  hold = async () => {}
})

let running = 0
let hold = async (_count: number) => {}
const [a, b] = ['a', 'b'].map((queue) =>
  defineTask({
    name: `task-${queue}`,
    queue,
    async run() {
      running += 1
      await hold(running)
      return queue
    },
  }),
)
let lines: string[] = []

function mill(): Mill {
  lines = []
  const line = (message: string) => lines.push(message)
  const logger = { debug: () => {}, info: line, warn: line, error: line }
  const made = millrace({ store: server.url, namespace, queues: { a: {}, b: {} }, tasks: [a!, b!], logger })
  onTestFinished(() => made.close())
  return made
}

function next<Name extends 'queue.damaged' | 'queue.mended'>(of: Mill, name: Name): Promise<EventMap[Name]> {
  return new Promise((resolve) => of.on(name, resolve))
}

it.each(['ready', 'meta'])('a foreign key for its %s is reported, and does not block other queues', async (key) => {
  await server.ask('SET', `{${namespace}:b}:${key}`, 'theirs')
  const of = mill()
  const damaged = next(of, 'queue.damaged')
  const worker = of.worker({ concurrency: 2 })
  await worker.start()
  for (let i = 0; i < 20; i += 1) expect(await (await of.enqueue(a!, {})).result({ timeout: '10s' })).toBe('a')

  expect(await damaged).toMatchObject({ queue: 'b', shard: 0, error: { code: 'store-corrupt' } })
  expect((await damaged).retryMs / 30_000).toBeCloseTo(1, 1)
  expect(lines.filter((line) => line.startsWith('queue damaged'))).toHaveLength(1)
  expect(worker.status()).toMatchObject({ state: 'running', damaged: ['b'] })
  const report = {
    pid: 1,
    state: 'running',
    upMs: 1,
    restarts: 0,
    heardMs: 1,
    pulse: digestOf(worker.status()),
  } as const
  expect(healthOf([report])).toMatchObject({ status: 'ok', processes: [{ damagedQueues: 1 }] })

  const mended = next(of, 'queue.mended')
  await server.ask('DEL', `{${namespace}:b}:${key}`)
  const { mono } = systemClock
  vi.spyOn(systemClock, 'mono').mockImplementation(() => mono.call(systemClock) + 31_000)
  onTestFinished(() => void vi.restoreAllMocks())
  await of.enqueue(a!, {})
  expect(await mended).toEqual({ queue: 'b' })
  expect(await (await of.enqueue(b!, {})).result({ timeout: '10s' })).toBe('b')
  expect(worker.status().damaged).toEqual([])
  await worker.stop()
})

it('a worker ends with the error when no queue is left that it can serve', async () => {
  const of = mill()
  const worker = of.worker()
  await of.depths()
  for (const queue of ['a', 'b']) await server.ask('SET', `{${namespace}:${queue}}:ready`, 'theirs')
  await worker.start()
  await expect(worker.finished()).rejects.toMatchObject({ code: 'store-corrupt' })
})

it('a worker settles a job of a sound queue, even in one call with a job of a queue that was damaged meanwhile', async () => {
  const of = mill()
  let [begun, open] = [() => {}, () => {}]
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const both = new Promise<void>((resolve) => {
    begun = resolve
  })
  hold = async (count) => {
    if (count === 2) begun()
    await gate
  }
  const refused: unknown[] = []
  of.on('settle.refused', (event) => refused.push(event))
  const completed = new Promise((resolve) => of.on('job.completed', ({ queue }) => resolve(queue)))
  const failed = new Promise((resolve) => of.on('store.failed', ({ call }) => call === 'settle' && resolve(call)))
  const worker = of.worker({ concurrency: 4 })
  await worker.start()
  await Promise.all([of.enqueue(a!, {}), of.enqueue(b!, {})])
  await both
  await server.ask('SET', `{${namespace}:b}:claims`, 'theirs')
  open()
  expect(await completed).toBe('a')
  await failed
  expect(refused).toEqual([])
  expect((await of.depths(['a']))[0]).toMatchObject({ running: 0, processed: 1 })
  await worker.stop()
})

it('a listener and a throttled queue report that their own queue is damaged', async () => {
  const of = mill()
  await of.depths()
  await server.ask('SET', `{${namespace}:b}:ready`, 'theirs')
  const listener = of.listener('b')
  await expect(listener.next()).rejects.toMatchObject({ code: 'store-corrupt' })
  await listener.close()
  const pops = of.throttledQueue('pops', { limit: 10, window: '1s' })
  await pops.push('one')
  await server.ask('SET', `{${namespace}:pops}:leases`, 'theirs')
  await expect(pops.pop()).rejects.toMatchObject({ code: 'store-corrupt' })
})
