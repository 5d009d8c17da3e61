import { defineOrderedTask } from 'millrace'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LeaseLostError, StoreUnavailableError, TimeLimitError, WorkerStoppedError } from '#src/core/errors.js'
import { processSoloGate } from '#src/runtime/solo-gate.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { changed } from '../../changed.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMill, testMillOn } from '../../test-mill.js'
import { enqueue, jobOf, listenerOn, queues, video } from './listener-scene.js'

/** Turns of the real loop: what needs no time has happened then. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    await vi.advanceTimersByTimeAsync(Math.min(left, 250))
    await turns()
  }
}

describe('a listener over time', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance', 'hrtime'],
    })
  })
  afterEach(() => vi.useRealTimers())

  it('returns an overdue job at once, and one due in 5 s not before its time', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill)
    await mill.enqueue(video, 1, { id: 'past', runAt: new Date(Date.now() - 3_600_000) })
    expect((await listener.next()).id).toBe('past')
    await enqueue(mill, 2, { id: 'later', delay: '5s' })
    const given: string[] = []
    void listener.next().then(({ id }) => given.push(id))
    await pass(4_950)
    expect(given).toEqual([])
    await pass(100)
    expect(given).toEqual(['later'])
  })

  it('leaves the record of a job that ran for a second and has no result, but of no shorter one', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill)
    for (const id of ['short', 'long']) {
      await enqueue(mill, 1, { id })
      const claim = await listener.next()
      await claim.started()
      await pass(id === 'long' ? 1_000 : 900)
      const settled = claim.complete()
      await turns()
      expect(await settled).toBe('ok')
    }

    expect((await mill.queue('video').jobs.list({ state: 'completed' })).jobs.map(({ id }) => id)).toEqual(['long'])
  })

  it('gives no job later than the spread of the rules of now allows', async () => {
    const store = new MemoryStore()
    const throttle = { limit: 10, window: '1m' } as const
    const mill = testMillOn(store, { queues: { video: { throttle } }, tasks: [video] })
    const listener = listenerOn(mill)
    const wasted = recorded(mill, 'permit.wasted')
    await enqueue(mill, 1, { id: 'a' })
    const first = listener.next()
    await pass(250)
    await (await first).complete()
    await store.throttles.set('video', [{ limit: 10, windowMs: 16_000, spreadMs: 400, moderate: false }])
    await pass(6_000)

    // The answer to its claim is 700 ms late. The spread was a second.
    const claim = store.claim.bind(store)
    store.claim = async (...asked) => {
      const claimed = await claim(...asked)
      if (claimed.claims.length === 0) return claimed
      store.claim = claim
      await vi.advanceTimersByTimeAsync(700)
      return claimed
    }
    await enqueue(mill, 2, { id: 'b' })
    const second = listener.next()
    await pass(2_000)
    expect((await second).id).toBe('b')
    expect(wasted[0]).toMatchObject({ id: 'b', reason: 'late' })
  })

  it('claims at the time of its lead, even if nobody waits any more', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { queues, tasks: [video] })
    const listener = listenerOn(mill)
    const leaving = new AbortController()
    await enqueue(mill, 1, { id: 'a', delay: '5s' })
    const gone = listener.next({ signal: leaving.signal }).catch(() => {})
    await turns()
    leaving.abort()
    await gone
    const claimed = vi.spyOn(store, 'claim')
    await pass(4_900)
    expect(claimed).not.toHaveBeenCalled()
    await pass(200)
    expect(claimed.mock.calls.map(([from]) => from)).toEqual([[{ queue: 'video', limit: 0, leaseMs: 30_000 }]])
  })

  it('keeps a claim as long as the store is away, and ends it only when the store says so', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { queues, tasks: [video] })
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    const lost = recorded(mill, 'lease.lost')
    const extend = store.extend.bind(store)
    let answers = () => Promise.reject<never>(new StoreUnavailableError('away'))
    store.extend = (items) => answers() ?? extend(items)
    const said = claim.started({ pid: 4_242, host: 'elsewhere' })
    await pass(120_000)
    expect([claim.signal.aborted, lost]).toEqual([false, []])

    answers = () => undefined as never
    await pass(3_000)
    expect(await said).toBe('ok')
    expect(await jobOf(mill, 'a')).toMatchObject({ state: 'running', pid: 4_242 })
    await mill.queue('video').jobs.fail('a', 'from outside')
    await pass(15_000)
    expect(claim.signal.reason).toBeInstanceOf(LeaseLostError)
    expect(lost).toHaveLength(1)
  })

  it.each([
    [{}, 7 * 86_400_000],
    [{ retention: { results: { age: '1h' } } }, 3_600_000],
  ] as const)('keeps a result for 7 days unless the queue has another setting: %j', async (queue, keepMs) => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { queues: { video: queue }, tasks: [video] })
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const settled = vi.spyOn(store, 'settle')
    await (await listener.next()).complete('some result')
    expect(settled.mock.calls).toMatchObject([[[{ kind: 'complete', result: { keepMs } }]]])
  })

  it('frees the room of a lost claim, even if nobody settles it', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill, { concurrency: 1 })
    await enqueue(mill, 1, { id: 'a' })
    await enqueue(mill, 2, { id: 'b' })
    const lost = await listener.next()
    await mill.queue('video').jobs.fail('a', 'from outside')
    const next = listener.next()
    await pass(15_000)
    expect(lost.signal.reason).toBeInstanceOf(LeaseLostError)
    expect((await next).id).toBe('b')
  })

  it('renews its leases by heartbeats', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    await pass(180_000)
    expect(claim.signal.aborted).toBe(false)
    expect(await claim.complete('after three minutes')).toBe('ok')
  })

  it('renews the leases of more than 1,000 claims', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill, { concurrency: 1_002 })
    await mill.enqueueMany(video, Array(1_002).fill({}))
    let last = await listener.next()
    for (let held = 1; held < 1_002; held += 1) last = await listener.next()
    await pass(40_000)
    // A claim finds leases that have ended.
    const ended = recorded(mill, 'job.crashed')
    const other = listenerOn(mill)
    other.next().catch(() => {})
    await turns()
    expect(ended).toEqual([])
    expect(await last.complete()).toBe('ok')
  })

  it('ends a job at its time limit if its caller does not', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill, { timeLimit: '1m' })
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    await pass(59_000)
    expect(claim.signal.aborted).toBe(false)
    await pass(1_500)
    expect(claim.signal.reason).toBeInstanceOf(TimeLimitError)
    const buried = nextEvent(mill, 'job.buried')
    await pass(5_500)
    expect(await buried).toMatchObject({ id: 'a', reason: 'no-retries' })
  })

  it('closes after its grace, and puts unsettled jobs back, except those running elsewhere', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const listener = listenerOn(mill)
    for (const id of ['done', 'idle', 'elsewhere']) await enqueue(mill, id, { id })
    const [done, idle, elsewhere] = [await listener.next(), await listener.next(), await listener.next()]
    await elsewhere.started({ pid: 4_242, host: 'elsewhere' })
    const detached = recorded(mill, 'job.detached')
    const closed = listener.close({ grace: '10s' })
    await pass(9_000)
    expect(idle.signal.aborted).toBe(false)
    expect(await done.complete()).toBe('ok')
    await pass(2_000)
    await closed

    expect(idle.signal.reason).toBeInstanceOf(WorkerStoppedError)
    expect(elsewhere.signal.aborted).toBe(false)
    expect(detached).toMatchObject([{ id: 'elsewhere', worker: listener.id, child: 4_242 }])
    expect(await jobOf(mill, 'idle')).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
    expect((await jobOf(mill, 'elsewhere'))?.state).toBe('running')
    const other = listenerOn(mill)
    const attached = await other.attach(elsewhere.token)
    await pass(120_000)
    expect(attached.signal.aborted).toBe(false)
    expect(await attached.complete('went on')).toBe('ok')
  })

  it('gives a job up when another process attaches, which continues and settles it', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { queues, tasks: [video] })
    const [first, second] = [listenerOn(mill), listenerOn(mill)]
    await mill.enqueue(video, { file: 'a' }, { id: 'a', meta: { for: 'b' } })
    const claim = await first.next()
    await claim.checkpoint({ frame: 7 })
    const attached = await second.attach(claim.token)
    expect(attached).toMatchObject({ id: 'a', task: 'encode', input: { file: 'a' }, meta: { for: 'b' } })
    expect(attached).toMatchObject({ fence: claim.fence, attempt: 1, lastCheckpoint: { frame: 7 } })
    await pass(6_000)
    await first.close({ grace: 0 })
    expect((await jobOf(mill, 'a'))?.state).toBe('running')
    expect(claim.signal.aborted).toBe(false)
    await pass(60_000)
    expect(await attached.complete('by the second')).toBe('ok')
    expect(await claim.complete('by the first')).not.toBe('ok')
    await expect(second.attach(claim.token)).rejects.toThrow(LeaseLostError)
  })

  it('does not put back on close a job that was attached to a moment before', async () => {
    const mill = testMill({ queues, tasks: [video] })
    const [first, second] = [listenerOn(mill), listenerOn(mill)]
    await enqueue(mill, 1, { id: 'a' })
    const attached = await second.attach((await first.next()).token)
    const closed = first.close({ grace: 0 })
    await pass(100)
    await closed
    expect((await jobOf(mill, 'a'))?.state).toBe('running')
    expect(await attached.complete()).toBe('ok')
  })

  it('does not put back a claim that it is attaching to while it looks for claims whose answer was lost', async () => {
    const store = new MemoryStore()
    let [isAdopted, hasLooked] = [() => {}, () => {}]
    const adopted = new Promise<void>((resolve) => (isAdopted = resolve))
    const looked = new Promise<void>((resolve) => (hasLooked = resolve))
    let claims = 0
    const cut = changed(store, {
      async claim(...asked) {
        claims += 1
        if (claims === 2) {
          await adopted
          throw new StoreUnavailableError('the answer was lost')
        }
        // It looks before it claims again.
        if (claims === 3) hasLooked()
        return store.claim(...asked)
      },
      async extend(items) {
        isAdopted()
        await looked
        return store.extend(items)
      },
    })
    const mill = testMillOn(cut, { queues, tasks: [video] })
    const [first, second] = [listenerOn(mill), listenerOn(mill)]
    await enqueue(mill, 1, { id: 'a' })
    const claim = await first.next()
    second.next().catch(() => {})
    await turns()
    const attached = second.attach(claim.token)
    await pass(3_000)

    expect((await jobOf(mill, 'a'))?.state).toBe('running')
    expect(await (await attached).complete()).toBe('ok')
  })

  it('gives two calls that attach at once the same claim', async () => {
    const store = new MemoryStore()
    const slow = changed(store, {
      async extend(items) {
        await turns()
        return store.extend(items)
      },
    })
    const mill = testMillOn(slow, { queues, tasks: [video] })
    const [first, second] = [listenerOn(mill), listenerOn(mill)]
    await enqueue(mill, 1, { id: 'a' })
    const { token } = await first.next()
    const [one, other] = await Promise.all([second.attach(token), second.attach(token)])

    expect(one).toBe(other)
    expect(await one.complete()).toBe('ok')
  })

  it('runs a suspect alone in this process until it is settled or runs elsewhere', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { queues, tasks: [video] })
    await enqueue(mill, 1, { id: 'suspect' })
    await store.claim([{ queue: 'video', limit: 1 }], { worker: 'dead', leaseMs: 1_000 })
    await pass(1_100)
    const crashed = recorded(mill, 'job.crashed')
    const claimed = vi.spyOn(store, 'claim')
    const listener = listenerOn(mill)
    const suspect = listener.next()
    await pass(500)
    expect(crashed).toMatchObject([{ id: 'suspect', worker: 'dead', charged: false }])
    expect((await suspect).id).toBe('suspect')
    expect(claimed.mock.calls.at(-1)![1]).toMatchObject({ alone: true })

    await enqueue(mill, 2, { id: 'other' })
    const given: string[] = []
    const other = listener.next().then(({ id }) => given.push(id))
    await pass(6_000)
    expect(given).toEqual([])
    await (await suspect).started({ pid: 4_242, host: 'elsewhere' })
    await turns()
    await other
    expect(given).toEqual(['other'])
    const closed = listener.close({ grace: 0 })
    await pass(100)
    await closed
    expect(processSoloGate.held).toBe(0)
  })
})

describe('a listener is refused', () => {
  it('for an ordered queue, and for an undeclared one', () => {
    const order = defineOrderedTask({ name: 'order', queue: 'orders', id: () => 'a' })
    const mill = testMill({ queues, tasks: [order] })
    expect(() => mill.listener('orders')).toThrow(/queue 'orders' is ordered: .* Give its jobs to a worker/)
    expect(() => mill.listener('audio')).toThrow(/queue 'audio' is not declared/)
  })

  it('with invalid options, all at once', () => {
    const mill = testMill({ queues })
    const refused = () => mill.listener('video', { concurrency: 0, timeLimit: 'soon', pace: 1 } as never)
    for (const mistake of [/concurrency: must be a whole/, /timeLimit: must be a duration/, /pace: is not an option/])
      expect(refused).toThrow(mistake)
  })

  it('by a store that has no registry of workers', async () => {
    const store = Object.assign(new MemoryStore(), { workers: undefined })
    const mill = testMillOn(store, { queues })
    const listener = listenerOn(mill)
    await expect(listener.next()).rejects.toMatchObject({ code: 'unsupported-by-store' })
  })
})
