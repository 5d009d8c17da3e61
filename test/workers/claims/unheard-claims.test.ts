/** Claims whose answer was lost on the way: they are put back at once, and nobody is charged for them. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, type Mill, millrace } from 'millrace'
import { type FaultProxy, faultProxy, type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { storeSource } from '#src/mill/store-source.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { changed } from '../../changed.js'
import { testMillOn } from '../../test-mill.js'

let server: RedisServer
let proxy: FaultProxy
let namespace = 'u'
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  namespace += 'x'
  proxy = await faultProxy(server)
  onTestFinished(() => proxy.close())
})

const queues = { work: {}, crawl: { throttle: { limit: 100, window: '1s' } } } as const
const started: string[] = []
let whenFirst = async () => {}
const task = defineTask({
  name: 'task',
  queue: 'work',
  async run(_: unknown, ctx) {
    started.push(ctx.job.id)
    if (ctx.job.id === 'first') await whenFirst()
  },
})

function mill(url: string): Mill {
  const made = millrace({ store: url, namespace, queues, tasks: [task] })
  onTestFinished(() => made.close())
  return made
}

/** Waits until the server has given the job away, and ends the connection on which the answer was lost. */
async function loseAnswer(direct: Mill, id: string) {
  const what = { what: `job ${id} to be given away`, withinMs: 20_000 }
  const isGiven = async () => (await direct.queue('work').jobs.get(id))?.state === 'running'
  await poll(async () => (await isGiven()) || undefined, what)
  await proxy.inject('none')
  proxy.cut()
}

describe('a claim whose answer was lost', () => {
  it('is put back by its worker, which starts the job again at once, uncounted and once', async () => {
    const [direct, through] = [mill(server.url), mill(proxy.url)]
    const crashed: unknown[] = []
    const released: unknown[] = []
    through.on('job.crashed', (event) => crashed.push(event))
    through.on('job.released', (event) => released.push(event))
    started.length = 0
    whenFirst = () => proxy.inject('dropReplies')
    // Both wait before it starts: a ring for the second could be lost like any other answer.
    await direct.enqueue(task, undefined, { id: 'first' })
    await direct.enqueue(task, undefined, { id: 'second' })
    // One queue: a claim over two may ask the other first, and waits for its answer.
    const worker = through.worker({ concurrency: 1, queues: ['work'] })
    const second = new Promise((resolve) => through.on('job.completed', ({ id }) => id === 'second' && resolve(id)))
    await worker.start()
    await loseAnswer(direct, 'second')
    const lostAt = performance.now()
    await second

    expect(performance.now() - lostAt).toBeLessThan(5_000)
    expect([started, crashed]).toEqual([['first', 'second'], []])
    expect(released).toEqual([{ queue: 'work', id: 'second', task: 'task', reason: 'unheard', delayMs: 0 }])
    expect(await direct.queue('work').depth()).toMatchObject({ ready: 0, running: 0, suspects: 0, crashed: 0 })
    await worker.stop()
  }, 30_000)

  it('is put back by its listener, which returns it at once', async () => {
    const [direct, through] = [mill(server.url), mill(proxy.url)]
    const listener = through.listener('work')
    await direct.enqueue(task, undefined, { id: 'first' })
    const first = await listener.next()
    await direct.enqueue(task, undefined, { id: 'second' })
    await proxy.inject('dropReplies')
    const next = listener.next()
    await loseAnswer(direct, 'second')
    const lostAt = performance.now()
    const second = await next

    expect(performance.now() - lostAt).toBeLessThan(5_000)
    expect([second.id, second.attempt, second.crashes]).toEqual(['second', 1, 0])
    // What it had heard of before stays its own.
    expect(await Promise.all([first.complete(), second.complete()])).toEqual(['ok', 'ok'])
    await listener.close()
  }, 30_000)

  it('is put back by the next pop, which returns the item', async () => {
    const [direct, through] = [mill(server.url), mill(proxy.url)]
    const [taken, given] = [through, direct].map((one) => one.throttledQueue('items', { limit: 100, window: '1s' }))
    await given!.push('one')
    expect(await taken!.pop()).toBe('one')
    await given!.push('two')
    await proxy.inject('dropReplies')
    const lost = taken!.pop().catch((error: unknown) => error)
    const what = { what: 'the item to be given away', withinMs: 20_000 }
    await poll(async () => (await given!.length()) === 0 || undefined, what)
    await proxy.inject('none')
    proxy.cut()

    expect(await lost).toBeInstanceOf(StoreUnavailableError)
    expect(await taken!.pop()).toBe('two')
  }, 30_000)

  it.each(['memory', 'sqlite'] as const)('is put back even if the thread of the store ended (%s)', async (kind) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-unheard-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = await storeSource(kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}`).create()
    let losing = 1
    const cut = changed(store, {
      async claim(...asked) {
        const answer = await store.claim(...asked)
        if (answer.claims.length > 0 && losing-- > 0) throw new StoreUnavailableError('the thread ended')
        return answer
      },
    })
    const through = testMillOn(cut, { queues, tasks: [task] })
    whenFirst = async () => {}
    started.length = 0
    const done = new Promise((resolve) => through.on('job.completed', resolve))
    await through.enqueue(task, undefined, { id: 'first' })
    const worker = through.worker()
    await worker.start()

    expect(await done).toMatchObject({ id: 'first', attempt: 1 })
    expect(started).toEqual(['first'])
    expect(await through.queue('work').depth()).toMatchObject({ suspects: 0, crashed: 0 })
    await worker.stop()
  })

  it('is put back even if its listener holds 1,000 other claims', async () => {
    const store = await storeSource('memory:').create()
    let losing = false
    const cut = changed(store, {
      async claim(...asked) {
        const answer = await store.claim(...asked)
        if (!losing || answer.claims.length === 0) return answer
        losing = false
        throw new StoreUnavailableError('the answer was lost')
      },
    })
    const through = testMillOn(cut, { queues, tasks: [task] })
    await through.enqueueMany(task, Array(1_000).fill({}))
    const listener = through.listener('work', { concurrency: 1_001 })
    onTestFinished(() => listener.close({ grace: 0 }))
    for (let held = 0; held < 1_000; held += 1) await listener.next()
    await through.enqueue(task, undefined, { id: 'lost' })
    losing = true

    expect(await listener.next()).toMatchObject({ id: 'lost', attempt: 1, crashes: 0 })
  })
})
