/** The reports of deaths: one job comes of each, whoever reports it and however often that is tried. */

import { once } from 'node:events'
import { bury, type Death, defineTask, type Mill, type MillOptions, many, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { QueueDrainingError, QueueFullError, StoreFullError, StoreUnavailableError } from '#src/core/errors.js'
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
const keys = { new: '07'.repeat(32) }

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
  const reports = (
    deaths = store.deaths,
    refusal?: () => Error | undefined,
    given: Parameters<typeof givenSurroundings>[0] = {},
  ) => {
    const children = {
      enqueueItem: async ({ task, input, options: how }: { task: AnyTask; input: unknown; options: object }) => {
        const error = refusal?.()
        if (error !== undefined) throw error
        items.push(String((how as { id?: string }).id))
        return mill.enqueue(task as never, input as never, how as never)
      },
    }
    const parts = { ...givenSurroundings({ mono: () => mono, ...given }), registry, children: children as never }
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

/** A task that takes only deaths of jobs whose input is a text. */
function pickyObituaries() {
  return defineTask({
    ...{ name: 'picky', queue: 'obituaries', run: async () => {} },
    input: z.object({ input: z.string() }),
  })
}

type Reporter = ReturnType<ReturnType<typeof scene>['reports']>

/** How many deaths each step reports, until none is left to be looked for. */
async function stepsOf({ reports }: Reporter): Promise<number[]> {
  const steps: number[] = []
  for (let isOver = false; !isOver; ) {
    const { reported, more } = await reports.step()
    steps.push(reported)
    isOver = !more
  }
  return steps
}

/** The refusals that listeners hear of. */
function heard({ events }: Reporter): string[] {
  const failures: string[] = []
  events.on('hook.failed', ({ hook }) => failures.push(hook))
  return failures
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

  it('whose input one worker cannot read is left to another that has the key', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, reports, dies, unreported, wait } = scene([send, task], { seal: { current: 'new', keys } })
    await dies(send, { to: 'ada' })
    const without = reports()
    const failed = recorded(without.events, 'hook.failed')
    expect(await stepsOf(without)).toEqual([0])
    wait(60_000)
    expect(await stepsOf(without)).toEqual([0])
    expect(failed).toMatchObject([
      { hook: "onDead of task 'send'", error: { code: 'codec-failed', message: expect.stringMatching(/key 'new'/) } },
      {},
    ])
    expect(await unreported(['send'])).toHaveLength(1)
    const done = nextEvent(mill, 'job.completed')
    expect(await stepsOf(reports(undefined, undefined, { packing: mill.adminParts.packing }))).toEqual([1])
    await mill.worker({ queues: ['obituaries'] }).start()
    await done

    expect(got).toMatchObject([{ task: 'send', input: { to: 'ada' } }])
  })

  it('whose input no worker can read is reported without it a day later', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, reports, dies, unreported } = scene([send, task], { seal: { current: 'new', keys } })
    await dies(send, { to: 'ada' })
    const { diedAt } = (await unreported(['send']))[0]!
    const at = (now: number) => reports(undefined, undefined, { now: () => now })
    expect(await stepsOf(at(diedAt + 86_399_999))).toEqual([0])
    expect(await stepsOf(at(diedAt + 86_400_000))).toEqual([1])
    const done = nextEvent(mill, 'job.completed')
    await mill.worker({ queues: ['obituaries'] }).start()
    await done

    expect(got.map((death) => [death.task, 'input' in death])).toEqual([['send', false]])
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

  it('is reported without its error too, if that is too large', async () => {
    const { got, task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { mill, store, reports } = scene([send, task], { maxPayloadBytes: 400 })
    const { id } = await mill.enqueue(send, 'x'.repeat(300))
    const from = [{ queue: 'default', limit: 1 }]
    const { claims } = await store.claim(from, { worker: 'w', leaseMs: 1_000, alone: false })
    await store.settle([{ queue: 'default', id, fence: claims[0]!.fence, kind: 'bury', error: 'e'.repeat(500) }])
    const done = nextEvent(mill, 'job.completed')
    expect(await reports().reports.step()).toMatchObject({ reported: 1 })
    await mill.worker({ queues: ['obituaries'] }).start()
    await done

    expect(got).toEqual([
      { job: id, queue: 'default', task: 'send', attempt: 1, crashes: 0, diedAt: expect.any(Number) },
    ])
  })

  it('that is refused for ever keeps back no other of its task', async () => {
    const picky = pickyObituaries()
    const send = defineTask({ name: 'send', onDead: picky as never, run: async (_: unknown) => {} })
    const { reports, dies, unreported } = scene([send, picky])
    for (let n = 0; n < 50; n += 1) await dies(send, n === 3 ? n : `text ${n}`)
    const one = reports()
    const failures = heard(one)

    expect(await stepsOf(one)).toEqual([19, 20, 10])
    expect(failures).toHaveLength(1)
    expect(await unreported(['send'])).toMatchObject([{ payload: '3' }])
  })

  it('waits for no more than minutes behind those that are refused for ever, however many come before it', async () => {
    const picky = pickyObituaries()
    const send = defineTask({ name: 'send', onDead: picky as never, run: async (_: unknown) => {} })
    const { reports, dies, wait } = scene([send, picky])
    for (let n = 0; n < 50; n += 1) await dies(send, n < 30 ? n : `text ${n}`)
    const one = reports()
    const failures = heard(one)
    const minutes: number[][] = []
    for (let minute = 0; minute < 4; minute += 1) {
      minutes.push(await stepsOf(one))
      wait(60_000)
    }

    expect(minutes.flat().reduce((sum, reported) => sum + reported, 0)).toBe(20)
    expect(minutes.slice(0, 2)).toEqual([
      [0, 0],
      [0, 0],
    ])
    expect(failures.length).toBeLessThanOrEqual(5)
  })

  it('that is refused is tried again after ever longer times, an hour at the longest', async () => {
    const picky = pickyObituaries()
    const send = defineTask({ name: 'send', onDead: picky as never, run: async (_: unknown) => {} })
    const { reports, dies, wait } = scene([send, picky])
    await dies(send)
    const one = reports()
    const failures = heard(one)
    const after: number[] = []
    for (let minute = 0; minute < 300; minute += 1) {
      const before = failures.length
      await one.reports.step()
      if (failures.length > before) after.push(minute)
      wait(60_000)
    }

    expect(after).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243])
  })

  it.each([
    ['its queue is full', new QueueFullError('obituaries')],
    ['its queue is draining', new QueueDrainingError('obituaries')],
    ['the store is full', new StoreFullError('no room')],
  ])('waits a minute with all others of its task if %s, and is then reported', async (_, refusal) => {
    const { task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { reports, dies, unreported, items, wait } = scene([send, task])
    for (let n = 0; n < 30; n += 1) await dies(send)
    let error: Error | undefined = refusal
    const one = reports(undefined, () => error)
    const failures = heard(one)
    expect(await stepsOf(one)).toEqual([0, 0])
    error = undefined
    wait(59_999)
    expect(await stepsOf(one)).toEqual([0])
    expect([failures.length, items.length]).toEqual([1, 0])
    wait(1)
    expect(await stepsOf(one)).toEqual([20, 10])
    expect(await unreported(['send'])).toEqual([])
  })

  it('is reported at once to a task of a throttled queue, and its job waits there', async () => {
    const { task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const queues = { obituaries: { throttle: { limit: 1, window: '1h' } } } as const
    const { mill, reports, dies } = scene([send, task], { queues })
    for (let n = 0; n < 3; n += 1) await dies(send)

    expect(await stepsOf(reports())).toEqual([3])
    expect((await mill.queue('obituaries').depth()).ready).toBe(3)
  })

  it('whose job the store could not take is no reason to report others again', async () => {
    const { task } = obituaries()
    const send = defineTask({ name: 'send', onDead: task, run: async () => {} })
    const { reports, dies, unreported, wait } = scene([send, task])
    for (let n = 0; n < 3; n += 1) await dies(send)
    let calls = 0
    const one = reports(undefined, () => {
      calls += 1
      return calls === 2 ? new StoreUnavailableError('away') : undefined
    })
    await expect(one.reports.step()).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await unreported(['send'])).toHaveLength(1)
    expect(await one.reports.step()).toEqual({ reported: 0, more: false })
    wait(5_000)
    expect(await one.reports.step()).toEqual({ reported: 1, more: false })
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

describe('the death of a job that was enqueued for a death', () => {
  it('is reported as any, with the death that it was to report', async () => {
    const { got, task } = obituaries()
    const mourning = defineTask({
      ...{ name: 'mourning', queue: 'mourning', retry, onDead: task },
      run: async (death: Death) => bury(`no words for ${death.job}`),
    })
    const send = defineTask({ name: 'send', retry, onDead: mourning, run: async (_: number) => bury('refused') })
    const mill = testMill({ tasks: [send, mourning, task] }, 'sqlite')
    const done = nextEvent(mill, 'job.completed')
    const { id } = await mill.enqueue(send, 1)
    await mill.worker().start()
    await done

    expect(got).toMatchObject([
      { task: 'mourning', reason: `no words for ${id}`, input: { job: id, task: 'send', input: 1, reason: 'refused' } },
    ])
    expect(await mill.queue('mourning').depth()).toMatchObject({ dead: 1, ready: 0 })
  })
})

/** Runs the program until it kills itself, and then gives the next mill on its store, and the obituaries that its worker gets. */
async function afterKill(program: string, kind: 'sqlite' | 'redis') {
  const store = await storeAddress(kind)
  const child = await workerChild(program, store)
  if (child.signalCode === null) await once(child, 'exit')
  expect(child.signalCode).toBe('SIGKILL')
  const { got, task } = obituaries()
  const send = defineTask({ name: 'send', onDead: task })
  return { mill: testMill({ store, tasks: [send, task] }), got }
}

describe('a process that is killed between the report of a death and its note', () => {
  const program = `
    import { bury, defineTask, millrace } from 'millrace'
    const report = defineTask({ name: 'obituary', queue: 'obituaries' })
    const send = defineTask({ name: 'send', onDead: report, run: async () => bury('refused') })
    const mill = millrace({ store: process.env.TEST_STORE, tasks: [send, report] })
    const { id } = await mill.enqueue(send, 'input')
    console.log(id)
    mill.on('job.enqueued', () => process.kill(process.pid, 'SIGKILL'))
    await mill.worker({ queues: ['default'] }).start()`

  it.each(['sqlite', 'redis'] as const)(
    'has its report repeated by the next worker, and no second job comes of it, on %s',
    { timeout: 60_000 },
    async (kind) => {
      const { mill, got } = await afterKill(program, kind)
      const { deaths } = await mill.adminParts.look()
      await mill.ready()
      expect(await deaths!.backlog(['default'], 9)).toMatchObject([{ task: 'send', count: 1 }])
      const done = nextEvent(mill, 'job.completed')
      const again = nextEvent(mill, 'job.enqueued')
      const worker = mill.worker()
      await worker.start()
      const [, { outcome }] = await Promise.all([done, again])
      await worker.stop()

      expect([outcome, got.length]).toEqual(['duplicate', 1])
      expect(await deaths!.backlog(['default'], 9)).toEqual([])
      expect(await mill.queue('obituaries').depth()).toMatchObject({ ready: 0, running: 0, processed: 1 })
    },
  )
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
      const { mill, got } = await afterKill(program, kind)
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
