import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'

const hostile = () =>
  new Proxy(
    {},
    {
      get() {
        throw new Error('looked at')
      },
      has() {
        throw new Error('looked for')
      },
      getPrototypeOf() {
        throw new Error('asked for its kind')
      },
    },
  )

function withGetter(key: string): Error {
  return Object.defineProperty(new Error('fine'), key, {
    get() {
      throw new Error('looked at')
    },
  })
}

const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic

const thrown: [string, () => unknown][] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['a symbol', () => Symbol('s')],
  ['a bigint', () => 1n],
  ['an object without a prototype', () => Object.create(null)],
  ['a proxy that throws when looked at', hostile],
  ['a revoked proxy', () => revoked()],
  ['an error whose stack throws', () => withGetter('stack')],
  ['an error whose message throws', () => withGetter('message')],
  ['an error whose cause throws', () => withGetter('cause')],
  ['an error of 10 MB', () => new Error('x'.repeat(10_000_000))],
  ['an error that is its own cause', () => selfCaused()],
]

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function selfCaused(): Error {
  const error = new Error('again')
  error.cause = error
  return error
}

describe.each(storeKinds)('a handler that misbehaves, on %s', (kind) => {
  it.each(thrown)('fails only its own job by throwing %s', async (_, make) => {
    const bad = defineTask({
      name: 'bad',
      retry: { max: 0 },
      run: () => {
        throw make()
      },
    })
    const good = defineTask({ name: 'good', run: () => 'fine' })
    const m = testMill({ tasks: [bad, good] }, kind)
    const failed = nextEvent(m, 'job.failed')
    const job = await m.enqueue(bad, 1)
    const worker = m.worker({ concurrency: 1 })
    await worker.start()

    await failed
    await expect(job.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead', reason: 'no-retries' })
    const record = await job.record()
    expect(record?.error).toBeTypeOf('string')
    expect(Buffer.byteLength(record!.error!)).toBeLessThanOrEqual(4_096)
    expect(await (await m.enqueue(good, 1)).result({ timeout: '5s' })).toBe('fine')
  })

  it.each([
    ['a cyclic object', () => cyclic],
    ['more than the limit', () => 'x'.repeat(300_000)],
    ['a function', () => () => 1],
    [
      'an object with a getter that throws',
      () => ({
        get x() {
          throw new Error('looked at')
        },
      }),
    ],
  ])('completes its job without a result if it returns %s', async (_, make) => {
    const task = defineTask({ name: 'odd', run: make as () => unknown })
    const m = testMill({ tasks: [task] }, kind)
    const dropped = nextEvent(m, 'result.dropped')
    const completed = nextEvent(m, 'job.completed')
    const job = await m.enqueue(task, 1)
    await m.worker().start()

    expect(await dropped).toMatchObject({ id: job.id, error: expect.any(String) })
    expect(await completed).toMatchObject({ id: job.id })
  })

  it('can neither change its verdict nor end the process by rejecting late', async () => {
    let reject = (_: Error) => {}
    const task = defineTask({
      name: 'late',
      timeLimit: 20,
      retry: { max: 0 },
      run: () => new Promise((_, no) => (reject = no)),
    })
    const m = testMill({ tasks: [task] }, kind)
    const buried = nextEvent(m, 'job.buried')
    await m.enqueue(task, 1)
    const worker = m.worker({ concurrency: 2 })
    await worker.start()
    expect(await buried).toMatchObject({ reason: 'no-retries', error: expect.stringContaining('time limit') })
    expect(worker.status()).toMatchObject({ retired: 1 })

    const failures = recorded(m, 'job.failed')
    reject(new Error('too late'))
    await new Promise((resolve) => setImmediate(resolve))

    expect(failures).toEqual([])
    expect(worker.status()).toMatchObject({ retired: 0, jobs: [] })
  })

  it('counts by what it did if it ends within its grace after the time limit', async () => {
    const tidy = defineTask({
      name: 'tidy',
      timeLimit: 50,
      run: (_, ctx) =>
        new Promise((resolve) => ctx.signal.addEventListener('abort', () => setTimeout(() => resolve('saved'), 5))),
    })
    const m = testMill({ tasks: [tidy] }, kind)
    const job = await m.enqueue(tidy, 1)
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('saved')
  })

  it('retires its slot if it never ends; when every slot is lost the worker asks to be replaced and stops', async () => {
    const task = defineTask({ name: 'deaf', timeLimit: 20, retry: { max: 0 }, run: () => new Promise(() => {}) })
    const m = testMill({ tasks: [task] }, kind)
    const retired = recorded(m, 'slot.retired')
    const recycling = nextEvent(m, 'worker.recycling')
    await m.enqueueMany(task, [1, 2])
    const worker = m.worker({ concurrency: 2 })
    await worker.start()

    expect(await recycling).toEqual({ worker: worker.id, reason: 'slot-retired' })
    expect(retired.map(({ left }) => left)).toEqual([1, 0])
    await worker.finished()
    expect(worker.status().state).toBe('stopped')
  })

  it('is reported once if it is slow, and goes on', async () => {
    const task = defineTask({
      name: 'slow',
      slowAfter: 5,
      run: async () => {
        await told
        return 'done'
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const told = nextEvent(m, 'job.slow')
    const job = await m.enqueue(task, 1)
    await m.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('done')
    expect(await told).toMatchObject({ id: job.id, task: 'slow', attempt: 1, runMs: 5 })
  })
})
