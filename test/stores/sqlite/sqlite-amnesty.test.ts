/** Leases that end while somebody holds the write lock of the file for long. */

import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fileClockUrl, writeFileClock } from '#src/store-testing/harness/file-clock.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { SqliteAmnesty } from '#src/stores/sqlite/rows/sqlite-amnesty.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { enqueueCall, queue, SqliteScene } from './sqlite-scene.js'

const leaseMs = 4_000
const from = [{ queue: queue.name, limit: 1 }]

const scene = new SqliteScene()
let holder: SqliteStore
let other: SqliteStore
let now: number
beforeEach(async () => {
  now = 1_700_000_000_000
  await pass(0)
  const clock = fileClockUrl(join(scene.folder, 'clock'))
  holder = await scene.opened(clock)
  other = await scene.opened(clock)
  await holder.enqueue([enqueueCall('a')])
})
afterEach(() => scene.close())

async function pass(ms: number): Promise<void> {
  now += ms
  writeFileClock(join(scene.folder, 'clock'), now)
}

const claimBy = (store: SqliteStore) => store.claim(from, { worker: store === holder ? 'holder' : 'other', leaseMs })

/** Another worker claims while somebody holds the lock for so long. */
async function claimedBehindLock(ms: number) {
  const locker = (await loadDriver())(scene.file)
  locker.exec('BEGIN IMMEDIATE')
  const claimed = claimBy(other)
  // Reads are answered meanwhile: the claim has been waiting for the lock.
  await other.depth([queue.name])
  await pass(ms)
  locker.exec('ROLLBACK')
  locker.close()
  return claimed
}

describe('a lease that ended while the file was locked', () => {
  it('is spared by a claimer that waited for the lock, so that its holder can settle or renew it', async () => {
    const [claim] = (await claimBy(holder)).claims
    const { claims, crashed, waits } = await claimedBehindLock(6_000)

    expect([claims, crashed, waits]).toEqual([[], [], [expect.objectContaining({ forMs: 2_000 })]])
    expect(await holder.extend([{ ...claim!, leaseMs }])).toEqual(['ok'])
    await pass(2_001)
    expect((await claimBy(other)).crashed).toEqual([])
    expect(await holder.settle([{ ...claim!, kind: 'complete' }])).toEqual(['ok'])
  })

  it('ends two seconds later if nobody has renewed it', async () => {
    await claimBy(holder)
    await claimedBehindLock(6_000)
    await pass(1_999)
    expect((await claimBy(other)).crashed).toEqual([])
    await pass(1)

    expect((await claimBy(other)).crashed).toHaveLength(1)
  })

  it('is not spared again after another lock soon afterwards', async () => {
    await claimBy(holder)
    await claimedBehindLock(6_000)

    expect((await claimedBehindLock(2_500)).crashed).toHaveLength(1)
  })

  it('ends at once after a short wait', async () => {
    await claimBy(holder)
    await pass(3_500)

    expect((await claimedBehindLock(900)).crashed).toHaveLength(1)
  })
})

it('an amnesty from before a restart of the machine does not count', async () => {
  const db = (await loadDriver())(':memory:')
  db.exec('CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT)')
  const amnesty = new SqliteAmnesty(db)
  amnesty.waited(8_990_000, 9_000_000)

  expect([amnesty.until(9_000_000), amnesty.until(5_000)]).toEqual([9_002_000, Number.NEGATIVE_INFINITY])
  db.close()
})
