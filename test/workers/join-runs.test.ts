/** Joins and their members as real workers and listeners run them, and the sweeps of workers. */

import { defineTask, many } from 'millrace'
import type { Store } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { JoinSweeps, sweepOnce } from '#src/workers/join-sweeps.js'
import { changed } from '../changed.js'
import { nextEvent, recorded } from '../next-event.js'
import { givenSurroundings } from '../runtime/given-surroundings.js'
import { storeKinds, testMill, testMillOn } from '../test-mill.js'

const single = defineTask({ name: 'single', queue: 'singles', run: async (n: number) => n * 2 })
const batched = defineTask({
  name: 'batched',
  queue: 'batches',
  batch: { size: 2 },
  run: async (all: number[]) => all.map((n) => n * 3),
})
const foreign = defineTask({ name: 'foreign', queue: 'elsewhere' }).returns<string>()
const odd = defineTask({ name: 'odd', queue: 'singles', run: async () => () => {} })
const all = defineTask({
  name: 'all',
  queue: 'joins',
  joins: { one: single, some: many(batched), told: foreign },
  async run(_: object, ctx) {
    const some: number[] = []
    for await (const n of ctx.joined.some) some.push(n)
    return { one: ctx.joined.one, some, told: ctx.joined.told }
  },
})
const onOdd = defineTask({
  name: 'on-odd',
  queue: 'joins',
  joins: { odd },
  retry: { max: 0 },
  run: async () => 'never',
})
const tasks = [single, batched, foreign, odd, all, onOdd]
const queues = {
  singles: { retention: { results: 'none' as const } },
  batches: { retention: { results: 'none' as const } },
  elsewhere: { retention: { results: 'none' as const } },
}

describe.each(storeKinds)('a worker on %s', (kind) => {
  it('runs a join when its members have ended, in a batch and at a listener too, and says that it is ready', async () => {
    const mill = testMill({ tasks, queues }, kind)
    const ready = nextEvent(mill, 'join.ready')
    await mill.worker({ queues: ['singles', 'batches', 'joins'] }).start()
    const job = await mill.enqueue(all, {}, { after: { one: 5, some: [1, 2, 3], told: undefined } })
    const claim = await mill.listener<string>('elsewhere').next()
    expect(await job.status()).toBe('waiting')
    await claim!.complete('done elsewhere')

    expect(await job.result({ timeout: '10s' })).toEqual({ one: 10, some: [3, 6, 9], told: 'done elsewhere' })
    expect(await ready).toEqual({ queue: 'joins', id: job.id, task: 'all' })
  })

  it('fails a join whose member returned what cannot be kept, and says which', async () => {
    const mill = testMill({ tasks, queues }, kind)
    const dropped = recorded(mill, 'result.dropped')
    await mill.worker({ queues: ['singles', 'joins'] }).start()
    const job = await mill.enqueue(onOdd, {}, { after: { odd: undefined } })

    await expect(job.result({ timeout: '10s' })).rejects.toThrow(
      `the result of member '${job.id}.odd' of set 'odd' in queue 'singles' could not be kept`,
    )
    expect(dropped.map(({ task }) => task)).toEqual(['odd'])
  })
})

describe.each(storeKinds)('a listener on %s', (kind) => {
  const settled = defineTask({
    name: 'settled',
    queue: 'listened',
    joins: { one: single, some: many(foreign, { onDead: 'go-on' }) },
  })
  const made = () => testMill({ tasks: [single, foreign, settled], queues: { ...queues, listened: {} } }, kind)

  it('that claims a join is given what became of its members, by the definition of its task', async () => {
    const mill = made()
    await mill.enqueue(settled, undefined, { after: { one: 4, some: [undefined, undefined] } })
    await (await mill.listener('singles').next()).complete(8)
    const members = mill.listener<undefined>('elsewhere')
    await (await members.next()).complete('far')
    await (await members.next()).fail(new Error('broken'))
    const claim = await mill.listener('listened').next()
    const { one, some } = await claim.joined(settled)
    const told: unknown[] = []
    for await (const member of some) told.push(member)

    expect(one).toBe(8)
    expect(some.counts).toEqual({ completed: 1, dead: 1, cancelled: 0, expired: 0 })
    expect(told).toEqual([
      { fate: 'completed', result: 'far' },
      { fate: 'dead', error: expect.stringContaining('broken') },
    ])
    // Nor is the list of failures shown that is stored behind it.
    expect((told[1] as { error: string }).error).not.toContain('failures')
    expect(await claim.complete()).toBe('ok')
  })

  it('is refused what a job did not wait for, and keeps the claim', async () => {
    const mill = made()
    await mill.enqueue(single, 1)
    const claim = await mill.listener('singles').next()

    await expect(claim.joined(settled)).rejects.toMatchObject({
      code: 'argument-invalid',
      message: expect.stringContaining("was given task 'settled', and job"),
    })
    await expect(claim.joined(single)).rejects.toThrow("task 'single', which has no `joins`")
    await expect(claim.joined({} as never)).rejects.toMatchObject({ code: 'argument-invalid' })
    const same = defineTask({ name: 'single', queue: 'singles', joins: { told: foreign } })
    await expect(claim.joined(same)).rejects.toMatchObject({ code: 'job-invalid' })
    expect(await claim.complete(2)).toBe('ok')
  })
})

describe('the handler of a join', () => {
  const sum = defineTask({
    name: 'sum',
    queue: 'joins',
    joins: { some: many(single) },
    retry: { max: 0 },
    async run(_: unknown, ctx) {
      let total = 0
      for await (const n of ctx.joined.some) total += n
      return total
    },
  })
  /** A mill whose store has no answer to the first `cuts` reads of members, and the calls that failed. */
  const cutFor = (cuts: number) => {
    const store = new MemoryStore()
    let left = cuts
    const joins = changed(store.joins!, {
      async ends(...asked) {
        left -= 1
        if (left >= 0) throw new StoreUnavailableError('away')
        return store.joins!.ends(...asked)
      },
    })
    const mill = testMillOn(changed<Store>(store, { joins }), { tasks: [single, sum], queues })
    return { mill, failed: recorded(mill, 'store.failed') }
  }

  it('waits for a store that is away while it reads its members', async () => {
    const { mill, failed } = cutFor(2)
    await mill.worker({ queues: ['singles', 'joins'] }).start()
    const job = await mill.enqueue(sum, undefined, { after: { some: [1, 2] } })

    expect(await job.result({ timeout: '20s' })).toBe(6)
    expect(failed.map(({ call }) => call)).toEqual(['joins.ends', 'joins.ends'])
  })

  it('waits no longer when its job is cancelled', async () => {
    const { mill } = cutFor(Number.POSITIVE_INFINITY)
    await mill.enqueue(sum, undefined, { id: 'a', after: { some: [1] } })
    await (await mill.listener('singles').next()).complete(2)
    const claim = await mill.listener('joins').next()
    const { some } = await claim.joined(sum)
    const isAway = nextEvent(mill, 'store.failed')
    const read = some[Symbol.asyncIterator]().next()
    const refused = expect(read).rejects.toMatchObject({ code: 'job-cancelled' })
    await isAway
    await mill.queue('joins').jobs.cancel(['a'])
    expect(await claim.extend()).toBe('cancel')

    await refused
    await claim.release()
  })
})

describe('the sweeps of a worker', () => {
  const failed = { queue: 'joins', id: 'a', task: 'all', reason: 'join-late' }

  /** Sweeps that answer like this, one after the other; `pass` lets the planned one begin. */
  function sweeping(answers: readonly (() => { failed: (typeof failed)[]; more: boolean })[]) {
    const events = new Events()
    const heard: string[] = []
    events.on('join.failed', ({ id }) => heard.push(id))
    events.on('store.failed', ({ call, retryMs }) => heard.push(`${call} ${retryMs}`))
    const planned: { ms: number; work: () => void }[] = []
    let swept = 0
    const sweeps = new JoinSweeps(
      givenSurroundings({ events }),
      { joins: { sweep: async () => answers[Math.min(swept++, answers.length - 1)]!() } },
      (ms, work) => {
        planned.push({ ms, work })
        return () => void planned.pop()
      },
    )
    return { sweeps, heard, planned, swept: () => swept, pass: () => planned.pop()!.work() }
  }

  it('come about every 5 s, again at once while there is more, and report each dead join', async () => {
    const none = () => ({ failed: [], more: false })
    const { sweeps, heard, planned, swept, pass } = sweeping([() => ({ failed: [failed], more: true }), none])
    sweeps.start()
    expect(planned[0]!.ms).toBeLessThanOrEqual(5_000)
    pass()
    await expect.poll(() => planned.length).toBe(1)

    expect([swept(), heard]).toEqual([2, ['a']])
    expect(planned[0]!.ms).toBeGreaterThanOrEqual(3_750)
    expect(planned[0]!.ms).toBeLessThanOrEqual(6_250)
    await sweeps.stop()
    expect(planned).toEqual([])
  })

  it('leave a store alone while it is let sleep', async () => {
    const planned: (() => void)[] = []
    let isAsleep = true
    let swept = 0
    const joins = { sweep: async () => ({ failed: [], more: ++swept < 0 }) }
    const idle = { isAsleep: () => isAsleep }
    const sweeps = new JoinSweeps(givenSurroundings(), { joins, idle }, (_, work) => {
      planned.push(work)
      return () => {}
    })
    sweeps.start()
    planned.pop()!()
    await expect.poll(() => planned.length).toBe(1)
    expect(swept).toBe(0)
    isAsleep = false
    planned.pop()!()
    await expect.poll(() => swept).toBe(1)
    await sweeps.stop()
  })

  it('sweep the waits for signals though the joins fail, and report dead joins though the waits fail', async () => {
    const events = new Events()
    const heard: string[] = []
    events.on('join.failed', ({ id }) => heard.push(id))
    const breaking = async () => {
      throw new Error('damaged')
    }
    let swept = 0
    const steps = {
      sweep: async () => {
        swept += 1
        return { woken: 0, more: false }
      },
    }

    await expect(sweepOnce({ joins: { sweep: breaking }, steps }, 'w', events)).rejects.toThrow('damaged')
    expect(swept).toBe(1)
    const joins = { sweep: async () => ({ failed: [failed], more: false }) }
    await expect(sweepOnce({ joins, steps: { sweep: breaking } }, 'w', events)).rejects.toThrow('damaged')
    expect(heard).toEqual(['a'])
  })

  it('go on after the store was away', async () => {
    const away = () => {
      throw new Error('away')
    }
    const { sweeps, heard, planned, pass } = sweeping([away])
    sweeps.start()
    pass()
    await expect.poll(() => planned.length).toBe(1)

    expect(heard).toEqual(['sweep 5000'])
    await sweeps.stop()
  })
})
