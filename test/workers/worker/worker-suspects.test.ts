import { defineTask, type Mill } from 'millrace'
import type { Store } from 'millrace/store'
import { ManualClock, memoryHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { processIdentity } from '#src/runtime/process/process-identity.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const harnesses = { memory: memoryHarness, sqlite: sqliteHarness }

/** A store in hand, for a mill whose workers share it with one that is said to have died. */
async function store(kind: keyof typeof harnesses): Promise<Store> {
  const harness = await harnesses[kind]()
  onTestFinished(() => harness.close())
  return harness.open()
}

/** Has a worker take so many jobs and die with them in hand. */
async function crash(on: Store, jobs: number): Promise<void> {
  const { claims } = await on.claim([{ queue: 'default', limit: jobs }], { worker: 'dead', leaseMs: 600_000 })
  expect(claims).toHaveLength(jobs)
  await on.workers!.gone(claims, 'dead')
}

/** A task whose handlers tell in whose company they run, and end when they are told to. */
function watched() {
  const running = new Set<string>()
  const company = new Map<string, number>()
  const gates = new Map<string, () => void>()
  const task = defineTask({
    name: 'watched',
    run: async (gated, ctx) => {
      const { id } = ctx.job
      running.add(id)
      for (const one of running) company.set(one, Math.max(running.size, company.get(one) ?? 0))
      await (gated ? new Promise<void>((resolve) => gates.set(id, resolve)) : new Promise(setImmediate))
      running.delete(id)
    },
  })
  return { task, company, end: (id: string) => gates.get(id)!() }
}

const jobs = (m: Mill, task: ReturnType<typeof watched>['task'], ids: readonly string[], gated = false) =>
  m.enqueueMany(task, Array(ids.length).fill(gated), (_, i) => ({ id: ids[i]! }))

function completions(m: Mill, count: number): Promise<unknown> {
  const completed = recorded(m, 'job.completed')
  return nextEvent(m, 'job.completed', () => completed.length === count)
}

describe.each(['memory', 'sqlite'] as const)('suspects, on %s', (kind) => {
  it('run one by one while nothing else does, and then the others run together again', async () => {
    const on = await store(kind)
    const { task, company } = watched()
    const m = testMillOn(on, { tasks: [task] })
    const suspects = ['s1', 's2', 's3']
    await jobs(m, task, suspects)
    await crash(on, 3)
    const others = ['a', 'b', 'c', 'd']
    await jobs(m, task, others)
    const done = completions(m, 7)
    await m.worker({ concurrency: 4 }).start()
    await done

    expect(suspects.map((id) => company.get(id))).toEqual([1, 1, 1])
    expect(Math.max(...others.map((id) => company.get(id)!))).toBeGreaterThan(1)
    expect(await m.queue('default').depth()).toMatchObject({ suspects: 0, crashed: 3, failed: 0 })
  })

  it('wait until running jobs have ended, and keep all others from beginning meanwhile', async () => {
    const on = await store(kind)
    const { task, company, end } = watched()
    const m = testMillOn(on, { tasks: [task] })
    await jobs(m, task, ['suspect'])
    await crash(on, 1)
    await jobs(m, task, ['long'], true)
    const order = recorded(m, 'job.started')
    const begun = nextEvent(m, 'job.started')
    const done = completions(m, 3)
    await m.worker({ concurrency: 4 }).start()
    await begun
    await jobs(m, task, ['late'])
    end('long')
    await done

    expect(order.map(({ id }) => id)).toEqual(['long', 'suspect', 'late'])
    expect([...company.values()]).toEqual([1, 1, 1])
  })

  it('do not wait for a batch that collects jobs: it begins as it is', async () => {
    const on = await store(kind)
    const { task } = watched()
    const insert = defineTask({ name: 'insert', queue: 'rows', batch: { size: 10, wait: '1m' }, run: () => {} })
    const m = testMillOn(on, { tasks: [task, insert] })
    await jobs(m, task, ['suspect'])
    await crash(on, 1)
    await m.queue('default').pause()
    await m.enqueue(insert, {})
    const order = recorded(m, 'job.started')
    const done = completions(m, 2)
    const worker = m.worker({ concurrency: 4 })
    await worker.start()
    await expect.poll(() => worker.status().jobs.map(({ task }) => task)).toEqual(['insert'])
    await m.queue('default').resume()
    await done

    expect(order.map(({ task }) => task)).toEqual(['insert', 'watched'])
  }, 10_000)

  it('let other jobs run after a second, however many there are', async () => {
    const on = await store(kind)
    const clock = new ManualClock(Date.now())
    // Each takes 600 ms by the clock of the worker.
    const task = defineTask({ name: 'watched', run: () => clock.advance(600) })
    const m = testMillOn(on, { tasks: [task] }, clock)
    await jobs(m, task, ['s1', 's2', 's3', 's4'])
    await crash(on, 4)
    const order = recorded(m, 'job.started')
    const begun = nextEvent(m, 'job.started')
    const done = completions(m, 5)
    // Company has had as long a turn as they.
    m.on('job.completed', ({ id }) => void (id === 'urgent' && clock.advance(1_200)))
    await m.worker().start()
    await begun
    await jobs(m, task, ['urgent'])
    await done

    expect(order.map(({ id }) => id)).toEqual(['s1', 's2', 'urgent', 's3', 's4'])
  })

  it('are charged with the crash of the claim they had alone, and finally buried as crashed', async () => {
    const on = await store(kind)
    const { task } = watched()
    const m = testMillOn(on, { tasks: [task], queues: { default: { maxCrashes: 2 } } })
    const [job] = await jobs(m, task, ['poison'])
    await crash(on, 1)
    for (const worker of ['dead-1', 'dead-2']) {
      const { claims } = await on.claim([{ queue: 'default', limit: 1 }], { worker, leaseMs: 600_000, alone: true })
      expect(await job!.record()).toMatchObject({ suspect: true, state: 'running' })
      await on.workers!.gone(claims, worker)
    }

    expect(await job!.record()).toMatchObject({ state: 'dead', reason: 'crashed', crashes: 2, attempt: 1 })
    expect(await m.queue('default').morgue.revive('all')).toBeDefined()
    expect(await job!.record()).toMatchObject({ state: 'ready', crashes: 0 })
    expect((await job!.record())!.suspect).toBeUndefined()
  })

  it('claimed alone fail with an uncaught error, which can only be theirs', async () => {
    const on = await store(kind)
    const { task } = watched()
    const m = testMillOn(on, { tasks: [task] })
    await jobs(m, task, ['suspect'], true)
    await crash(on, 1)
    const begun = nextEvent(m, 'job.started')
    const failed = nextEvent(m, 'job.failed')
    const worker = m.worker({ grace: 50 })
    await worker.start()
    await begun
    const stray = new Error('nobody caught me')
    worker.fail(stray)

    expect(await failed).toMatchObject({ id: 'suspect', error: stray, attempt: 1 })
    await expect(worker.finished()).rejects.toBe(stray)
  })

  it('of a dead worker on this machine are reported within about a second, by any worker that takes the census', async () => {
    const on = await store(kind)
    const { task } = watched()
    const m = testMillOn(on, { tasks: [task] })
    await jobs(m, task, ['a', 'b'])
    const crashed = recorded(m, 'job.crashed')
    const worker = m.worker()
    // A process that was started before this one under the same number: it cannot live any more.
    const dead = { ...processIdentity(), id: 'dead', ticks: 1 }
    await on.workers!.beat({ ...dead, queues: ['default'], concurrency: 1, running: 2, startedAt: 0 }, 600_000)
    await on.claim([{ queue: 'default', limit: 2 }], { worker: 'dead', leaseMs: 600_000 })
    const done = completions(m, 2)
    await worker.start()
    await done

    expect(crashed.map(({ id, worker: who, charged }) => [id, who, charged])).toEqual([
      ['a', 'dead', false],
      ['b', 'dead', false],
    ])
    expect((await m.workers())!.map(({ id }) => id)).toEqual([worker.id])
  })
})
