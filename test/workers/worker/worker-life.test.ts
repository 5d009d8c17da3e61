import { defineTask } from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill } from '../../test-mill.js'

/** What a handler returns that hangs, for as long as the test runs. */
function hanging(): Promise<void> {
  return new Promise((resolve) => onTestFinished(() => resolve()))
}

describe.each(storeKinds)('the life of a worker, on %s', (kind) => {
  it('begins with onWorkerStart, once for all workers, before the first claim, and ends with onWorkerStop', async () => {
    const told: string[] = []
    const task = defineTask({ name: 't', run: () => void told.push('job') })
    const m = testMill(
      {
        tasks: [task],
        onWorkerStart: async () => {
          await new Promise((resolve) => setImmediate(resolve))
          told.push('start')
        },
        onWorkerStop: () => void told.push('stop'),
      },
      kind,
    )
    await m.enqueue(task, 1)
    const completed = nextEvent(m, 'job.completed')
    const workers = [m.worker(), m.worker()]
    await Promise.all(workers.map((worker) => worker.start()))
    await completed
    await workers[0]!.stop()
    expect(told).toEqual(['start', 'job'])
    await workers[1]!.stop()

    expect(told).toEqual(['start', 'job', 'stop'])
  })

  it('does not begin if onWorkerStart rejects: nothing is claimed, and start() says why', async () => {
    const task = scriptedTask()
    let attempts = 0
    const m = testMill(
      {
        tasks: [task],
        onWorkerStart: () => {
          attempts += 1
          if (attempts === 1) throw new Error('no database')
        },
      },
      kind,
    )
    const job = await m.enqueue(task, { steps: ['ok'] })
    const worker = m.worker()
    await expect(worker.start()).rejects.toThrow('no database')
    expect(await job.status()).toBe('ready')

    const completed = nextEvent(m, 'job.completed')
    await worker.start()
    await completed
    expect(attempts).toBe(2)
  })

  it('continues in a worker started by onFatal, which keeps the resources; onWorkerStop runs after it ends', async () => {
    const told: string[] = []
    const m = testMill(
      {
        tasks: [scriptedTask()],
        onWorkerStart: () => void told.push('start'),
        onWorkerStop: () => void told.push('stop'),
        onFatal: async () => {
          told.push('fatal')
          await second.start()
        },
      },
      kind,
    )
    const [first, second] = [m.worker(), m.worker()] as const
    await first.start()
    first.fail(new Error('nobody caught it'))
    await expect(first.finished()).rejects.toThrow('nobody caught it')
    expect(second.status().state).toBe('running')
    expect(told).toEqual(['start', 'fatal'])
    await second.stop()

    expect(told).toEqual(['start', 'fatal', 'stop'])
  })

  it('ends once if onFatal waits for the end of all others', async () => {
    const told: string[] = []
    const m = testMill(
      {
        tasks: [scriptedTask()],
        onWorkerStop: () => void told.push('stop'),
        onFatal: async () => {
          await second.stop()
          told.push('fatal')
        },
      },
      kind,
    )
    const [first, second] = [m.worker(), m.worker()] as const
    await Promise.all([first.start(), second.start()])
    first.fail(new Error('nobody caught it'))
    await expect(first.finished()).rejects.toThrow('nobody caught it')

    expect(told).toEqual(['fatal', 'stop'])
  })

  it('begins again for a worker that starts meanwhile only when onWorkerStop has ended', async () => {
    const told: string[] = []
    let stopped = () => {}
    const closing = new Promise<void>((resolve) => (stopped = resolve))
    let stops = () => {}
    const isStopping = new Promise<void>((resolve) => (stops = resolve))
    const m = testMill(
      {
        tasks: [scriptedTask()],
        onWorkerStart: () => void told.push('start'),
        onWorkerStop: async () => {
          told.push('stops')
          stops()
          await closing
          told.push('stopped')
        },
      },
      kind,
    )
    const [first, second] = [m.worker(), m.worker()] as const
    await first.start()
    const ended = first.stop()
    await isStopping
    const started = second.start()
    // Long enough for a worker that waits for nothing.
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate)
    expect(told).toEqual(['start', 'stops'])
    stopped()
    await Promise.all([ended, started])

    expect(told).toEqual(['start', 'stops', 'stopped', 'start'])
  })

  it.each([
    ['has no tasks', [], /at least one task:/],
    ['has no handler', [defineTask({ name: 'handled-elsewhere' })], /at least one task with a handler:/],
  ])('does not begin if the mill %s, because it would run nothing', async (_, tasks, message) => {
    const m = testMill({ tasks, queues: { default: {} } }, kind)
    const started = recorded(m, 'worker.started')
    const worker = m.worker()

    await expect(worker.start()).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringMatching(message),
    })
    expect(started).toEqual([])
    expect(worker.status().state).toBe('starting')
  })

  it('begins if a handler is attached after the worker was created', async () => {
    const task = defineTask({ name: 'late' })
    const m = testMill({ tasks: [task] }, kind)
    const worker = m.worker()
    await expect(worker.start()).rejects.toMatchObject({ code: 'config-invalid' })
    task.handle(() => 'handled')
    await worker.start()

    expect(await (await m.enqueue(task, 1)).result({ timeout: '5s' })).toBe('handled')
  })

  it('ends by itself after maxJobs, and takes no more than those', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const completed = recorded(m, 'job.completed')
    const recycling = nextEvent(m, 'worker.recycling')
    await m.enqueueMany(
      task,
      Array.from({ length: 50 }, () => ({ steps: ['ok' as const] })),
    )
    const worker = m.worker({ maxJobs: 23 })
    await worker.start()

    expect(await recycling).toEqual({ worker: worker.id, reason: 'max-jobs' })
    await worker.finished()
    expect(completed).toHaveLength(23)
  })

  it('ends by itself when the process is larger than maxRss', async () => {
    const m = testMill({ tasks: [scriptedTask()] }, kind)
    const recycling = nextEvent(m, 'worker.recycling')
    const rss = vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(900)
    onTestFinished(() => rss.mockRestore())
    const worker = m.worker({ maxRss: 1_000 })
    await worker.start()
    rss.mockReturnValue(1_001)

    expect(await recycling).toEqual({ worker: worker.id, reason: 'max-rss' })
    await worker.finished()
  })

  it('accepts maxRss as a text too', async () => {
    const m = testMill({ tasks: [scriptedTask()] }, kind)
    const recycling = nextEvent(m, 'worker.recycling')
    const rss = vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(512_000_000)
    onTestFinished(() => rss.mockRestore())
    const worker = m.worker({ maxRss: '1GB' })
    await worker.start()
    rss.mockReturnValue(2_000_000_000)

    expect(await recycling).toEqual({ worker: worker.id, reason: 'max-rss' })
    await worker.finished()
    expect(() => m.worker({ maxRss: 'much' })).toThrow(/maxRss: must be .*512MB/)
    await expect(m.worker({ maxRss: '512MB' }).start()).rejects.toThrow(/maxRss.*before its first job/s)
  })

  it('does not begin in a process that is too large before its first job', async () => {
    const m = testMill({ tasks: [scriptedTask()] }, kind)

    await expect(m.worker({ maxRss: 1_000_000 }).start()).rejects.toThrow(/maxRss.*before its first job/s)
  })

  it('gives its jobs unlimited time while it is being replaced, until it is stopped', async () => {
    const task = defineTask({ name: 'long', run: hanging })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    const recycling = nextEvent(m, 'worker.recycling')
    const worker = m.worker({ maxJobs: 1, grace: 1 })
    await worker.start()
    await recycling
    // Longer than the grace, which does not hold yet.
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(worker.status()).toMatchObject({ state: 'stopping', jobs: [{ id: job.id, phase: 'running' }] })
    await worker.stop()

    expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1 })
  })

  it('ends after an uncaught error: the other jobs finish, onFatal is called once, and a hanging job keeps its lease', async () => {
    const fatal: unknown[] = []
    let finish = () => {}
    const slow = defineTask({ name: 'slow', run: () => new Promise<void>((done) => (finish = done)) })
    const stuck = defineTask({ name: 'stuck', run: hanging })
    const m = testMill({ tasks: [slow, stuck], onFatal: (error) => void fatal.push(error) }, kind)
    const jobs = [await m.enqueue(slow, 1), await m.enqueue(stuck, 1)]
    const begun = Promise.all(jobs.map((job) => nextEvent(m, 'job.started', ({ id }) => id === job.id)))
    const completed = nextEvent(m, 'job.completed')
    const worker = m.worker({ grace: 100 })
    await worker.start()
    await begun
    const error = new Error('nobody caught me')
    worker.fail(error)
    worker.fail(new Error('nor me'))
    finish()

    expect(await completed).toMatchObject({ id: jobs[0]!.id })
    await expect(worker.finished()).rejects.toBe(error)
    expect(fatal).toEqual([error])
    expect(await jobs[1]!.record()).toMatchObject({ state: 'running', attempt: 1 })
  })

  it('can be inspected: what each slot does, and how long the store has been silent', async () => {
    const task = defineTask({
      name: 'watched',
      run: async (_, ctx) => {
        ctx.progress(0.5, 'half way')
        await hanging()
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1, { id: 'a' })
    const started = nextEvent(m, 'job.started')
    const worker = m.worker({ concurrency: 3, grace: 1 })
    expect(worker.status()).toMatchObject({ state: 'starting', jobs: [], silentMs: 0 })
    await worker.start()
    await started

    expect(worker.status()).toEqual({
      id: worker.id,
      state: 'running',
      concurrency: 3,
      retired: 0,
      jobs: [
        {
          queue: 'default',
          id: job.id,
          task: 'watched',
          attempt: 1,
          phase: 'running',
          forMs: expect.any(Number),
          progress: { fraction: 0.5, note: 'half way' },
        },
      ],
      unsettled: 0,
      damaged: [],
      silentMs: expect.any(Number),
    })
    expect(worker.status().silentMs).toBeLessThan(5_000)
  })
})
