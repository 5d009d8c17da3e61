import { describe, expect, it } from 'vitest'
import { IdleWaiter } from '#src/runtime/idle-waiter.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

const longMs = 20_000
const settings = (name: string) => ({ name, kind: 'plain' as const, order: 'fifo' as const, maxCrashes: 3, dead: {} })
const job = { id: 'a', task: 't', payload: '1', priority: 0, rememberMs: 0 }
const never = () => new AbortController().signal

async function opened() {
  const store = new MemoryStore()
  await store.open([settings('a'), settings('b')])
  const waits: (readonly string[])[] = []
  const wait = store.wait.bind(store)
  const signals: AbortSignal[] = []
  store.wait = (queues, forMs, signal) => {
    waits.push(queues)
    signals.push(signal)
    return wait(queues, forMs, signal)
  }
  const enqueue = (queue: string) => store.enqueue([{ callId: queue, queue, jobs: [job] }])
  return { store, waits, signals, enqueue, waiter: new IdleWaiter(store, () => performance.now()) }
}

describe('the idle waiter', () => {
  it('wakes one of several waiters for a queue when it is rung, and lets the others wait', async () => {
    const { enqueue, store, waiter } = await opened()
    const first = waiter.rest(['a', 'b'], longMs, never())
    const second = waiter.rest(['a'], 150, never())
    await enqueue('a')
    expect(await first).toEqual(['a'])
    await store.claim([{ queue: 'a', limit: 1 }], { worker: 'w', leaseMs: longMs })

    expect(await second).toEqual([])
  })

  it('waits in the store once for all waiters, for the queues of each', async () => {
    const { enqueue, waiter, waits } = await opened()
    const onA = waiter.rest(['a'], longMs, never())
    const onA2 = waiter.rest(['a'], longMs / 2, never())
    expect(waits).toEqual([['a']])
    const onB = waiter.rest(['b'], longMs / 2, never())
    expect(waits).toEqual([['a'], ['a', 'b']])

    await enqueue('b')
    expect(await onB).toEqual(['b'])
    await enqueue('a')
    expect(await onA).toEqual(['a'])
    void onA2
  })

  it('ends a wait when its time is over or it is aborted, and never waits longer than its waiters', async () => {
    const { waiter } = await opened()
    const abort = new AbortController()
    const aborted = waiter.rest(['a'], longMs, abort.signal)
    abort.abort()

    expect(await aborted).toEqual([])
    expect(await waiter.rest(['a'], longMs, abort.signal)).toEqual([])
    expect(await waiter.rest(['a'], 5, never())).toEqual([])
  })

  it('aborts its call when the last waiter leaves, but none that has ended', async () => {
    const { enqueue, signals, waiter } = await opened()
    const abort = new AbortController()
    const left = waiter.rest(['b'], longMs, abort.signal)
    abort.abort()
    await left
    const rung = waiter.rest(['a'], longMs, never())
    await enqueue('a')
    await rung

    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  })

  it('passes a store failure to all waiters', async () => {
    const { store, waiter } = await opened()
    store.wait = () => Promise.reject(new Error('away'))

    await expect(Promise.all([waiter.rest(['a'], longMs, never())])).rejects.toThrow('away')
    await expect(waiter.rest(['b'], longMs, never())).rejects.toThrow('away')
  })
})
