import { describe, expect, it } from 'vitest'
import type { FsckFinding } from '#src/stores/contract/store-health.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import type { ShardKey } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { connect, queue, RedisScene, settings, sharedRedis } from '../redis-scene.js'

const { server, client } = await sharedRedis()

const bad = (findings: readonly FsckFinding[]) => findings.filter(({ level }) => level !== 'ok')
/** The port, with something done before each of its scripts. */
function overheard(before: (script: string, args: readonly unknown[]) => unknown): RedisClient {
  return {
    isCluster: false,
    command: (name, args) => client.command(name, args),
    run: async (script, keys, args) => {
      await before(script.name, args)
      return client.run(script, keys, args)
    },
    pop: () => Promise.reject(new Error('not asked')),
    popAndRun: () => Promise.reject(new Error('not asked')),
    listen: () => Promise.reject(new Error('not asked')),
    reach: () => Promise.reject(new Error('not asked')),
    close: async () => {},
  }
}

describe('the check of a Redis store', () => {
  it('finds no fault in a busy store that has a job of every kind', async () => {
    const scene = await RedisScene.busy(client)
    const kinds: ShardKey[] = [
      'ready-list',
      'ready',
      'suspects',
      'scheduled',
      'leases',
      'completed',
      'expiry',
      'dead',
      'retries',
    ]
    for (const key of kinds) expect(await scene.all(key), key).not.toEqual([])
    expect(Number(await scene.field('meta', 'stale'))).toBe(1)

    expect(await scene.health.check()).toEqual([
      { level: 'ok', what: 'queue mail', text: '10 jobs, everything in its place' },
    ])
  })

  it('names three ids of a kind and counts the others', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([settings])
    await scene.add(...Array.from({ length: 250 }, (_, i) => ({ id: `job-${i}`, priority: 1 })))
    await scene.raw('DEL', 'ready')

    const [finding, ...others] = bad(await scene.health.check())

    expect(others).toEqual([])
    expect(finding!.text).toMatch(/^missing from 'ready': job-\d+, job-\d+, job-\d+ and 247 more\. They never run/)
  })

  it('checks one queue if it is named, with all its shards', async () => {
    const scene = await RedisScene.busy(client)
    await scene.store.open([{ ...settings, name: 'wide', shards: 3 }])
    await scene.raw('ZPOPMIN', 'suspects')
    await client.command('SET', [`{${scene.namespace}:wide:2}:jobs`, 'x'])

    expect(bad(await scene.health.check('wide'))).toEqual([
      { level: 'error', what: 'queue wide, shard 2', text: expect.stringMatching(/wide:2}:jobs' is a string/) },
    ])
    expect(bad(await scene.health.check()).map(({ what }) => what)).toEqual(['queue mail', 'queue wide, shard 2'])
    await expect(scene.health.check('nope')).rejects.toMatchObject({ code: 'queue-unknown' })
  })

  it('finds nothing in an empty namespace', async () => {
    expect(await new RedisScene(client).health.check()).toEqual([
      { level: 'ok', what: 'queues', text: 'none is stored' },
    ])
  })

  it('raises no false alarm while jobs arrive, run, fail and leave on another connection', async () => {
    const scene = await RedisScene.busy(client)
    const other = connect(server)
    const busy = new RedisStore({ client: other, namespace: scene.namespace })
    let isOver = false
    let rounds = 0
    const load = async () => {
      for (let n = 0; !isOver; n++, rounds++) {
        const jobs = Array.from({ length: 20 }, (_, i) => ({
          id: `load-${n}-${i}`,
          task: 'send',
          payload: '{}',
          priority: i % 5 === 0 ? 1 : 0,
          rememberMs: i % 7 === 0 ? 5_000 : 0,
          ...(i % 6 === 0 ? { delayMs: 1 } : {}),
        }))
        await busy.enqueue([{ callId: `load-${n}`, queue, jobs }])
        const { claims } = await busy.claim([{ queue, limit: 15 }], {
          worker: 'loader',
          leaseMs: n % 3 === 0 ? 5 : 5_000,
        })
        const kinds = [
          { kind: 'complete' },
          { kind: 'complete', result: { payload: '1', keepMs: 50 } },
          { kind: 'retry', delayMs: 2, error: 'again' },
          { kind: 'release', delayMs: 0 },
        ]
        await busy.settle(claims.map(({ id, fence }, i) => ({ queue, id, fence, ...kinds[i % 4] }) as never))
        await busy.records.delete(queue, { ids: [`load-${n}-${n % 20}`] })
      }
    }
    const loading = load()

    const found: FsckFinding[] = []
    for (let n = 0; n < 12; n++) found.push(...bad(await scene.health.check()))
    isOver = true
    await loading
    await other.close()

    expect(found).toEqual([])
    expect(rounds).toBeGreaterThan(12)
  })

  it('does not report a key as foreign if its queue was opened meanwhile', async () => {
    const scene = await RedisScene.busy(client)
    let opened = 0
    const watched = overheard(async (script) => {
      if (script === 'check-scan' && opened++ === 0) await scene.store.open([{ ...settings, name: 'new', shards: 2 }])
    })

    const found = await new RedisStore({ client: watched, namespace: scene.namespace }).health.check()

    expect(opened).toBeGreaterThan(0)
    expect(bad(found)).toEqual([])
  })

  it('reports its findings even if keys cannot be scanned', async () => {
    const scene = await RedisScene.busy(client)
    await scene.raw('ZPOPMIN', 'suspects')
    const watched = overheard((script) => {
      if (script === 'check-scan') throw new Error('no right to scan')
    })

    const found = await new RedisStore({ client: watched, namespace: scene.namespace }).health.check()

    expect(found.map(({ level, what }) => `${level} ${what}`)).toEqual(['error queue mail', 'warning unknown keys'])
    expect(found[1]!.text).toMatch(/no right to scan/)
  })

  it('needs no write permission', async () => {
    const scene = await RedisScene.busy(client)
    const login = { username: 'reader', password: 'secret' }
    await server.ask(
      'ACL',
      'SETUSER',
      login.username,
      'on',
      `>${login.password}`,
      '~*',
      '-@all',
      '+@read',
      '+@connection',
      '+eval',
      '+evalsha',
      '+info',
      '+time',
    )
    const reading = connect(server, login)
    await expect(reading.command('DEL', [scene.key('ready-list')])).rejects.toThrow(/NOPERM/)
    const reader = new RedisStore({ client: reading, namespace: scene.namespace })

    expect(await reader.health.check()).toEqual(await scene.health.check())

    await reading.close()
  })

  it('finds a fault at any position of a ready list with several pages', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([settings])
    await scene.add(...Array.from({ length: 100 }, (_, i) => ({ id: `job-${i}` })))
    const line = await scene.all('ready-list')
    const missed: number[] = []
    for (let i = 0; i < line.length - 1; i++) {
      await scene.raw('LSET', 'ready-list', String(i), line[i + 1]!)
      await scene.raw('LSET', 'ready-list', String(i + 1), line[i]!)
      const found = bad(await scene.health.check())
      if (!found.some(({ text }) => text.startsWith("come out of order in 'ready-list': job-"))) missed.push(i)
      await scene.raw('LSET', 'ready-list', String(i), line[i]!)
      await scene.raw('LSET', 'ready-list', String(i + 1), line[i + 1]!)
    }

    expect(missed).toEqual([])
    expect(bad(await scene.health.check())).toEqual([])
  })

  it('works in limited steps: many small elements at once, large ones one by one', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([settings, { ...settings, name: 'large' }])
    for (let n = 0; n < 8; n++) await scene.add(...Array.from({ length: 250 }, (_, i) => ({ id: `small-${n}-${i}` })))
    const jobs = Array.from({ length: 40 }, (_, i) => ({
      id: `large-${i}`,
      task: 'send',
      payload: 'x'.repeat(300_000),
    }))
    for (const [n, job] of jobs.entries())
      await scene.store.enqueue([
        { callId: `large-${n}`, queue: 'large', jobs: [{ ...job, priority: 0, rememberMs: 0 }] },
      ])
    const counts: number[] = []
    const watched = overheard((script, args) => {
      if (script === 'check-walk' && args[0] === 'jobs') counts.push(Number(args[2]))
    })
    const { health } = new RedisStore({ client: watched, namespace: scene.namespace })

    expect((await health.check('mail')).map(({ text }) => text)).toEqual(['2000 jobs, everything in its place'])
    expect(counts.length).toBeGreaterThan(8)
    expect(Math.max(...counts)).toBe(100)
    counts.length = 0
    expect((await health.check('large')).map(({ text }) => text)).toEqual(['40 jobs, everything in its place'])
    expect(Math.max(...counts.slice(1))).toBeLessThanOrEqual(3)
  })
})
