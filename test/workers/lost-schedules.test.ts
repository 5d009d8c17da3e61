/** What workers do when their store has lost what it held. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { nextEvent, recorded } from '../next-event.js'
import { testMill } from '../test-mill.js'

let redis: Awaited<ReturnType<typeof startRedis>>
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

/** A store, and the means to empty it. */
const stores = {
  async redis() {
    const client = openRedisClient(redisAddress(redis.url))
    onTestFinished(() => client.close())
    return { store: redis.url, lose: async () => void (await client.command('FLUSHDB', [])) }
  },
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-lost-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'jobs.db')
    return {
      store: `sqlite:${file}`,
      lose: async () => {
        for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
      },
    }
  },
}

const task = defineTask({ name: 'work', run: () => {} })

describe.each(Object.entries(stores))('a %s store that has lost its data', (_, made) => {
  it('gets the declared schedules back from the workers, which report it once', async () => {
    const { store, lose } = await made()
    const schedules = { often: { every: '1s', task }, nightly: { cron: '@daily', task } } as const
    const mill = testMill({ store, tasks: [task], schedules })
    const other = testMill({ store, tasks: [task], schedules })
    const lost = recorded(mill, 'schedule.lost')
    await mill.worker().start()
    await nextEvent(mill, 'schedule.ticked')
    await lose()
    await nextEvent(mill, 'schedule.lost')
    await nextEvent(mill, 'schedule.ticked')
    expect(lost).toEqual([{ restored: ['often', 'nightly'] }])
    expect((await other.schedules.list()).schedules.map(({ name }) => name)).toEqual(['nightly', 'often'])
  }, 30_000)
})
