/** The idle mode of a Postgres store: when a process leaves its server alone, and what wakes it. */

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { PostgresIdle } from '#src/stores/postgres/work/postgres-idle.js'

const pollMs = 600_000
/** Three minutes after processes have looked around. */
const instant = 1_800_000_000_000 + 180_000

/** The clocks of this process go on from that instant, and may jump. */
let passedMs = 0
const passes = (ms: number) => {
  passedMs += ms
}

beforeEach(() => {
  const mono = performance.now.bind(performance)
  const begunAt = mono()
  passedMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => mono() + passedMs)
  vi.spyOn(Date, 'now').mockImplementation(() => Math.round(instant + mono() - begunAt + passedMs))
})

/** Within what a busy machine takes between two lines. */
const close = (ms: number, expected: number) => expect(Math.abs(ms - expected)).toBeLessThan(3_000)

describe('a process in idle mode', () => {
  it('sleeps once it has been quiet for 7 s, and wakes with all others at a whole interval of the clock', () => {
    const idle = new PostgresIdle(pollMs, () => {})
    expect(idle.isAsleep()).toBe(false)
    passes(7_000)
    close(idle.asleepForMs(), 600_000 - 187_000)
    passes(600_000 - 187_000)
    expect(idle.isAsleep()).toBe(false)
    passes(7_000)
    close(idle.asleepForMs(), 593_000)
  })

  it('wakes when a change is due that it knows of, and sleeps on after it', () => {
    const idle = new PostgresIdle(pollMs, () => {})
    passes(10_000)
    idle.knows(60_000)
    close(idle.asleepForMs(), 60_000)
    passes(60_000)
    expect(idle.isAsleep()).toBe(false)
    passes(7_000)
    expect(idle.isAsleep()).toBe(true)
    idle.knows(null)
    close(idle.asleepForMs(), 600_000 - 257_000)
  })

  it('wakes when it does something', () => {
    const woken = vi.fn()
    const idle = new PostgresIdle(pollMs, woken)
    idle.touched()
    expect(woken).not.toHaveBeenCalled()
    passes(7_000)
    idle.touched()
    expect(woken).toHaveBeenCalledOnce()
    expect(idle.isAsleep()).toBe(false)
  })
})

describe('a Postgres store in idle mode', () => {
  let server: PostgresServer
  const closing: { close(): Promise<void> }[] = []
  const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const
  const job = { task: 'send', payload: '{}', priority: 0, rememberMs: 0 }

  beforeAll(async () => {
    server = await PostgresServer.start()
  }, 60_000)
  afterAll(async () => {
    for (const one of closing.reverse()) await one.close()
    await server.stop()
  })

  function storeIn(schema: string, idlePollMs?: number) {
    const address = { ...postgresAddress(server.url), schema }
    const store = new PostgresStore({ address: idlePollMs === undefined ? address : { ...address, idlePollMs } })
    closing.push(store)
    return store
  }

  it('knows when the next job falls due, a lease ends, a schedule ticks, a join is late or a wait is over', async () => {
    const store = storeIn('next')
    await store.open([mail])
    const client = new pg.Client(server.url)
    await client.connect()
    closing.push({ close: () => client.end() })
    const inMs = async () => (await client.query('SELECT next.next_change_1() AS ms')).rows[0].ms as number | null
    const about = async (ms: number) => expect(Math.abs((await inMs())! - ms)).toBeLessThan(20_000)

    expect(await inMs()).toBe(null)
    await client.query(`INSERT INTO next.signal_wait VALUES (1, 'a', 's', (next.us() / 1000 + 9000000))`)
    await about(9_000_000)
    await client.query(`INSERT INTO next.join_job (qid, id, seal_within_ms, delay_ms, cancels_rest, seal_by, due_at)
      VALUES (1, 'a', 1, 0, 0, 0, next.us() / 1000 + 8000000)`)
    await about(8_000_000)
    await client.query(`INSERT INTO next.schedule (name, definition, revision, paused, next_at, created_at, updated_at)
      VALUES ('s', '{}', '1', 0, next.us() / 1000 + 7000000, 0, 0)`)
    await about(7_000_000)
    await store.enqueue([{ callId: 'b', queue: 'mail', jobs: [{ ...job, id: 'now' }] }])
    await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 6_000_000 })
    await about(6_000_000)
    await store.enqueue([{ callId: 'c', queue: 'mail', jobs: [{ ...job, id: 'later', delayMs: 5_000_000 }] }])
    await about(5_000_000)
  })

  it('asks nothing while it sleeps, and hears a ring all the same', async () => {
    const [sleeper, other] = [storeIn('rung', pollMs), storeIn('rung')]
    await sleeper.open([mail])
    await other.open([mail])
    passes(10_000)
    expect(sleeper.idle!.isAsleep()).toBe(true)
    const heard = sleeper.wait(['mail'], 500_000, new AbortController().signal)
    await other.enqueue([{ callId: 'c', queue: 'mail', jobs: [{ ...job, id: 'a' }] }])

    expect(await heard).toEqual(['mail'])
    expect(sleeper.idle!.isAsleep()).toBe(true)
    await sleeper.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
    expect(sleeper.idle!.isAsleep()).toBe(false)
  })

  it('finds a job that falls due while it sleeps, and whose lead has died', async () => {
    const [sleeper, other] = [storeIn('due', pollMs), storeIn('due')]
    await other.open([mail])
    await sleeper.open([mail])
    await other.enqueue([{ callId: 'c', queue: 'mail', jobs: [{ ...job, id: 'a', delayMs: 4_000 }] }])
    const { waits } = await other.claim([{ queue: 'mail', limit: 1 }], { worker: 'dies', leaseMs: 60_000 })
    expect(waits[0]!.lead).toBe(true)
    passes(10_000)
    const heard = sleeper.wait(['mail'], 500_000, new AbortController().signal)

    expect(await heard).toEqual(['mail'])
  })

  it('never sleeps unless its address says so', () => {
    expect(storeIn('awake').idle).toBe(undefined)
  })
})
