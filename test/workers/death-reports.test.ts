/** The reports of deaths: one job comes of each, whoever reports it and however often that is tried. */

import { once } from 'node:events'
import { bury, type Death, defineTask, type Mill, type MillOptions, many, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '#src/core/platform/clock.js'
import { Registry } from '#src/core/registry.js'
import type { AnyTask } from '#src/core/task/any-task.js'
import { declaredQueues } from '#src/mill/options/declared-queues.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { DeathReports } from '#src/workers/death-reports.js'
import { storeAddress, workerChild } from '../end-to-end/worker-child.js'
import { nextEvent, recorded } from '../next-event.js'
import { givenSurroundings } from '../runtime/given-surroundings.js'
import { storeKinds, testMill, testMillOn } from '../test-mill.js'

const retry = { max: 0 }

/** A task that gets a job for each death, and what it got. */
function obituaries() {
  const got: Death[] = []
  const parents: unknown[] = []
  const task = defineTask({
    ...{ name: 'obituary', queue: 'obituaries' },
    run: async (death: Death, { job }) => {
      got.push(death)
      parents.push(job.parent)
    },
  })
  return { got, parents, task }
}

describe.each(storeKinds)('a worker on %s', (kind) => {
  it('reports a death at once to the task that onDead names, with all that is known of it', async () => {
    const { got, parents, task } = obituaries()
    const send = defineTask({
      ...{ name: 'send', retry, onDead: task },
      run: async (_: { to: string }) => {
        throw new TypeError('no such host')
      },
    })
    const mill = testMill({ tasks: [send, task] }, kind)
    const done = nextEvent(mill, 'job.completed')
    const job = await mill.enqueue(send, { to: 'ada' })
    await mill.worker().start()
    await done

    const dead = (await job.record())!
    expect(got).toEqual([
      {
        ...{ job: job.id, queue: 'default', task: 'send', input: { to: 'ada' }, reason: 'no-retries', crashes: 0 },
        ...{ error: expect.stringMatching(/^TypeError: no such host/), attempt: dead.attempt },
        diedAt: dead.finishedAt!.getTime(),
      },
    ])
    expect(got[0]!.error).toBe(dead.error)
    expect(parents).toEqual([{ queue: 'default', id: job.id, task: 'send' }])
  })

  it('reports a death that came about without it, and one that a process left when it died', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const mill = testMill({ tasks: [send, task] }, kind)
    const { id } = await mill.enqueue(send, 1)
    // An operator buries it. No worker is there, as after the crash of the only one.
    expect(await mill.queue('default').jobs.bury([id])).toBe(1)
    const done = nextEvent(mill, 'job.completed')
    await mill.worker().start()
    await done

    expect(got).toMatchObject([{ job: id, reason: 'buried', input: 1 }])
  })

  it('reports each of many that die together, and those of a batch and of a join', async () => {
    const { got, task } = obituaries()
    const odd = (n: number) => n % 2 === 1
    const each = defineTask({
      ...{ name: 'each', retry, onDead: task },
      run: async (n: number) => (odd(n) ? bury('odd') : n),
    })
    const some = defineTask({
      ...{ name: 'some', queue: 'batches', batch: { size: 10 }, onDead: task },
      run: async (all: number[]) => all.map((n) => (odd(n) ? bury('odd') : n)),
    })
    const sum = defineTask({
      name: 'sum',
      queue: 'sums',
      joins: { all: many(each) },
      onDead: task,
      run: async () => {},
    })
    const mill = testMill({ tasks: [each, some, sum, task] }, kind)
    const numbers = Array.from({ length: 60 }, (_, n) => n)
    await mill.enqueueMany(each, numbers)
    await mill.enqueueMany(some, numbers)
    await mill.enqueue(sum, {}, { after: { all: [1, 2] } })
    const all = nextEvent(mill, 'job.completed', ({ queue }) => queue === 'obituaries' && got.length === 62)
    await mill.worker({ concurrency: 8 }).start()
    await all

    expect(new Set(got.map(({ job }) => job)).size).toBe(62)
    const count = (name: string) => got.filter((death) => death.task === name).length
    expect([count('each'), count('some'), count('sum')]).toEqual([31, 30, 1])
    expect(got.find((death) => death.task === 'sum')).toMatchObject({ reason: 'join-member-dead', input: {} })
  })
})

/** A mill on a store that the test looks into, and the reports of workers on it. */
function scene(tasks: AnyTask[], options: Omit<MillOptions, 'store' | 'tasks'> = {}) {
  const data = new MemoryData()
  const store = new MemoryStore(systemClock, data)
  const mill = testMillOn(new MemoryStore(systemClock, data), { ...options, tasks }) as Mill
  const registry = new Registry(tasks, declaredQueues(new Map(), tasks))
  let mono = 0
  const items: string[] = []
  /** As another worker has it. */
  const reports = (deaths = store.deaths) => {
    const children = {
      enqueueItem: async ({ task, input, options: how }: { task: AnyTask; input: unknown; options: object }) => {
        items.push(String((how as { id?: string }).id))
        return mill.enqueue(task as never, input as never, how as never)
      },
    }
    const parts = { ...givenSurroundings({ mono: () => mono }), registry, children: children as never }
    return { reports: DeathReports.of(parts, { deaths }, [...registry.queues.keys()])!, events: parts.events }
  }
  const dies = async (task: AnyTask, input: unknown = 1) => {
    const job = await mill.enqueue(task as never, input as never)
    await mill.queue(task.queue).jobs.bury([job.id])
    return job.id
  }
  const unreported = (names: string[]) => store.deaths.unreported([...registry.queues.keys()], names, 100)
  return { mill, store, reports, dies, unreported, items, wait: (ms: number) => (mono += ms) }
}

describe('a death', () => {
  it('makes one job, though several workers report it at once', async () => {
    const { task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, reports, dies, unreported, items } = scene([send, task])
    await dies(send)
    const workers = [reports(), reports(), reports()]
    const steps = await Promise.all(workers.map((one) => one.reports.step()))

    expect(steps.map(({ reported }) => reported)).toEqual([1, 1, 1])
    expect(new Set(items).size).toBe(1)
    expect(items).toHaveLength(3)
    expect((await mill.queue('obituaries').depth()).ready).toBe(1)
    expect(await unreported(['send'])).toEqual([])
  })

  it('makes one job, though the process that reported it dies before it says so, and the job has run by then', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, store, reports, dies, unreported, items } = scene([send, task])
    await dies(send)
    const dying = { ...store.deaths, reported: () => Promise.reject(new Error('killed')) }
    await expect(reports(dying).reports.step()).rejects.toThrow('killed')
    expect(await unreported(['send'])).toHaveLength(1)
    const done = nextEvent(mill, 'job.completed')
    await mill.worker({ queues: ['obituaries'] }).start()
    await done

    expect(await reports().reports.step()).toEqual({ reported: 1, more: false })
    expect(await reports().reports.step()).toEqual({ reported: 0, more: false })
    expect([got.length, items.length, new Set(items).size]).toEqual([1, 2, 1])
    expect(await mill.queue('obituaries').depth()).toMatchObject({ ready: 0, dead: 0 })
  })

  it('of a job that was revived is another one', async () => {
    const { task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, reports, dies, items } = scene([send, task])
    const id = await dies(send)
    await reports().reports.step()
    await mill.queue('default').morgue.revive([id])
    await mill.queue('default').jobs.bury([id])
    await reports().reports.step()

    expect(new Set(items).size).toBe(2)
    expect((await mill.queue('obituaries').depth()).ready).toBe(2)
  })

  it('is reported without an input that is too large to be sent on, or cannot be decoded', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, store, reports, dies } = scene([send, task], { maxPayloadBytes: 1_000 })
    const large = await dies(send, 'x'.repeat(990))
    const job = { id: 'torn', task: 'send', payload: '{"to":', priority: 0, rememberMs: 0, reportsDeath: true as const }
    await store.enqueue([{ callId: 'c', queue: 'default', jobs: [job] }])
    await mill.queue('default').jobs.bury(['torn'])
    const both = nextEvent(mill, 'job.completed', () => got.length === 2)
    expect(await reports().reports.step()).toMatchObject({ reported: 2 })
    await mill.worker({ queues: ['obituaries'] }).start()
    await both

    const about = got.map((death) => [death.job, 'input' in death])
    expect(new Map(about as [string, boolean][])).toEqual(new Map(Object.entries({ [large]: false, torn: false })))
  })

  it('that its task refuses is kept and tried again a minute later; others go on meanwhile', async () => {
    const strict = defineTask({
      ...{ name: 'strict', queue: 'obituaries', run: async () => {} },
      input: z.object({ input: z.string() }),
    })
    const { task } = obituaries()
    const bad = defineTask({ name: 'bad', onDead: strict as never, run: async (_: unknown) => {} })
    const good = defineTask({ name: 'good', onDead: task, run: async () => {} })
    const { reports, dies, unreported, wait } = scene([bad, good, strict, task])
    await dies(bad, 1)
    const one = reports()
    const failures: string[] = []
    one.events.on('hook.failed', ({ hook }) => failures.push(hook))
    expect(await one.reports.step()).toEqual({ reported: 0, more: false })
    await dies(bad, 'text')
    await dies(good)
    expect(await one.reports.step()).toEqual({ reported: 1, more: false })
    expect(failures).toEqual(["onDead of task 'bad'"])
    expect(await unreported(['bad'])).toHaveLength(2)
    wait(60_000)
    expect(await one.reports.step()).toEqual({ reported: 1, more: false })
    expect(failures).toHaveLength(2)
    expect(await unreported(['bad', 'good'])).toMatchObject([{ payload: '1' }])
  })

  it('is reported by workers that know its task, by any of its names', async () => {
    const { task } = obituaries()
    const old = defineTask({ name: 'old', onDead: task })
    const send = defineTask({ name: 'send', aliases: ['old'], onDead: task, run: async () => {} })
    const { mill, store, reports, unreported, items } = scene([send, task])
    await mill.ready()
    const job = { id: 'a', payload: '1', priority: 0, rememberMs: 0, reportsDeath: true as const }
    const jobs = [
      { ...job, task: old.name },
      { ...job, id: 'b', task: 'unknown' },
    ]
    await store.enqueue([{ callId: 'c', queue: 'default', jobs }])
    await store.records.bury('default', 'all')
    expect(await reports().reports.step()).toEqual({ reported: 1, more: false })

    expect(items).toHaveLength(1)
    expect(await unreported(['unknown'])).toMatchObject([{ id: 'b' }])
  })
})

describe('a process that is killed at the moment of a burial', () => {
  const program = `
    import { defineTask, millrace } from 'millrace'
    const report = defineTask({ name: 'obituary', queue: 'obituaries' })
    const run = async () => { throw new Error('broken') }
    const send = defineTask({ name: 'send', retry: { max: 0 }, onDead: report, run })
    const mill = millrace({ store: process.env.TEST_STORE, tasks: [send, report] })
    mill.on('job.buried', () => process.kill(process.pid, 'SIGKILL'))
    const { id } = await mill.enqueue(send, 'input')
    console.log(id)
    await mill.worker().start()`

  it.each(['sqlite', 'redis'] as const)(
    'leaves the death to the next worker, on %s',
    { timeout: 60_000 },
    async (kind) => {
      const store = await storeAddress(kind)
      const child = await workerChild(program, store)
      if (child.signalCode === null) await once(child, 'exit')
      expect(child.signalCode).toBe('SIGKILL')
      const { got, task } = obituaries()
      const send = defineTask({ name: 'send', onDead: task })
      const mill = testMill({ store, tasks: [send, task] })
      const done = nextEvent(mill, 'job.completed')
      await mill.worker().start()
      await done

      const { jobs } = await mill.queue('default').morgue.list()
      expect(got).toMatchObject([{ job: jobs[0]!.id, input: 'input', reason: 'no-retries' }])
      expect(await mill.queue('obituaries').depth()).toMatchObject({ ready: 0, processed: 1 })
    },
  )
})

it('jobs of a task without onDead cost its workers no look', async () => {
  const { task } = obituaries()
  const { store } = scene([task])
  const parts = { ...givenSurroundings(), registry: new Registry([task], declaredQueues(new Map(), [task])) }
  expect(DeathReports.of({ ...parts, children: {} as never }, store, ['obituaries'])).toBeUndefined()
})

it('an unrecoverable error brings a job to its death, and neither its end nor a cancel does', async () => {
  const { got, task } = obituaries()
  const send = defineTask({
    ...{ name: 'send', onDead: task },
    run: async (what: string) => {
      if (what === 'dies') throw new UnrecoverableError('never again')
    },
  })
  const mill = testMill({ tasks: [send, task] })
  const gone = await mill.enqueue(send, 'cancelled', { delay: '1h' })
  await gone.cancel()
  await mill.enqueueMany(send, ['completes', 'dies', 'completes'])
  const buried = recorded(mill, 'job.buried')
  const done = nextEvent(mill, 'job.completed', ({ queue }) => queue === 'obituaries')
  await mill.worker().start()
  await done

  expect(buried).toHaveLength(1)
  expect(got).toMatchObject([{ input: 'dies', reason: 'unrecoverable' }])
})
