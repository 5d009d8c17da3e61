import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { StoreFullError } from '#src/core/errors.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { EnqueueCall, NewJob } from '#src/stores/contract/new-job.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, queue } from '../sqlite-scene.js'
import { SmallVolume } from './small-volume.js'

const probe = SmallVolume.of(1)
probe?.close()
if (probe === undefined) console.log(`skipped: no volume of 6 MB can be mounted here (${SmallVolume.why})`)

let volume: SmallVolume
let store: SqliteStore
let count: number

const by = { worker: 'w', leaseMs: 60_000 }

beforeEach(async () => {
  if (probe === undefined) return
  volume = SmallVolume.of(6)!
  store = new SqliteStore({ file: join(volume.folder, 'jobs.db') })
  await store.open([queue])
  count = 0
})
afterEach(async () => {
  if (probe === undefined) return
  await store.close()
  volume.close()
})

function calls(size: number, jobs: number, more: Partial<NewJob> = {}): EnqueueCall[] {
  count += 1
  const payload = JSON.stringify('x'.repeat(size))
  const some = Array.from({ length: jobs }, (_, i) => job(`job-${count}-${i}`, { payload, ...more }))
  return [{ callId: `call-${count}`, queue: queue.name, jobs: some }]
}

/** Enqueues until the store takes no more; how many it took. */
async function filled(size: number, jobs: number, more?: Partial<NewJob>): Promise<number> {
  for (let taken = 0; ; taken += jobs) {
    try {
      await store.enqueue(calls(size, jobs, more))
    } catch (error) {
      expect(error).toBeInstanceOf(StoreFullError)
      return taken
    }
  }
}

async function ready(): Promise<number> {
  return (await store.depth([queue.name])).depths[0]!.ready
}

/** Claims and settles until nothing is left; how many ran. */
async function drained(limit: number): Promise<number> {
  for (let ran = 0; ; ) {
    const { claims } = await store.claim([{ queue: queue.name, limit }], by)
    if (claims.length === 0) return ran
    await store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
    ran += claims.length
  }
}

/** Claims jobs until none is left, and settles each time all that it then has: all of them fail for good. */
async function failed(atOnce: number): Promise<number> {
  for (let ran = 0; ; ) {
    const claims: Claim[] = []
    while (claims.length < atOnce) {
      const some = (await store.claim([{ queue: queue.name, limit: 1 }], by)).claims
      if (some.length === 0) break
      claims.push(...some)
    }
    if (claims.length === 0) return ran
    const error = 'the server is away'
    const ends = claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'bury' as const, error }))
    expect(await store.settle(ends)).toEqual(claims.map(() => 'ok'))
    ran += claims.length
  }
}

async function cleared(): Promise<number> {
  for (let gone = 0; ; ) {
    const { changed, more } = await store.records.clear(queue.name)
    gone += changed
    if (!more) return gone
  }
}

const sizes = [
  ['small jobs', 50, 200],
  ['middling jobs', 1_000, 100],
  ['large jobs', 100_000, 2],
] as const

describe.skipIf(probe === undefined)('a volume of 6 MB', () => {
  it.each(sizes)('filled by %s drains by itself, and accepts jobs again', async (_, size, jobs) => {
    const taken = await filled(size, jobs)
    expect(taken * size).toBeGreaterThan(size < 100 ? 500_000 : 2_500_000)
    expect(await drained(250)).toBe(taken)
    expect(await filled(size, jobs)).toBeGreaterThan(taken * 0.8)
  })

  it('filled by large jobs settles many failures of one call, each with a commit of its own', async () => {
    const taken = await filled(100_000, 2)
    expect(await failed(12)).toBe(taken)
    expect((await store.depth([queue.name])).depths[0]).toMatchObject({ dead: taken, running: 0 })
  })

  it.each([1, 12])(
    'filled by large jobs lets all of them fail, %i in a call, and keeps their deaths whole',
    async (atOnce) => {
      const taken = await filled(100_000, 2, { reportsDeath: true })
      expect(await failed(atOnce)).toBe(taken)
      expect((await store.depth([queue.name])).depths[0]).toMatchObject({ dead: taken, running: 0 })

      expect(await cleared()).toBe(taken)
      const deaths = await store.deaths.unreported([queue.name], ['send'], 1_000)
      expect(deaths.map(({ payload, error }) => [payload.length, error])).toEqual(
        Array.from({ length: taken }, () => [100_002, 'the server is away']),
      )
      await store.deaths.reported(queue.name, deaths)
      expect(await filled(100_000, 2)).toBeGreaterThan(taken * 0.8)
    },
  )

  it.each(sizes)('filled by %s is emptied by clear', async (_, size, jobs) => {
    const taken = await filled(size, jobs)
    expect(await cleared()).toBe(taken)
    expect(await store.enqueue(calls(size, jobs))).toHaveLength(1)
  })

  it.each(sizes)(
    'filled by %s and then by others to the last byte drains at the cost of the ballast',
    async (_, size, jobs) => {
      const taken = await filled(size, jobs)
      expect(existsSync(join(volume.folder, 'jobs.db-ballast'))).toBe(true)
      volume.fill()
      await expect(store.enqueue(calls(size, jobs))).rejects.toBeInstanceOf(StoreFullError)
      expect(await drained(250)).toBe(taken)
      expect(existsSync(join(volume.folder, 'jobs.db-ballast'))).toBe(false)
    },
  )

  it('filled by others to the last byte is emptied by clear, and the ballast returns when there is room', async () => {
    const taken = await filled(50, 200)
    volume.fill()
    expect(await cleared()).toBe(taken)
    for (const name of readdirSync(volume.folder)) if (name.startsWith('foreign')) rmSync(join(volume.folder, name))
    await expect
      .poll(
        async () => {
          await store.enqueue(calls(50, 1))
          return existsSync(join(volume.folder, 'jobs.db-ballast'))
        },
        { timeout: 20_000 },
      )
      .toBe(true)
  })

  it('limits the log to a sixteenth of its size', async () => {
    await filled(1_000, 20)
    expect(statSync(join(volume.folder, 'jobs.db-wal')).size).toBeLessThan(2 * 389_120)
  })

  it('repeats its answer to a call that it accepted before it was full', async () => {
    const [accepted] = calls(50, 1)
    await store.enqueue([accepted!])
    await filled(1_000, 20)
    expect(await store.enqueue([accepted!])).toEqual([['added']])
    const before = await ready()
    await expect(store.enqueue([accepted!, ...calls(100_000, 1)])).rejects.toBeInstanceOf(StoreFullError)
    expect(await ready()).toBe(before)
  })

  it('can be opened by another process when others have filled it to the last byte', async () => {
    const taken = await filled(1_000, 100)
    await store.close()
    volume.fill()
    store = new SqliteStore({ file: join(volume.folder, 'jobs.db') })
    await store.open([queue])
    expect(await drained(250)).toBe(taken)
  })
})
