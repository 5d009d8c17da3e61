import { defineOrderedTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { QueueAdmin } from '#src/client/admin/queue-admin.js'
import { Registry } from '#src/core/registry.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill } from '../../test-mill.js'
import { adminParts, OrderedScene, orderedStores, someIds } from '../enqueue/ordered-scene.js'

const someWorker = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, concurrency: 1, running: 0, startedAt: 0 }

describe.each(orderedStores)('administration of an ordered queue, on %s', (_, make) => {
  it('shows a waiting job with its payloads decoded, from old to new', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push([
      { id: 'a', payload: '{"rev":2}', score: 2, meta: '{"by":"Ada"}' },
      { id: 'a', payload: '{"rev":1}', score: 1 },
    ])
    const job = await scene.admin().jobs.get('a')

    expect(job).toMatchObject({
      id: 'a',
      state: 'ready',
      payloadCount: 2,
      payloads: [
        { input: { rev: 1 }, score: 1 },
        { input: { rev: 2 }, score: 2, meta: { by: 'Ada' } },
      ],
    })
    for (const absent of ['input', 'meta', 'pendingCount', 'error']) expect(job).not.toHaveProperty(absent)
    expect(job!.payloads![0]).not.toHaveProperty('meta')
  })

  it('shows the payloads that a running job holds, and counts the waiting ones', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push([1, 2, 3].map((rev) => ({ id: 'a', payload: `${rev}`, score: rev })))
    await scene.claim(1, 1)

    expect(await scene.admin().jobs.get('a')).toMatchObject({
      state: 'running',
      payloads: [{ input: 1, score: 1 }],
      payloadCount: 1,
      pendingCount: 2,
    })
    expect(await scene.admin().depth()).toMatchObject({ running: 1, payloads: 2, fresh: 0, retries: 0 })
  })

  it('lists a job with its first ten payloads and their total', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(Array.from({ length: 12 }, (_, i) => ({ id: 'a', payload: `${i}`, score: i })))
    const { jobs } = await scene.admin().jobs.list({ by: 'id' })

    expect(jobs[0]!.payloads!.map(({ input }) => input)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(jobs[0]!.payloadCount).toBe(12)
  })

  it('reports payloads that cannot be decoded, up to three for each job', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push([
      { id: 'a', payload: '{"ok":true}', score: 1 },
      { id: 'a', payload: 'null', score: 2, meta: '{' },
      { id: 'a', payload: 'x', codec: 'msgpack', score: 3 },
      ...[4, 5].map((score) => ({ id: 'a', payload: `{${score}`, score })),
    ])
    const { payloads, error } = (await scene.admin().jobs.get('a'))!

    expect(payloads!.map((payload) => 'input' in payload)).toEqual([true, true, false, false, false])
    expect(payloads![1]).toEqual({ input: null, score: 2 })
    expect(error!.split('\n')).toEqual([
      expect.stringMatching(/^payload 2 of 5 \(score 2\) has a meta that cannot be decoded: not JSON/),
      "payload 3 of 5 (score 3) was stored by codec 'msgpack', this mill has codec 'json'",
      expect.stringMatching(/^payload 4 of 5 \(score 4\) cannot be decoded: not JSON/),
      'and 1 more of the payloads',
    ])
  })

  it.each([
    [0, 'dead'],
    [1, 'ready'],
  ] as const)('fails a job by hand as its task says: with %i retries it is then %s', async (max, state) => {
    const scene = await OrderedScene.on(make)
    const registry = new Registry([defineOrderedTask({ name: 'sync-order', queue: 'orders', retry: { max } })], [])
    const { jobs } = new QueueAdmin('orders', { ...adminParts(scene.store), registry })
    await scene.push(['a'])
    await scene.claim()

    expect(await jobs.fail('a', 'by hand')).toBe(true)
    expect(await jobs.get('a')).toMatchObject({ state, error: 'by hand' })
  })

  it('works on the connection that creates nothing, and lists the workers that serve the queue', async () => {
    const scene = await OrderedScene.on(make)
    const refused = () => Promise.reject(new Error('opened'))
    const admin = new QueueAdmin('orders', { ...adminParts(scene.store), connect: refused })
    await scene.push(['a', 'b'])
    await scene.claim()
    for (const [id, queues] of [
      ['v', ['mail']],
      ['w', ['mail', 'orders']],
    ] as const)
      await scene.store.workers!.beat({ ...someWorker, id, queues }, 60_000)

    const { depth, workers } = await admin.look()
    expect(depth).toMatchObject({ queue: 'orders', ready: 1, running: 1 })
    expect(workers.map(({ id }) => id)).toEqual(['w'])
  })

  it('refuses to delete running jobs, names them, and deletes the others', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(['1', '2', '3'])
    await scene.claim(2)
    const { jobs } = scene.admin()

    await expect(jobs.delete([1, 2, 3, 'absent', 1])).rejects.toMatchObject({
      code: 'job-running',
      message: expect.stringMatching(
        /^2 jobs run in queue 'orders' .* \('1', '2'\): cancel them, .* Others deleted: 1\.$/,
      ),
      ids: ['1', '2'],
      deleted: 1,
    })
    expect((await jobs.list()).jobs.map(({ id }) => id)).toEqual(['1', '2'])
    expect(await jobs.delete('all')).toBe(0)
  })

  it('names the queues that have the missing jobs, and deletes nothing there', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(['1', '2'])
    await scene.push(['1', '3'], 'later')
    await scene.push(['3'], 'mail')
    const { jobs } = scene.admin()

    await expect(jobs.delete([3, 'absent'])).rejects.toMatchObject({
      code: 'job-elsewhere',
      message: expect.stringMatching(
        /^queue 'orders' has no such jobs, but other queues have: '3' in queue 'later', '3' in/,
      ),
      jobs: [
        { id: '3', queue: 'later' },
        { id: '3', queue: 'mail' },
      ],
    })
    expect(await jobs.delete(['absent'])).toBe(0)
    // What was deleted here is none of the others' business.
    expect(await jobs.delete([1, 3])).toBe(1)
    expect((await scene.admin('later').jobs.list()).jobs).toHaveLength(2)
  })

  it('fails for a declared queue that is not stored yet, and says so', async () => {
    const scene = await OrderedScene.on(make)
    await expect(scene.admin('unused').look()).rejects.toMatchObject({
      code: 'queue-unknown',
      message: expect.stringMatching(/^queue 'unused' is declared, and the store has nothing of it yet\./),
    })
  })

  it('accepts a number as an id, but not in a plain queue', async () => {
    const scene = await OrderedScene.on(make)
    await scene.bury(['2'])
    await scene.push(['1', '2', '3'])
    const { jobs, morgue } = scene.admin()
    expect([(await jobs.get(1))?.id, (await morgue.get(2))?.id, await jobs.get(4)]).toEqual(['1', '2', undefined])
    expect(await morgue.revive([2])).toBe(1)
    expect(await jobs.delete([3, 'absent'])).toBe(1)
    await scene.claim(10)
    expect(await jobs.fail(1, 'why')).toBe(true)
    const mail = scene.admin('mail')
    const refused = { code: 'argument-invalid', message: expect.stringMatching(/^a job id must be .*text.*; got 1\.$/) }

    for (const call of [mail.jobs.get(1), mail.morgue.get(1), mail.jobs.cancel(['a', 1]), mail.jobs.fail(1, 'why')])
      await expect(call).rejects.toMatchObject(refused)
  })

  it.each([undefined, null, Number.NaN, {}, '', 1n])('refuses %s as an id', async (id) => {
    const { jobs, morgue } = (await OrderedScene.on(make)).admin()
    const given = id as never

    for (const call of [jobs.get(given), morgue.get(given), jobs.cancel([given]), jobs.fail(given, 'why')])
      await expect(call).rejects.toMatchObject({ code: 'argument-invalid' })
  })

  it('finds the entry in the morgue next to a live job with the same id', async () => {
    const scene = await OrderedScene.on(make)
    await scene.bury(['a'])
    await scene.push([{ id: 'a', payload: '"new"' }])

    expect(await scene.admin().jobs.get('a')).toMatchObject({ state: 'ready', payloads: [{ input: 'new' }] })
    expect(await scene.admin().morgue.get('a')).toMatchObject({
      state: 'dead',
      reason: 'buried',
      payloads: [{ input: { of: 'a' } }],
    })
    expect(await scene.admin().morgue.get('b')).toBeUndefined()
  })

  it('reports depths with payloads and the lag of each shard', async () => {
    const scene = await OrderedScene.on(make)
    // By crc32, 'order-42' lies in shard 2 of 4.
    await scene.push([{ id: 'order-42' }, { id: 'order-42', payload: '2' }])
    await scene.harness.advance(3_000)
    const depth = await scene.admin().depth()

    expect(depth).toMatchObject({ ready: 1, payloads: 2, lagMs: 3_000, fresh: 1 })
    expect(depth.shardLagsMs).toEqual([0, 0, 3_000, 0])
  })

  it('buries the oldest payload only if an operator fails a job for the last time', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push([1, 2].map((rev) => ({ id: 'a', payload: `${rev}`, score: rev })))
    await scene.claim()

    expect(await scene.admin().jobs.fail('a', 'poison', { last: true })).toBe(true)
    expect(await scene.admin().morgue.get('a')).toMatchObject({ payloads: [{ input: 1 }], error: 'poison' })
    expect(await scene.admin().jobs.get('a')).toMatchObject({ state: 'ready', payloads: [{ input: 2 }], attempt: 1 })
    expect(await scene.admin().jobs.fail('a', 'again')).toBe(false)
  })
})

describe.each(orderedStores)('resharding, on %s', (_, make) => {
  it('waits for running jobs, reports it, and keeps every job', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(someIds(30))
    const [claim] = await scene.claim()
    const heard: { changed: number; isWaiting: boolean }[] = []
    let waits = () => {}
    const waiting = new Promise<void>((resolve) => {
      waits = resolve
    })
    const moved = scene.admin().reshard(3, {
      onProgress(progress) {
        heard.push(progress)
        if (heard.filter(({ isWaiting }) => isWaiting).length === 2) waits()
      },
    })
    await waiting
    expect(await scene.claim()).toEqual([])
    await scene.store.settle([{ queue: 'orders', id: claim!.id, fence: claim!.fence, kind: 'complete' }])

    await moved
    expect(heard.at(-1)).toEqual({ changed: await moved, isWaiting: false })
    expect(await scene.admin().depth()).toMatchObject({ ready: 29, processed: 1 })
    expect((await scene.admin().depth()).shardLagsMs).toHaveLength(3)
    expect(await scene.claim(29)).toHaveLength(29)
  })

  it('stays unfinished if it is aborted, and can be continued', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(someIds(30))
    const [claim] = await scene.claim()
    const abort = new AbortController()
    const reason = new Error('the operator went to bed')
    const onProgress = () => abort.abort(reason)

    await expect(scene.admin().reshard(3, { signal: abort.signal, onProgress })).rejects.toBe(reason)
    await expect(scene.admin().reshard(3, { signal: abort.signal })).rejects.toBe(reason)
    await expect(scene.admin().reshard(5)).rejects.toMatchObject({ code: 'config-conflict' })
    expect(await scene.claim()).toEqual([])
    await scene.store.settle([{ queue: 'orders', id: claim!.id, fence: claim!.fence, kind: 'complete' }])
    await scene.admin().reshard(3)
    expect(await scene.claim(29)).toHaveLength(29)
  })

  it('happens once if two operators start it at the same time', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(someIds(500))
    const moved = await Promise.all([scene.admin().reshard(7), scene.otherAdmin().reshard(7)])

    expect(moved[0]! + moved[1]!).toBe(500)
    expect(await scene.admin().reshard(7)).toBe(0)
    expect(await scene.admin().depth()).toMatchObject({ ready: 500, payloads: 500 })
  })

  it('refuses an invalid number of shards, and plain queues', async () => {
    const scene = await OrderedScene.on(make)

    for (const shards of [0, 1_025, 2.5, Number.NaN, '3' as never])
      await expect(scene.admin().reshard(shards)).rejects.toThrow(
        /the shards of queue 'orders' must be a whole number from 1 to 1024; got/,
      )
    await expect(scene.admin('mail').reshard(3)).rejects.toMatchObject({ code: 'argument-invalid' })
  })
})

describe.each(orderedStores)('moving, on %s', (_, make) => {
  it('keeps scores and attempts of waiting and dead jobs, and leaves running ones', async () => {
    const scene = await OrderedScene.on(make)
    await scene.bury(['dead'])
    await scene.push([{ id: 'failed', score: 7 }])
    const [failed] = await scene.claim()
    const { id, fence } = failed!
    await scene.store.settle([{ queue: 'orders', id, fence, kind: 'retry', delayMs: 60_000, error: 'x' }])
    await scene.push(['running'])
    await scene.claim()
    await scene.push(someIds(100))
    await scene.push([{ id: 'o00001', payload: '"there"', score: 1 }], 'later')

    expect(await scene.admin().move('later')).toBe(102)
    expect(await scene.admin('later').jobs.get('failed')).toMatchObject({
      attempt: 2,
      error: 'x',
      payloads: [{ score: 7 }],
    })
    expect(await scene.admin('later').morgue.get('dead')).toMatchObject({ reason: 'buried' })
    expect((await scene.admin('later').jobs.get('o00001'))!.payloads).toHaveLength(2)
    expect(await scene.admin().depth()).toMatchObject({ ready: 0, scheduled: 0, running: 1, dead: 0 })
    expect(await scene.admin().move('later')).toBe(0)
  })

  it('moves each job once if two operators do it at the same time', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(someIds(1_500))
    const moved = await Promise.all([scene.admin().move('later'), scene.otherAdmin().move('later')])

    expect(moved[0]! + moved[1]!).toBe(1_500)
    expect(await scene.admin('later').depth()).toMatchObject({ ready: 1_500, payloads: 1_500 })
  })

  it('refuses an unknown queue, a plain one, the queue itself, and an invalid name', async () => {
    const scene = await OrderedScene.on(make)

    await expect(scene.admin().move('nowhere')).rejects.toMatchObject({ code: 'queue-unknown' })
    await expect(scene.admin().move('mail')).rejects.toMatchObject({ code: 'argument-invalid' })
    await expect(scene.admin('mail').move('orders')).rejects.toMatchObject({ code: 'argument-invalid' })
    await expect(scene.admin().move('orders')).rejects.toThrow(/cannot be moved into itself/)
    await expect(scene.admin().move('{x}')).rejects.toThrow(/a queue name must be 1 to 80 characters .*got "\{x\}"/)
  })
})

describe.each(orderedStores)('the same action by two operators at once, on %s', (_, make) => {
  const ids = someIds(1_200)

  it.each([
    ['cancel', (admin) => admin.jobs.cancel('all')],
    ['delete', (admin) => admin.jobs.delete('all')],
    ['bury', (admin) => admin.jobs.bury('all')],
    ['cancel by id', (admin) => admin.jobs.cancel(ids)],
    ['bury by id', (admin) => admin.jobs.bury(ids)],
    ['clear', (admin) => admin.clear()],
  ] satisfies [string, (admin: ReturnType<OrderedScene['admin']>) => Promise<number>][])(
    '%s changes each job once',
    async (_name, act) => {
      const scene = await OrderedScene.on(make)
      await scene.push(ids)
      const counts = await Promise.all([act(scene.admin()), act(scene.otherAdmin())])

      expect(counts[0]! + counts[1]!).toBe(1_200)
      expect(await act(scene.admin())).toBe(0)
      expect(await scene.admin().depth()).toMatchObject({ ready: 0, payloads: 0 })
    },
  )

  it.each([
    ['revive', (admin) => admin.morgue.revive('all'), 1_200],
    ['delete', (admin) => admin.morgue.delete('all'), 0],
  ] satisfies [string, (admin: ReturnType<OrderedScene['admin']>) => Promise<number>, number][])(
    'morgue action %s changes each job once',
    async (_name, act, ready) => {
      const scene = await OrderedScene.on(make)
      await scene.bury(ids)
      const counts = await Promise.all([act(scene.admin()), act(scene.otherAdmin())])

      expect(counts[0]! + counts[1]!).toBe(1_200)
      expect(await scene.admin().depth()).toMatchObject({ ready, dead: 0 })
    },
  )

  it('runNow makes each scheduled job due once, and causes no lag', async () => {
    const scene = await OrderedScene.on(make)
    await scene.push(ids.map((id) => ({ id, delayMs: 3_600_000 })))
    const counts = await Promise.all([scene.admin().jobs.runNow('all'), scene.otherAdmin().jobs.runNow('all')])

    expect(counts[0]! + counts[1]!).toBe(1_200)
    expect(await scene.admin().depth()).toMatchObject({ ready: 1_200, scheduled: 0, lagMs: 0 })
  })
})

describe.each(storeKinds)('the drain of a queue, on %s', (kind) => {
  it('reports what is left, and can be aborted while the queue keeps refusing jobs', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, { steps: ['ok'] })
    const over = new AbortController()
    const left: unknown[] = []
    const drained = m.queue('default').drain({
      signal: over.signal,
      onProgress: (told) => {
        left.push(told)
        over.abort(new Error('enough'))
      },
    })

    await expect(drained).rejects.toThrow('enough')
    expect(left).toEqual([{ waiting: 1, running: 0 }])
    await expect(m.enqueue(task, { steps: ['ok'] })).rejects.toMatchObject({ code: 'queue-draining' })
  })

  it('resolves when nothing is left', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, { steps: ['ok'] })
    const left: unknown[] = []
    const drained = m.queue('default').drain({ onProgress: (told) => left.push(told) })
    await m.worker().start()
    await drained

    expect(left.at(-1)).toEqual({ waiting: 0, running: 0 })
  })
})
