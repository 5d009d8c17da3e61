import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { recorded } from '../next-event.js'
import { enqueue, listenerOn, queues } from './listener/listener-scene.js'
import { popped, pushed, tenPerTen, throttledScene } from './throttled-scene.js'

describe('a pop', () => {
  it('costs a claim and a settle for an item, also for many at once, and one claim a second while it is denied', async () => {
    const { mill, clock, calls } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 5, window: '8s' })
    await pushed(queue, 20)
    expect(await queue.pop()).toBe('item-19')
    expect(calls.splice(0)).toEqual(['claim', 'settle'])
    const many = await Promise.all(Array.from({ length: 6 }, () => queue.pop()))
    expect(many).toEqual(['item-18', 'item-17', 'item-16', 'item-15', null, null])
    expect(calls.splice(0)).toEqual(['claim', 'settle'])

    for (let ms = 0; ms < 8_200; ms += 50) {
      expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 8_201 - ms })
      clock.advance(50)
    }
    // The claim that gave the last item told of the denial itself.
    expect(calls.splice(0)).toEqual(Array.from({ length: 8 }, () => 'claim'))
    clock.advance(1)
    expect(await queue.pop()).toBe('item-14')
  })

  it('reports the wait of the window, not of the lease of the previous item', async () => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 2, window: '1m' })
    await pushed(queue, 3)
    expect(await Promise.all([queue.pop(), queue.pop(), queue.pop()])).toEqual(['item-2', 'item-1', null])

    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 61_001 })
  })

  it('leaves timers their turn, however often it is denied and repeated', async () => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 1, window: '1h' })
    await pushed(queue, 2)
    await queue.pop()
    let isOver = false
    setTimeout(() => {
      isOver = true
    }, 5)
    for (let pops = 0; pops < 100_000 && !isOver; pops += 1) await queue.pop()

    expect(isOver).toBe(true)
  })
})

describe('an item', () => {
  it('is gone after the answer to a pop, and no longer a job of the queue', async () => {
    const { mill, store, clock } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    await queue.push('item')
    await queue.pop()
    clock.advance(3_600_000)

    expect((await store.depth(['sites'])).depths[0]).toMatchObject({ ready: 0, running: 0, dead: 0, processed: 1 })
    expect(await queue.tryPop()).toEqual({ wait: 'empty' })
  })

  it('is back after ten seconds if its taker died before the answer, and comes first', async () => {
    const { mill, clock, claim } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 100, window: '1s' })
    const crashes = recorded(mill, 'job.crashed')
    await pushed(queue, 3)
    for (const alone of [true, false])
      await claim([{ queue: 'sites', limit: 1 }], { worker: `dead-${alone}`, leaseMs: 10_000, alone })
    clock.advance(10_000)

    expect(new Set(await Promise.all([queue.pop(), queue.pop(), queue.pop()]))).toEqual(
      new Set(['item-2', 'item-1', 'item-0']),
    )
    expect(await queue.pop()).toBeNull()
    expect(crashes.map(({ charged }) => charged).sort()).toEqual([false, true])
  })

  it('is claimed alone only if nobody else in the process holds a claim', async () => {
    const { mill, store, claim } = throttledScene({ queues, tasksElsewhere: ['encode'] })
    const alone: boolean[] = []
    store.claim = (from, by) => {
      if (from[0]!.queue === 'sites') alone.push(by.alone === true)
      return claim(from, by)
    }
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    await pushed(queue, 2)
    await queue.pop()
    expect(alone).toEqual([true])
    await enqueue(mill, 'film')
    const job = await listenerOn(mill).next()

    expect(await queue.pop()).toBe('item-0')
    expect(alone).toEqual([true, false])
    await job.complete()
  })

  it('is given once even if the store took its end and could not answer', async () => {
    const { mill, store, settle } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    await queue.push('item')
    let failures = 2
    store.settle = async (items) => {
      const answers = await settle(items)
      if (failures-- > 0) throw new StoreUnavailableError('the line is cut')
      return answers
    }

    expect(await queue.pop()).toBe('item')
    expect(await queue.pop()).toBeNull()
  })

  it('is not given to a slow taker if another one has it by then', async () => {
    const { mill, store, clock, claim, settle } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 100, window: '1s' })
    const refused = recorded(mill, 'settle.refused')
    await queue.push('item')
    let other: Awaited<ReturnType<typeof claim>> | undefined
    store.settle = async (items) => {
      if (other === undefined) {
        clock.advance(10_000)
        other = await claim([{ queue: 'sites', limit: 1 }], { worker: 'other', leaseMs: 60_000, alone: true })
      }
      return settle(items)
    }

    expect(await queue.tryPop()).toEqual({ wait: 'empty', forMs: 60_000 })
    expect(other?.claims).toHaveLength(1)
    expect(refused).toMatchObject([{ queue: 'sites', task: 'item', kind: 'complete', answer: 'lost' }])
  })

  it('goes to the morgue if it cannot be decoded, and the next one is given', async () => {
    const { mill, store } = throttledScene({ queues: { sites: {} } })
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    const buried = recorded(mill, 'job.buried')
    await queue.length()
    const job = { id: 'broken', task: 'item', payload: '{', priority: 1, rememberMs: 0 }
    await store.enqueue([{ callId: 'a call', queue: 'sites', jobs: [job, { ...job, id: 'other', codec: 'msgpack' }] }])
    await queue.push('item')

    expect(await popped(queue)).toEqual(['item'])
    expect(buried).toMatchObject([{ id: 'broken', reason: 'bad-payload' }])
    expect(await mill.queue('sites').morgue.get('broken')).toMatchObject({ state: 'dead', reason: 'bad-payload' })
    // Somebody may have that codec.
    expect(await mill.queue('sites').jobs.get('other')).toMatchObject({ state: 'scheduled' })
  })
})
