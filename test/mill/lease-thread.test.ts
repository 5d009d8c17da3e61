import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BroadcastChannel, type Worker } from 'node:worker_threads'
import { defineTask, type EventMap } from 'millrace'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Events } from '#src/core/events.js'
import type { StoreDescriptor } from '#src/mill/store-source.js'
import { leaseThread } from '#src/mill/store-thread.js'
import { LeaseKeeper } from '#src/runtime/leases/lease-keeper.js'
import { sharedMono } from '#src/runtime/leases/lease-messages.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { notesOn } from '../runtime/updates-on.js'
import { enqueueCall, queue, SqliteScene } from '../stores/sqlite/sqlite-scene.js'
import { tryWriteLock } from '../write-lock.js'

const leaseMs = 3_000
const mono = () => performance.now()
const from = [{ queue: queue.name, limit: 1 }]

/** A lease keeper with a thread on the scene's file, and what it says. */
interface Subject {
  readonly keeper: LeaseKeeper
  readonly threads: Worker[]
  readonly lost: EventMap['lease.lost'][]
  readonly blocked: EventMap['loop.blocked'][]
  readonly failed: EventMap['store.failed'][]
  readonly events: Events
  /** Claims a job and keeps its lease; its handler has begun. `forMs`: the lease. */
  take(id: string, maxBlockMs?: number, forMs?: number): Promise<JobExecution>
}

const scene = new SqliteScene()
let store: SqliteStore
const subjects: Subject[] = []
beforeEach(async () => {
  store = await scene.opened()
})
afterEach(async () => {
  for (const { keeper } of subjects.splice(0)) await keeper.stop()
  await scene.close()
})

async function started(descriptor?: StoreDescriptor, blockedTo?: number): Promise<Subject> {
  const subject = made(descriptor, blockedTo)
  await subject.keeper.start()
  return subject
}

function made(descriptor: StoreDescriptor = `sqlite:${scene.file}`, blockedTo?: number, openAfterMs?: number): Subject {
  const threads: Worker[] = []
  const events = new Events()
  const start = leaseThread(descriptor, undefined, openAfterMs)
  const keeper = new LeaseKeeper({
    store,
    events,
    mono,
    host: 'h',
    pid: process.pid,
    startThread: () => {
      threads.push(start())
      return threads.at(-1)!
    },
    ...(blockedTo === undefined ? {} : { blockedTo }),
  })
  const subject: Subject = {
    keeper,
    threads,
    events,
    lost: recorded(events, 'lease.lost'),
    blocked: recorded(events, 'loop.blocked'),
    failed: recorded(events, 'store.failed'),
    async take(id, maxBlockMs = 30_000, forMs = leaseMs) {
      await store.enqueue([enqueueCall(id)])
      const sentAt = mono()
      const { claims } = await store.claim(from, { worker: 'w', leaseMs: forMs })
      const execution = new JobExecution(claims[0]!, defineTask({ name: 'send' }), {}, {}, notesOn())
      keeper.keep([execution], { leaseMs: forMs, sentAt, maxBlockMs })
      keeper.begin(execution, mono())
      return execution
    },
  }
  subjects.push(subject)
  return subject
}

function recorded<Name extends 'lease.lost' | 'loop.blocked' | 'store.failed'>(events: Events, name: Name) {
  const told: EventMap[Name][] = []
  events.on(name, (event) => told.push(event))
  return told
}

function next(events: Events, name: 'loop.blocked' | 'store.failed'): Promise<void> {
  return new Promise((resolve) => {
    const off = events.on(name, () => {
      off()
      resolve()
    })
  })
}

/** A module that makes a store for the thread: the SQLite store, with something done to it. `life`: how many were made. */
function storeModule(doing: string): StoreDescriptor {
  const module = join(scene.folder, 'store.mjs')
  writeFileSync(
    module,
    `import { appendFileSync, statSync } from 'node:fs'
    import { SqliteStore } from ${JSON.stringify(import.meta.resolve('#src/stores/sqlite/sqlite-store.js'))}
    const lives = ${JSON.stringify(join(scene.folder, 'lives'))}
    export function make() {
      appendFileSync(lives, '.')
      const life = statSync(lives).size
      const store = new SqliteStore({ file: ${JSON.stringify(scene.file)} })
      ${doing}
      return store
    }`,
  )
  return { module, export: 'make' }
}

/** A store for the thread that announces every beat on a channel before it is sent, and tells the timers of its thread when asked. */
function announced(doing = '') {
  const name = `beats of ${scene.folder}`
  const channel = new BroadcastChannel(name)
  const next = (fits: (told: unknown) => boolean) =>
    new Promise<unknown>((resolve) => {
      channel.onmessage = (message) => {
        const { data } = message as MessageEvent
        if (fits(data)) resolve(data)
      }
    })
  return {
    descriptor: storeModule(
      `${doing}
       const extend = store.extend.bind(store)
       const channel = new BroadcastChannel(${JSON.stringify(name)})
       channel.onmessage = () =>
         channel.postMessage(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length)
       channel.unref()
       store.extend = (items) => (channel.postMessage('beat of life ' + life), extend(items))`,
    ),
    nextBeat: (life = 1) => next((told) => told === `beat of life ${life}`),
    timers() {
      const answer = next((told) => typeof told === 'number')
      channel.postMessage('how many timers?')
      return answer
    },
    close: () => channel.close(),
  }
}

/** Takes no processor from the others meanwhile. */
function blockLoop(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs)
}

describe('the lease thread', () => {
  it('renews the leases of a blocked event loop, and lets each end after the maxBlock of its worker', async () => {
    const spoken = join(scene.folder, 'stderr')
    const patient = await started(undefined, openSync(spoken, 'w'))
    const strict = await started()
    const kept = await patient.take('kept', 8_000)
    const letGo = await strict.take('let-go', 2_000)
    const keptToo = await strict.take('kept-too', 8_000)
    const back = Promise.all([next(patient.events, 'loop.blocked'), next(strict.events, 'loop.blocked')])

    blockLoop(5_700)
    const elsewhere = await scene.opened()
    const taken = []
    for (let i = 0; i < 3; i += 1)
      taken.push(...(await elsewhere.claim(from, { worker: 'other', leaseMs, alone: true })).claims)
    await back

    expect(taken.map(({ id }) => id)).toEqual(['let-go'])
    expect((await store.records.get(queue.name, 'kept'))?.startedAt).toBeGreaterThan(0)
    expect(kept.abortReason).toBeUndefined()
    expect(patient.lost).toEqual([])
    const job = { queue: queue.name, task: 'send' }
    expect(patient.blocked).toMatchObject([{ jobs: [{ ...job, id: 'kept' }], givenUp: false }])
    expect(patient.blocked[0]!.forMs).toBeGreaterThan(4_000)
    expect(letGo.abortReason).toMatchObject({ code: 'lease-lost' })
    expect(keptToo.abortReason).toBeUndefined()
    expect(strict.lost).toEqual([{ ...job, id: 'let-go' }])
    expect(strict.blocked).toMatchObject([{ givenUp: true }])
    // That the other had begun too the thread has heard only if the loop got to say so before it stood still.
    expect(strict.blocked[0]!.jobs).toContainEqual({ ...job, id: 'kept-too' })
    expect(readFileSync(spoken, 'utf8')).toMatch(
      new RegExp(`^millrace: the event loop of process ${process.pid} .* In hand: work/kept \\(send\\)\\.\\n$`),
    )
    expect([...patient.failed, ...strict.failed]).toEqual([])
  })

  it('renews a lease that was taken before it was up, by a loop that then blocks for longer than the lease', async () => {
    // Long enough for the thread of a busy machine to come up, although it waits before it opens its store.
    const longLeaseMs = 2 * leaseMs
    const { keeper, take, lost, failed } = made(undefined, undefined, longLeaseMs / 10)
    const up = keeper.start()
    const execution = await take('a', 30_000, longLeaseMs)
    blockLoop(longLeaseMs + 1_500)
    const elsewhere = await scene.opened()
    const { claims } = await elsewhere.claim(from, { worker: 'other', leaseMs, alone: true })
    await up

    expect(claims).toEqual([])
    expect(execution.abortReason).toBeUndefined()
    expect([...lost, ...failed]).toEqual([])
  })

  it('passes a cancel from elsewhere to the handler, whose lease goes on', async () => {
    const subject = await started()
    const execution = await subject.take('a')
    const aborted = once(execution.signal, 'abort')
    await (await scene.opened()).records.cancel(queue.name, { ids: ['a'] })
    await aborted

    expect(execution.abortReason).toMatchObject({ code: 'job-cancelled' })
    expect(subject.lost).toEqual([])
  })

  it('loses no lease if it dies and cannot restart at once', async () => {
    const beats = announced(
      `if (life === 1) setTimeout(() => { throw new Error('broken on purpose') }, 1_400)
       if (life === 2) throw new Error('broken again')`,
    )
    try {
      const subject = await started(beats.descriptor)
      const execution = await subject.take('a')
      // For longer than the lease there is no thread.
      await beats.nextBeat(3)

      expect(subject.failed).toMatchObject([
        { call: 'lease-thread', error: { message: 'broken on purpose' }, retryMs: 1_000 },
        { call: 'lease-thread', error: { message: 'broken again' }, retryMs: 2_000 },
      ])
      const elsewhere = await scene.opened()
      expect((await elsewhere.claim(from, { worker: 'other', leaseMs, alone: true })).claims).toEqual([])
      expect(subject.lost).toEqual([])
      expect(execution.abortReason).toBeUndefined()
    } finally {
      beats.close()
    }
  })

  it('loses no lease that the main thread renews while it takes longer to start than the lease lasts', async () => {
    const beats = announced(
      `const depth = store.depth.bind(store)
       store.depth = (queues) => new Promise((go) => setTimeout(go, ${leaseMs + 1_000})).then(() => depth(queues))`,
    )
    try {
      const subject = made(beats.descriptor)
      const up = subject.keeper.start()
      const execution = await subject.take('a')
      await up
      await beats.nextBeat()

      expect(subject.lost).toEqual([])
      expect(execution.abortReason).toBeUndefined()
    } finally {
      beats.close()
    }
  })

  it('takes over only when its store has answered', async () => {
    const subject = await started({ module: join(scene.folder, 'none.mjs') })
    const execution = await subject.take('a')

    expect(subject.failed[0]).toMatchObject({ call: 'lease-thread', retryMs: 1_000 })
    expect(String(subject.failed[0]!.error)).toContain('none.mjs')
    // The beats of this loop tell of the cancel.
    const aborted = once(execution.signal, 'abort')
    await store.records.cancel(queue.name, { ids: ['a'] })
    await aborted
    expect(execution.abortReason).toMatchObject({ code: 'job-cancelled' })
  })

  it('ends soon even if its store waits for a locked file', async () => {
    const beats = announced()
    const { keeper, take, threads } = await started(beats.descriptor)
    await take('a')
    const locker = (await loadDriver())(scene.file)
    // A beat may hold the lock this moment.
    await vi.waitUntil(() => tryWriteLock(locker), { timeout: 10_000 })
    try {
      await beats.nextBeat()
      const stoppedAt = mono()
      await keeper.stop()
      // The store itself waits 30 s for the lock.
      expect(mono() - stoppedAt).toBeLessThan(15_000)
      expect(threads[0]!.threadId).toBe(-1)
    } finally {
      locker.exec('ROLLBACK')
      locker.close()
      beats.close()
    }
  })

  it('sleeps without a timer while it renews nothing, and wakes as often as a lease needs', async () => {
    const beats = announced()
    const { keeper, take } = await started(beats.descriptor)
    try {
      expect(await beats.timers()).toBe(0)
      for (const id of ['a', 'b']) {
        const executions = [await take(`${id}-1`), await take(`${id}-2`)]
        await beats.nextBeat()
        expect(await beats.timers()).toBe(1)
        for (const execution of executions) keeper.forget(execution)
        await vi.waitUntil(async () => (await beats.timers()) === 0, { timeout: 5_000 })
      }
    } finally {
      beats.close()
    }
  })

  it('opens no store in a process that ends before, and delays no exit', async () => {
    const { keeper, take, threads, failed } = made(storeModule(''), undefined, 60_000)
    const started = keeper.start()
    keeper.forget(await take('a'))
    const [[code]] = await Promise.all([once(threads[0]!, 'exit'), keeper.stop(), started])
    expect(code).toBe(0)
    expect(readdirSync(scene.folder)).not.toContain('lives')
    expect(failed).toEqual([])
  })

  it('keeps no process alive that holds nothing', async () => {
    const script = `
      import { leaseThread } from ${JSON.stringify(import.meta.resolve('#src/mill/store-thread.js'))}
      import { Events } from ${JSON.stringify(import.meta.resolve('#src/core/events.js'))}
      import { LeaseKeeper } from ${JSON.stringify(import.meta.resolve('#src/runtime/leases/lease-keeper.js'))}
      import { SqliteStore } from ${JSON.stringify(import.meta.resolve('#src/stores/sqlite/sqlite-store.js'))}
      const file = ${JSON.stringify(scene.file)}
      const startThread = leaseThread('sqlite:' + file)
      const store = new SqliteStore({ file })
      const keeper = new LeaseKeeper({ store, events: new Events(), mono: () => performance.now(), host: 'h', pid: 1, startThread })
      await keeper.start()
      console.log('started')`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      timeout: 10_000,
    })
    expect(stdout).toBe('started\n')
  })
})

it('the clock that threads share runs like the monotonic clock', () => {
  // Each look stands between two of the other clock: the process may lose the processor anywhere.
  const look = () => [performance.now(), sharedMono(), performance.now()] as const
  const first = look()
  blockLoop(20)
  const second = look()
  const shared = second[1] - first[1]
  expect(shared).toBeGreaterThan(second[0] - first[2] - 0.5)
  expect(shared).toBeLessThan(second[2] - first[0] + 0.5)
})
