import { defineTask, type Mill, millrace } from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { linesOf, newIn } from '#src/client/jobs/log-tail.js'
import { joinedLog, mostLogBytes } from '#src/core/job/job-log.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent } from '../../next-event.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

describe.each(storeKinds)('a job handle, on %s', (kind) => {
  it('finds its job by id alone, in any queue', async () => {
    const task = scriptedTask({ queue: 'far' })
    const m = testMill({ tasks: [task], queues: { a: {}, b: {} } }, kind)
    await m.enqueue(task, { steps: ['ok'] }, { id: 'x' })
    const handle = m.job('x')

    expect(handle.queue).toBeUndefined()
    expect(await handle.status()).toBe('ready')
    expect(handle.queue).toBe('far')
    expect(await m.job(task, 'x').status()).toBe('ready')
    expect(await m.job('no such job').status()).toBeUndefined()
  })

  it('reports that no result is kept if the job had ended before the call', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })
    const completed = nextEvent(m, 'job.completed')
    await m.worker().start()
    await completed

    await expect(job.result()).rejects.toMatchObject({ code: 'result-not-kept' })
    await expect(m.job('never was').result()).rejects.toMatchObject({ code: 'result-not-kept' })
  })

  it('resolves with undefined if the job completes without a result while the caller waits', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })
    const results = [job.result({ timeout: '10s' }), m.job(task, job.id).result({ timeout: '10s' })]
    await m.worker().start()

    expect(await Promise.all(results)).toEqual([undefined, undefined])
  })

  it.each([
    ['deleted', (m: Mill, id: string) => m.queue('default').jobs.delete([id])],
    ['cleared', (m: Mill) => m.queue('default').clear()],
    [
      'dropped from the morgue',
      async (m: Mill, id: string) => {
        await m.queue('default').jobs.bury([id])
        await m.queue('default').morgue.delete([id])
      },
    ],
  ])('rejects if the job is %s while the caller waits', async (_, remove) => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] }, { delay: '1h' })
    const ended = job.result({ timeout: '10s' }).catch((error: unknown) => error)
    // Asked of the store behind it: by then the job has been seen.
    await job.status()
    await remove(m, job.id)

    expect(['result-not-kept', 'job-dead']).toContain(((await ended) as { code?: string }).code)
  })

  it.each([{ count: 0 }, { count: 1 }, { age: '1ms' as const }])(
    'gives every waiter the result of every job if the queue would keep %j',
    async (results) => {
      const task = scriptedTask()
      const m = testMill({ tasks: [task], queues: { default: { retention: { results } } } }, kind)
      const jobs = await m.enqueueMany(
        task,
        Array.from({ length: 500 }, (_, i) => ({ steps: ['result' as const], result: i })),
      )
      // Once more each: two handles of a process wait for one job.
      const again = jobs.slice(0, 50).map(({ id }) => m.job(task, id))
      const ends = m.results([...jobs, ...again], { timeout: '60s' })
      await m.worker({ concurrency: 50 }).start()
      const values = (await ends).map((end) => (end.status === 'fulfilled' ? end.value : end.reason))

      expect(values).toEqual([...jobs.keys(), ...again.keys()])
    },
  )

  it('resolves with undefined for a job without a result, however many results are dropped meanwhile', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task], queues: { default: { retention: { results: { count: 1 } } } } }, kind)
    await m.enqueueMany(
      task,
      Array.from({ length: 100 }, () => ({ steps: ['result' as const], result: 1 })),
    )
    const last = await m.enqueue(task, { steps: ['ok'] })
    const result = last.result({ timeout: '20s' })
    await m.worker({ concurrency: 1 }).start()

    expect(await result).toBeUndefined()
  })

  it('agrees with its status: a job with an own id completed without a result, or its result is gone', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task], queues: { default: { retention: { results: { count: 0 } } } } }, kind)
    const own = defineTask({ name: 'own', queue: 'other', run: async () => {} })
    const plain = testMill({ tasks: [own] }, kind)
    const [dropped, blank] = [
      await m.enqueue(task, { steps: ['result'], result: 1 }, { id: 'dropped' }),
      await plain.enqueue(own, {}, { id: 'blank' }),
    ]
    const ended = [nextEvent(m, 'job.completed'), nextEvent(plain, 'job.completed')]
    await m.worker().start()
    await plain.worker().start()
    await Promise.all(ended)

    expect([await dropped.status(), await blank.status()]).toEqual(['completed', 'completed'])
    await expect(dropped.result()).rejects.toMatchObject({ code: 'result-not-kept' })
    expect(await blank.result()).toBeUndefined()
  })

  it('tells a job without a result from a dropped one if the queue keeps results', async () => {
    const task = scriptedTask()
    const queues = { default: { retention: { results: 'untilDeleted' as const } } }
    const m = testMill({ tasks: [task], queues }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })
    const completed = nextEvent(m, 'job.completed')
    await m.worker().start()
    await completed

    expect(await job.result()).toBeUndefined()
    expect(await job.record()).toMatchObject({ state: 'completed' })
    expect(await job.record()).not.toHaveProperty('result')
    const { jobs } = await m.queue('default').jobs.list({ state: 'completed' })
    expect(jobs.map(({ id }) => id)).toEqual([job.id])
    expect(await m.queue('default').jobs.delete([job.id])).toBe(1)
    await expect(job.result()).rejects.toMatchObject({ code: 'result-not-kept' })
  })

  it('keeps no result if the queue keeps none', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task], queues: { default: { retention: { results: 'none' } } } }, kind)
    const job = await m.enqueue(task, { steps: ['result'], result: 'gone' })
    const result = job.result({ timeout: '5s' })
    await m.worker().start()

    expect(await result).toBeUndefined()
    expect(await job.status()).toBeUndefined()
  })

  it('stops waiting after its timeout, and the job goes on', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })

    await expect(job.result({ timeout: 10 })).rejects.toMatchObject({ code: 'result-timeout' })
    expect(await job.status()).toBe('ready')
  })

  it('waits for many results with one watch of the store', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const jobs = await m.enqueueMany(
      task,
      Array.from({ length: 200 }, (_, i) => ({ steps: ['result' as const], result: i })),
    )
    const results = Promise.all(jobs.map((job) => job.result({ timeout: '10s' })))
    await m.worker({ concurrency: 20 }).start()

    expect(await results).toEqual(Array.from({ length: 200 }, (_, i) => i))
  })

  it('cancels a waiting job permanently', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] }, { id: 'c' })

    expect(await job.cancel('no longer wanted')).toBe(true)
    expect(await job.record()).toMatchObject({ state: 'cancelled', reason: 'no longer wanted' })
    expect(await job.cancel()).toBe(false)
    await expect(job.result()).rejects.toMatchObject({
      code: 'job-cancelled',
      reason: 'no longer wanted',
      message: expect.stringContaining('was cancelled: no longer wanted.'),
    })
  })

  it('says in the timeout error whether a worker serves the queue', async () => {
    const stuck = defineTask({ name: 'stuck', run: () => new Promise<void>(() => {}) })
    const m = testMill({ tasks: [stuck] }, kind)
    const job = await m.enqueue(stuck, null)

    await expect(job.result({ timeout: '10ms' })).rejects.toMatchObject({
      code: 'result-timeout',
      message: `job '${job.id}' in queue 'default' had not ended after 10ms. No worker serves 'default' now: start one.`,
    })
    await m.worker({ grace: 1 }).start()
    await expect(job.result({ timeout: '10ms' })).rejects.toThrow('had not ended after 10ms. It goes on.')
  })

  it('says in the timeout error why the job has failed and is retried', async () => {
    const flaky = defineTask({
      name: 'flaky',
      run: async () => {
        throw new Error('the bank is away')
      },
    })
    const m = testMill({ tasks: [flaky] }, kind)
    const failed = nextEvent(m, 'job.failed')
    const job = await m.enqueue(flaky, null)
    await m.worker().start()
    await failed

    await expect(job.result({ timeout: '10ms' })).rejects.toThrow(
      /had not ended after 10ms\. It goes on\. Its last error: Error: the bank is away$/,
    )
  })

  it('rejects the wait for a result if the job was cancelled', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, { steps: ['ok'] })
    const result = expect(job.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-cancelled' })
    await job.cancel()

    await result
  })

  it('cancels a running job through its signal, at the next heartbeat', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task], queues: { default: { lease: '3s' } } }, kind)
    const job = await m.enqueue(task, { steps: ['hang'] }, { id: 'r' })
    const started = nextEvent(m, 'job.started')
    const cancelled = nextEvent(m, 'job.cancelled')
    await m.worker().start()
    await started

    expect(await job.cancel()).toBe(true)
    expect(await cancelled).toMatchObject({ id: 'r' })
    expect(await job.status()).toBe('cancelled')
  })

  it('shows progress, host and pid of a running job', async () => {
    const task = defineTask({
      name: 'long',
      run: (_, ctx) => {
        ctx.progress(0.5, 'half way')
        return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    await m.worker({ grace: 0 }).start()
    // With its first beat, which may come from another thread.
    await vi.waitUntil(async () => (await job.record())?.progress !== undefined, { timeout: 10_000 })

    expect(await job.record()).toMatchObject({
      state: 'running',
      pid: process.pid,
      progress: { fraction: 0.5, note: 'half way' },
      startedAt: expect.any(Date),
    })
  })

  it('buries a job with undecodable bytes, keeps it, and shows what can be decoded', async () => {
    const store = new MemoryStore()
    const task = scriptedTask()
    const m = testMillOn(store, { tasks: [task] })
    await m.ready()
    const payload = new Uint8Array([0xff, 0x00, 0x7b])
    await store.enqueue([
      { callId: 'c', queue: 'default', jobs: [{ id: 'b', task: 'scripted', payload, priority: 0, rememberMs: 0 }] },
    ])
    const fine = await m.enqueue(task, { steps: ['result'], result: 1 })
    const buried = nextEvent(m, 'job.buried')
    await m.worker().start()

    expect(await buried).toMatchObject({ id: 'b', reason: 'bad-payload' })
    expect(await fine.result({ timeout: '5s' })).toBe(1)
    expect((await store.records.get('default', 'b'))?.payload).toEqual(payload)
    const record = await m.job('b').record()
    expect(record).toMatchObject({
      state: 'dead',
      reason: 'bad-payload',
      error: expect.stringContaining('input cannot be decoded'),
    })
    expect(record).not.toHaveProperty('input')
  })
})

const encode = defineTask({ name: 'encode', queue: 'video', retry: { max: 4 } })

/** A listener has the job 'film' in hand. */
async function handedOut() {
  const mill = millrace({ store: 'memory:', queues: { video: {} }, tasks: [encode] })
  onTestFinished(() => mill.close())
  await mill.enqueue(encode, {}, { id: 'film' })
  const claim = await mill.listener('video').next()
  return { mill, claim, jobs: mill.queue('video').jobs }
}

describe('a job held by a listener and failed from outside', () => {
  it('is dead although its task has attempts left, because its program still runs', async () => {
    const { claim, jobs } = await handedOut()
    expect(await jobs.fail('film', 'it hangs')).toBe(true)
    expect(await jobs.get('film')).toMatchObject({ state: 'dead', error: 'it hangs' })
    expect(await claim.complete()).toBe('lost')
  })

  it('is handed out again on request', async () => {
    const { jobs, mill } = await handedOut()
    expect(await jobs.fail('film', 'it hangs', { last: false })).toBe(true)
    expect(await mill.job('film').record()).toMatchObject({ state: 'ready', attempt: 2 })
  })
})

describe('the new part of a log', () => {
  it.each([
    ['all of the first', '', 'a\nb\n', 'a\nb\n'],
    ['nothing if nothing came', 'a\n', 'a\n', ''],
    ['the text after the known part', 'a\n', 'a\nb\n', 'b\n'],
    ['the rest of a known line', 'a', 'ab\n', 'b\n'],
    ['the text after it if the beginning is gone', 'one\ntwo\n', 'two\nthree\n', 'three\n'],
    ['the shortest possible part of a log that repeats itself', 'xyxyxy', 'yxyxyxz', 'xz'],
  ])('is %s', (_, seen, log, text) => {
    expect(newIn(seen, log)).toEqual({ text, isGap: false })
  })

  it('is the whole window, marked as a gap, if the window has moved past what was seen', () => {
    expect(newIn('old\n', 'new')).toEqual({ text: 'new', isGap: true })
  })

  it('adds up to the whole log, however the window moves, even inside a character', () => {
    const chunks = Array.from({ length: 400 }, (_, i) => `${'ä€'.repeat(i % 97)} line ${i}\n`)
    let [log, seen, told] = ['', '', '']
    for (const chunk of chunks) {
      log = joinedLog(log, chunk)
      told += newIn(seen, log).text
      seen = log
    }

    expect(Buffer.byteLength(told)).toBeGreaterThan(mostLogBytes)
    expect(told).toBe(chunks.join(''))
  })

  it('is found quickly in a full log of one repeated character', () => {
    // Character by character it would take minutes, and the test would be ended.
    expect(newIn(`${'a'.repeat(mostLogBytes - 1)}b`, 'a'.repeat(mostLogBytes)).isGap).toBe(true)
  })
})

it('a log has as many lines as line breaks, plus one if the last line has not ended', () => {
  expect([linesOf(''), linesOf('a\n'), linesOf('a\n\nb')]).toEqual([[], ['a'], ['a', '', 'b']])
})
