import { setTimeout as sleep } from 'node:timers/promises'
import { cancel, defineTask, type Middleware } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { nextEvent, recorded } from '../../next-event.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill } from '../../test-mill.js'

describe.each(storeKinds)('a worker, on %s', (kind) => {
  it('runs a job and keeps its result', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['result'], result: { at: new Date(5), big: 7n } })

    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toEqual({ at: new Date(5), big: 7n })
    expect(await job.status()).toBe('completed')
  })

  it('retries a failed job until it succeeds, with the same id, meta and input', async () => {
    const seen: unknown[] = []
    const task = defineTask({
      name: 'flaky',
      retry: { max: 3, backoff: () => 0 },
      async run(input, ctx) {
        seen.push([input, ctx.job.meta, ctx.job.attempt, ctx.job.id])
        if (ctx.job.attempt < 3) throw new Error('not yet')
        return 'done'
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { n: 1 }, { id: 'a', meta: { trace: 't' } })
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('done')
    expect(seen).toEqual([1, 2, 3].map((attempt) => [{ n: 1 }, { trace: 't' }, attempt, 'a']))
  })

  it.each([
    { max: 0, runs: 1, reason: 'no-retries' },
    { max: 1, runs: 2, reason: 'max-retries' },
    { max: 4, runs: 5, reason: 'max-retries' },
  ])('buries a job that always fails after $runs runs if max is $max', async ({ max, runs, reason }) => {
    const task = scriptedTask({ max })
    const m = testMill({ tasks: [task] }, kind)
    const failures = recorded(m, 'job.failed')
    const job = await m.enqueue(task, { steps: ['fail'] })
    const buried = nextEvent(m, 'job.buried')
    await m.worker().start()

    expect(await buried).toMatchObject({ id: job.id, reason })
    expect(failures).toHaveLength(runs)
    expect(await job.record()).toMatchObject({
      state: 'dead',
      reason,
      attempt: runs,
      error: expect.stringContaining('failed at attempt'),
    })
  })

  it('buries at once for an UnrecoverableError, and if retry.when refuses', async () => {
    const picky = defineTask({
      name: 'picky',
      retry: { when: (error) => (error as Error).message !== 'fatal' },
      run: () => {
        throw new Error('fatal')
      },
    })
    const task = scriptedTask()
    const m = testMill({ tasks: [task, picky] }, kind)
    const jobs = [await m.enqueue(task, { steps: ['unrecoverable'] }), await m.enqueue(picky, 1)]
    await m.worker().start()

    for (const job of jobs)
      await expect(job.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead', reason: 'unrecoverable' })
  })

  it('snoozes, buries and cancels as the handler returns', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const snoozed = await m.enqueue(task, { steps: ['snooze', 'result'], result: 1 })
    await m.worker({ concurrency: 1 }).start()
    expect(await snoozed.result({ timeout: '5s' })).toBe(1)
    expect((await snoozed.record())?.attempt).toBe(1)

    const buried = await m.enqueue(task, { steps: ['bury', 'bury'] })
    await expect(buried.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead', reason: 'as told' })
    const cancelled = await m.enqueue(task, { steps: ['cancel', 'cancel'] }, { id: 'c' })
    await expect(cancelled.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-cancelled' })
  })

  it('aborts an attempt at its time limit, counts it as a failure, and lets the others run on', async () => {
    const task = scriptedTask({ max: 0, timeLimit: 20 })
    const m = testMill({ tasks: [task] }, kind)
    const hanging = await m.enqueue(task, { steps: ['hang'] })
    const deaf = await m.enqueue(task, { steps: ['deaf'] })
    const fine = await m.enqueue(task, { steps: ['result'], result: 'fine' })
    await m.worker().start()

    expect(await fine.result({ timeout: '5s' })).toBe('fine')
    for (const job of [hanging, deaf]) {
      await expect(job.result({ timeout: '5s' })).rejects.toMatchObject({
        code: 'job-dead',
        message: expect.stringContaining('TimeLimitError'),
      })
    }
  })

  it('reports the time limit if what the handler awaited was aborted with it', async () => {
    const task = defineTask({
      name: 'polite',
      timeLimit: 20,
      retry: { max: 0 },
      run: (_, { signal }) => sleep(10_000, undefined, { signal }),
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    await m.worker().start()

    await expect(job.result({ timeout: '5s' })).rejects.toMatchObject({
      code: 'job-dead',
      message: expect.stringMatching(/TimeLimitError: task 'polite' ran longer than its time limit of 20ms\.$/),
      error: expect.stringMatching(/\n\s+at /),
    })
  })

  it('keeps the slot of an abandoned handler until the handler itself ends', async () => {
    let end = () => {}
    const task = defineTask({
      name: 'deaf',
      timeLimit: 10,
      retry: { max: 0 },
      run: () => new Promise<void>((resolve) => (end = resolve)),
    })
    const m = testMill({ tasks: [task] }, kind)
    const worker = m.worker({ concurrency: 1 })
    const job = await m.enqueue(task, 1)
    await worker.start()
    await expect(job.result({ timeout: '5s' })).rejects.toThrow('TimeLimitError')

    expect(worker.running).toBe(1)
    end()
    await new Promise(setImmediate)
    expect(worker.running).toBe(0)
  })

  it('releases a job with an unknown task, uncounted, and stores the reason with it', async () => {
    const handlerless = defineTask({ name: 'no-handler' })
    const other = defineTask({ name: 'other', run: () => {} })
    const m = testMill({ tasks: [handlerless, other] }, kind)
    const stray = await m.enqueue(handlerless, 1)
    const released = nextEvent(m, 'job.released')
    await m.worker().start()

    expect(await released).toMatchObject({ id: stray.id, reason: 'unknown-task' })
    expect(await stray.record()).toMatchObject({
      attempt: 1,
      error: expect.stringMatching(/^no handler for task 'no-handler' in the worker that claimed it; .* `aliases`\.$/),
    })
  })

  it('finds the handler of a renamed task by its alias', async () => {
    const old = defineTask({ name: 'old-name' })
    const renamed = defineTask({ name: 'new-name', aliases: ['old-name'], run: async (n) => n })
    const m = testMill({ tasks: [renamed] }, kind)
    const job = await m.enqueue(old, 'kept alive')
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('kept alive')
  })

  it('passes the output of its schema to the handler, and buries an input that is no longer valid', async () => {
    const input = z.object({ at: z.string().transform((text) => text.length) })
    const task = defineTask({ name: 'measured', input, run: async ({ at }) => at })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { at: 'four' })
    const stray = await m.enqueue(defineTask({ name: 'measured' }), { at: 5 })
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe(4)
    await expect(stray.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead', reason: 'bad-payload' })
    expect((await stray.record())?.input).toEqual({ at: 5 })
  })

  it('counts a schema that throws as a failure, not as a bad payload', async () => {
    let calls = 0
    const validate = (value: unknown) => {
      calls += 1
      if (calls === 2) throw new Error('database away')
      return { value }
    }
    const flaky = { '~standard': { version: 1 as const, vendor: 'a test', validate } }
    const task = defineTask({
      name: 'checked',
      input: flaky,
      retry: { backoff: () => 0 },
      run: async (_, ctx) => ctx.job.attempt,
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 'a')
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe(2)
  })

  it('counts an outcome with a reason that is not text as a failure', async () => {
    const task = defineTask({ name: 'odd', retry: { max: 0 }, run: () => cancel(Object.create(null) as string) })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 'a')
    await m.worker().start()

    await expect(job.result({ timeout: '5s' })).rejects.toThrow('must get text')
  })

  it('completes a job for whose result the codec makes no payload', async () => {
    const codec = {
      name: 'odd',
      encode: (value: unknown) => (value === 'odd' ? ({} as string) : JSON.stringify(value)),
      decode: (payload: unknown) => JSON.parse(String(payload)),
    }
    const task = defineTask({ name: 'odd', run: () => 'odd' })
    const m = testMill({ tasks: [task], codec }, kind)
    const dropped = nextEvent(m, 'result.dropped')
    const job = await m.enqueue(task, 1, { id: 'x' })
    await m.worker().start()

    expect((await dropped).error).toMatch("codec 'odd' made neither text nor bytes")
    await m.queue('default').drain()
    expect(await job.status()).toBe('completed')
  })

  it('puts a job back that should not run now, without counting it', async () => {
    let asked = 0
    const task = defineTask({
      name: 'later',
      retry: { backoff: () => 0 },
      shouldRun: () => ++asked > 1,
      run: async (_, ctx) => ctx.job.attempt,
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    const released = nextEvent(m, 'job.released')
    await m.worker().start()

    expect(await released).toMatchObject({ reason: 'should-run', delayMs: 1_000 })
    await m.queue('default').jobs.runNow('all')
    expect(await job.result({ timeout: '5s' })).toBe(1)
  })

  it('calls onExhausted once, after the burial, and survives an error in it', async () => {
    const calls: unknown[] = []
    const task = defineTask({
      name: 'hopeless',
      retry: { max: 1, backoff: () => 0 },
      onExhausted: ({ job, input, error }) => {
        calls.push([job.attempt, input, (error as Error).message])
        throw new Error('even this')
      },
      run: () => {
        throw new Error('no')
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const failed = nextEvent(m, 'hook.failed')
    await m.enqueue(task, 'in')
    await m.worker().start()

    expect(await failed).toMatchObject({ hook: "onExhausted of task 'hopeless'" })
    expect(calls).toEqual([[2, 'in', 'no']])
  })

  it('runs as many jobs at once as it has slots, and no more', async () => {
    let running = 0
    let most = 0
    const task = defineTask({
      name: 'counted',
      run: async () => {
        most = Math.max(most, ++running)
        await new Promise(setImmediate)
        running -= 1
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const jobs = await m.enqueueMany(
      task,
      Array.from({ length: 50 }, (_, i) => i),
    )
    const done = Promise.all(jobs.map((job) => job.result({ timeout: '10s' })))
    await m.worker({ concurrency: 7 }).start()
    await done

    expect(most).toBe(7)
  })

  it('wraps each handler call in its middleware, the first outermost', async () => {
    const order: string[] = []
    const layer = (name: string): Middleware => ({
      async run(run, next) {
        order.push(`${name} in ${run.task.name}`)
        const result = await next()
        order.push(`${name} out`)
        return `${name}(${result})`
      },
    })
    const task = scriptedTask()
    const m = testMill({ tasks: [task], middleware: [layer('a'), layer('b')] }, kind)
    const job = await m.enqueue(task, { steps: ['result'], result: 'r' })
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('a(b(r))')
    expect(order).toEqual(['a in scripted', 'b in scripted', 'b out', 'a out'])
  })

  it('counts a middleware that throws as a failure of the job', async () => {
    const task = scriptedTask({ max: 0 })
    const m = testMill({ tasks: [task], middleware: [{ run: () => Promise.reject(new Error('from outside')) }] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })
    await m.worker().start()

    await expect(job.result({ timeout: '5s' })).rejects.toThrow('from outside')
  })

  it('completes a job whose result cannot be stored, and reports it', async () => {
    const cyclic: Record<string, unknown> = {}
    cyclic['self'] = cyclic
    const task = defineTask({ name: 'cyclic', run: async () => cyclic })
    const m = testMill({ tasks: [task] }, kind)
    const dropped = nextEvent(m, 'result.dropped')
    const job = await m.enqueue(task, 1)
    const result = job.result({ timeout: '5s' })
    await m.worker().start()

    expect((await dropped).id).toBe(job.id)
    await expect(result).rejects.toMatchObject({ code: 'result-not-kept', why: expect.stringMatching(/deep|cycle/) })
    expect(await job.record()).toMatchObject({ state: 'completed', error: expect.stringMatching(/deep|cycle/) })
  })
})
