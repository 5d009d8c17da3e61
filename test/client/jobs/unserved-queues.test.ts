import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, type JobHandle, type Mill, type MillOptions } from 'millrace'
import type { Store } from 'millrace/store'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { sharedThread } from '#src/store-testing/harness/shared-thread.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const near = defineTask({ name: 'near', run: () => {} })
const far = defineTask({ name: 'far', queue: 'far', run: () => {} })

const stores = {
  memory: () => new MemoryStore(),
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    return new SqliteStore({ file: join(folder, 'jobs.db'), startThread: sharedThread })
  },
}

/** A mill whose clock the test moves. */
class Waiting {
  readonly clock = new ManualClock(Date.now())
  readonly store: Store
  readonly mill: Mill
  readonly #watch
  #ids = 0

  constructor(store: Store, options: Omit<MillOptions, 'store'> = {}) {
    this.store = store
    this.mill = testMillOn(store, { tasks: [near, far], ...options }, this.clock)
    this.#watch = vi.spyOn(store.records!, 'watch')
  }

  /** Somebody waits for the result of another job. Resolves once the store watches for it, too. */
  async waits(task: typeof near | typeof far): Promise<JobHandle> {
    const job = await this.mill.enqueue(task, undefined, { id: `job-${++this.#ids}` })
    job.result().catch(() => {})
    const isWatched = () => this.#watch.mock.lastCall?.[0].some(({ id }) => id === job.id)
    await vi.waitFor(() => expect(isWatched()).toBe(true))
    return job
  }

  /** A worker elsewhere reports that it serves this queue. */
  async serve(queue: string): Promise<void> {
    const process = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, startedAt: 0, concurrency: 1, running: 0 }
    await this.store.workers!.beat({ id: 'elsewhere', queues: [queue], ...process }, 60_000)
  }
}

describe.each(Object.entries(stores))('a queue that no worker serves, on %s', (_, store) => {
  it('is reported once when a result of it has been waited for 10 s', async () => {
    const scene = new Waiting(store())
    const reported = recorded(scene.mill, 'queue.unserved')
    await scene.waits(near)
    scene.clock.advance(9_999)
    await scene.waits(near)
    expect(reported).toEqual([])

    scene.clock.advance(1)
    await scene.waits(near)
    expect(reported).toEqual([{ queue: 'default', id: 'job-1' }])

    scene.clock.advance(20_000)
    await scene.waits(near)
    expect(reported).toHaveLength(1)
  })

  it('is reported for itself, and a queue that a worker serves is not', async () => {
    const scene = new Waiting(store())
    const reported = recorded(scene.mill, 'queue.unserved')
    await scene.waits(near)
    await scene.waits(far)
    await scene.serve('default')
    scene.clock.advance(10_000)
    await scene.waits(near)
    expect(reported).toEqual([{ queue: 'far', id: 'job-2' }])
  })

  it('is looked for once for each wait', async () => {
    const scene = new Waiting(store())
    await scene.waits(near)
    await scene.serve('default')
    const looks = vi.spyOn(scene.store.workers!, 'list')
    recorded(scene.mill, 'queue.unserved')
    for (let round = 0; round < 3; round += 1) {
      scene.clock.advance(10_000)
      await scene.waits(far)
    }
    expect(looks).toHaveBeenCalledTimes(2)
  })
})

describe('a wait for a result that no worker brings', () => {
  it('is reported to the logger, with the remedy', async () => {
    const warn = vi.fn()
    const logger = { debug: () => {}, info: () => {}, warn, error: () => {} }
    const scene = new Waiting(stores.memory(), { logger })
    await scene.waits(far)
    scene.clock.advance(10_000)
    await scene.waits(far)

    expect(warn).toHaveBeenCalledExactlyOnceWith(
      "a result has not come for 10s: no worker serves queue 'far': start one, by `npx millrace work --queues far`, or by mill.worker().start() in this process",
      { queue: 'far', id: 'job-1' },
    )
  })

  it('is printed by Node if nobody listens', async () => {
    const scene = new Waiting(stores.memory())
    const warned = once(process, 'warning')
    await scene.waits(near)
    scene.clock.advance(10_000)
    await scene.waits(near)

    expect((await warned)[0]).toMatchObject({
      name: 'MillraceWarning',
      code: 'MILLRACE_QUEUE_UNSERVED',
      message: expect.stringMatching(/^the result of job 'job-1' has not come for 10s, and no worker serves queue/),
    })
  })

  it('is no matter of a feed, which shows the state of its job', async () => {
    const scene = new Waiting(stores.memory())
    const reported = recorded(scene.mill, 'queue.unserved')
    const job = await scene.mill.enqueue(far, undefined)
    const feed = job.events()
    await feed.next()
    void feed.next()
    scene.clock.advance(10_000)
    await scene.waits(near)
    expect(reported).toEqual([])
    await feed.return(undefined)
  })
})
