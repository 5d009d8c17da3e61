/** What handlers need besides their input: when it is opened and closed, and what becomes of jobs if it cannot be opened. */

import { once } from 'node:events'
import {
  type BatchContext,
  defineOrderedTask,
  defineTask,
  hasCode,
  type JobContext,
  type JoinContext,
  type Middleware,
  type MillOptions,
  type OrderedContext,
} from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { HandlerContext } from '#src/mill/handler-context.js'
import { nextEvent, recorded } from '../next-event.js'
import { testMill } from '../test-mill.js'

interface App {
  readonly db: { readonly name: string }
}

const app: App = { db: { name: 'shop' } }
const never = { isOver: () => false, failed: () => {} }

/** A context whose clock goes on by `everyMs` with each try, and that waits for no time. */
function contextOf(make: () => unknown, everyMs = 0) {
  let now = 0
  const tried = () => {
    now += everyMs
    return make()
  }
  return new HandlerContext(tried, { mono: () => now }, () => 0)
}

describe('the context of handlers', () => {
  it('is opened once for all who ask, and has what was returned', async () => {
    let calls = 0
    const context = contextOf(() => {
      calls += 1
      return app
    })
    await Promise.all([context.open(), context.ready(never)])
    await context.open()

    expect([calls, context.value]).toEqual([1, app])
  })

  it('is tried again after a failure, for half a minute, and then refused with the cause', async () => {
    const failures: (number | undefined)[] = []
    const context = contextOf(() => {
      throw new Error('connect ECONNREFUSED 10.0.0.7:5432')
    }, 10_000)
    const error = await context
      .ready({ ...never, failed: (_, retryMs) => failures.push(retryMs) })
      .catch((error: unknown) => error)

    expect(failures).toEqual([0, 0, undefined])
    expect(hasCode(error, 'context-failed') && error.message).toMatch(
      /^`context` of the mill could not open what the handlers need, tried for 30s: connect ECONNREFUSED 10\.0\.0\.7:5432\. The worker has taken no job/,
    )
    expect((error as Error).cause).toEqual(new Error('connect ECONNREFUSED 10.0.0.7:5432'))
  })

  it('is refused if it has not settled after half a minute, and closed later if it opens then', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const told: string[] = []
    let open = (_: unknown) => {}
    const making = () => new Promise((resolve) => (open = resolve))
    const context = new HandlerContext(making, { mono: () => performance.now() }, () => 0)
    const refused = context.ready(never).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(30_000)

    expect(await refused).toMatchObject({ code: 'context-failed' })
    const closed = context.close()
    await vi.advanceTimersByTimeAsync(5_000)
    await closed
    open({ [Symbol.dispose]: () => told.push('closed') })
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['closed'])
  })

  it.each([
    ['opens', ['v1']],
    ['fails', []],
  ])('that %s late leaves the one that was opened after it as it is', async (how, disposed) => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const told: string[] = []
    const named = (name: string) => ({ name, [Symbol.dispose]: () => void told.push(name) })
    let end = () => {}
    const late = new Promise<unknown>((resolve, reject) => {
      end = () => (how === 'opens' ? resolve(named('v1')) : reject(new Error('gave up')))
    })
    const made = [late, named('v2')]
    const context = contextOf(() => made.shift())
    context.open().catch(() => {})
    const closed = context.close()
    await vi.advanceTimersByTimeAsync(5_000)
    await closed
    await context.open()
    end()
    await vi.advanceTimersByTimeAsync(0)

    expect([told, context.value]).toEqual([disposed, expect.objectContaining({ name: 'v2' })])
    await context.close()
    expect(told).toEqual([...disposed, 'v2'])
  })

  it('is opened by a later try', async () => {
    let calls = 0
    const context = contextOf(() => {
      calls += 1
      if (calls < 3) throw new Error('not yet')
      return app
    }, 1_000)
    await context.ready(never)

    expect([calls, context.value]).toEqual([3, app])
  })

  it.each([
    ['Symbol.asyncDispose', Symbol.asyncDispose],
    ['Symbol.dispose', Symbol.dispose],
  ])('is closed by its %s, once, and opened anew after that', async (_, symbol) => {
    const told: string[] = []
    const context = contextOf(() => {
      told.push('open')
      return { name: 'shop', [symbol]: () => void told.push('close') }
    })
    await context.close()
    await context.open()
    await Promise.all([context.close(), context.close()])
    await context.open()

    expect(told).toEqual(['open', 'close', 'open'])
  })

  it('is closed by Symbol.asyncDispose if it has both', async () => {
    const told: string[] = []
    const both = { [Symbol.asyncDispose]: () => told.push('later'), [Symbol.dispose]: () => told.push('now') }
    const context = contextOf(() => both)
    await context.open()
    await context.close()

    expect(told).toEqual(['later'])
  })

  it.each([undefined, null, 'text', { db: 1 }])('may be %j, which nothing closes', async (value) => {
    const context = contextOf(() => value)
    await context.open()
    await context.close()

    expect(context.value).toBe(value)
  })
})

describe('a mill with a context', () => {
  it('gives it to handlers of every kind, and to middleware', async () => {
    const seen: string[] = []
    const note = (what: string, { db }: App) => void seen.push(`${what} ${db.name}`)
    const member = defineTask({ name: 'member', run: (_: unknown, ctx: JobContext<App>) => note('plain', ctx.context) })
    const join = defineTask({
      name: 'join',
      joins: { member },
      run: (_: unknown, ctx: JoinContext<{ member: typeof member }, App>) => note('join', ctx.context),
    })
    const batch = defineTask({
      name: 'batch',
      queue: 'batches',
      batch: { size: 2 },
      run: (_: unknown[], ctx: BatchContext<App>) => note('batch', ctx.context),
    })
    const ordered = defineOrderedTask({
      name: 'ordered',
      run: (_: ReadonlyMap<string, readonly unknown[]>, ctx: OrderedContext<App>) => note('ordered', ctx.context),
    })
    const noting: Middleware<App> = {
      async run({ task, ctx }, next) {
        note(`around ${task.name}`, ctx.context)
        return next()
      },
    }
    const m = testMill({ tasks: [member, join, batch, ordered], context: async () => app, middleware: [noting] })
    const jobs = [
      await m.enqueue(join, {}, { after: { member: {} } }),
      await m.enqueue(batch, {}),
      await m.enqueue(ordered, {}, { id: 'a' }),
    ]
    await m.worker().start()
    await Promise.all(jobs.map((job) => job.result()))

    expect(seen.sort()).toEqual([
      ...['around batch shop', 'around join shop', 'around member shop', 'around ordered shop'],
      ...['batch shop', 'join shop', 'ordered shop', 'plain shop'],
    ])
  })

  /** Notes what is opened and closed, and the job. */
  function telling(options: Partial<MillOptions> = {}) {
    const told: string[] = []
    const task = defineTask({
      name: 't',
      run: (_: unknown, { context }: JobContext<App>) => void told.push(`job in ${context.db.name}`),
    })
    const context = async () => {
      told.push('open')
      return { ...app, [Symbol.asyncDispose]: async () => void told.push('close') }
    }
    const hooks = { onWorkerStart: () => void told.push('start'), onWorkerStop: () => void told.push('stop') }
    return { told, task, m: testMill({ tasks: [task], context, ...hooks, ...options }) }
  }

  it('opens it once for all workers, after onWorkerStart, and closes it after the last job, before onWorkerStop', async () => {
    const { told, task, m } = telling()
    await m.enqueue(task, {})
    const completed = nextEvent(m, 'job.completed')
    const workers = [m.worker(), m.worker()]
    await Promise.all(workers.map((worker) => worker.start()))
    await completed
    await workers[0]!.stop()
    expect(told).toEqual(['start', 'open', 'job in shop'])
    await workers[1]!.stop()
    expect(told).toEqual(['start', 'open', 'job in shop', 'close', 'stop'])

    await m.worker().start()
    await m.close()
    expect(told.slice(5)).toEqual(['start', 'open', 'close', 'stop'])
  })

  it('opens nothing for a producer, a look or a listener', async () => {
    const { told, task, m } = telling({ queues: { other: {} } })
    const job = await m.enqueue(task, {})
    await job.record()
    await m.queue('default').jobs.list()
    await m.schedules.list()
    const listener = m.listener('other')
    await m.enqueue(task, {}, { queue: 'other' })
    await (await listener.next()).complete()
    await m.close()

    expect(told).toEqual([])
  })

  it('takes no job until it is open: nothing is lost and no attempt counted', async () => {
    let calls = 0
    const context = () => {
      calls += 1
      if (calls === 1) throw new Error('no database')
      return app
    }
    const { task, m } = telling({ context })
    const job = await m.enqueue(task, {})
    const [failed, claimed] = [recorded(m, 'context.failed'), recorded(m, 'queue.claimed')]
    const first = nextEvent(m, 'context.failed').then(() => job.record())
    await m.worker().start()
    await job.result()

    expect(await first).toMatchObject({ state: 'ready', attempt: 1 })
    expect(failed).toEqual([{ error: new Error('no database'), retryMs: expect.any(Number) }])
    expect([calls, claimed.length]).toEqual([2, 1])
  })

  it('stops a worker that waits for it without opening it', async () => {
    const { told, m } = telling({
      context: () => {
        throw new Error('no database')
      },
    })
    const failed = nextEvent(m, 'context.failed')
    const worker = m.worker()
    const starting = worker.start()
    await failed
    await worker.stop()
    await starting

    expect(told).toEqual(['start', 'stop'])
  })

  it('has Node say so if the start waits and nobody listens', async () => {
    const { m } = telling({
      context: () => {
        throw new Error('no database')
      },
    })
    const warned = once(process, 'warning')
    const worker = m.worker()
    void worker.start()

    expect((await warned)[0]).toMatchObject({
      code: 'MILLRACE_CONTEXT_FAILED',
      message:
        'what the handlers need could not be opened: no database. The worker waits; to hear of it, give the mill a logger.',
    })
    await worker.stop()
  })

  it('reports a disposal that throws as hook.failed, and closes all the same', async () => {
    const { m, told } = telling({
      context: () => ({
        ...app,
        [Symbol.asyncDispose]: async () => {
          throw new Error('the pool was closed twice')
        },
      }),
    })
    const failed = recorded(m, 'hook.failed')
    await m.worker().start()
    await m.close()

    expect(failed).toEqual([{ hook: 'context', error: new Error('the pool was closed twice') }])
    expect(told).toEqual(['start', 'stop'])
  })

  it('refuses a context that is not a function', () => {
    const context = app as never
    expect(() => testMill({ context })).toThrow(/context: must be a function/)
  })
})

it('a handler that reads ctx.context of a mill without one fails with what to add', async () => {
  const task = defineTask({ name: 't', retry: { max: 0 }, run: (_: unknown, ctx) => ctx.context })
  const m = testMill({ tasks: [task] })
  const job = await m.enqueue(task, {})
  await m.worker().start()

  await expect(job.result()).rejects.toThrow(
    /the mill is not valid:\n {2}context: must be given, as a handler reads ctx\.context: `context: async \(\) => \(\{ db \}\)`/,
  )
})

it('a worker whose tasks all run in processes of their own opens no context itself', async () => {
  const module = import.meta.url
  const task = defineTask({ name: 't', isolate: 'process', module, run: (_: unknown, _ctx: JobContext<App>) => {} })
  const { millrace } = await import('millrace')
  const { mkdtempSync, rmSync } = await import('node:fs')
  const { join } = await import('node:path')
  const { tmpdir } = await import('node:os')
  const folder = mkdtempSync(join(tmpdir(), 'millrace-context-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  let calls = 0
  const context = () => {
    calls += 1
    return app
  }
  const m = millrace({ store: `sqlite:${join(folder, 'jobs.db')}`, tasks: [task], context })
  await m.worker().start()
  await m.close()

  expect(calls).toBe(0)
})
