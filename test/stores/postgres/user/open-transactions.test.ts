/** Transactions of users that stay open after they have ended a job: nobody waits for them. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresStoreAddress, testClient } from '../../../worker-postgres.js'

const queue = 'mail'
const mail = { name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const worker = { worker: 'worker01', leaseMs: 30_000 }
const job = (id: string, group?: string) => ({
  ...{ id, task: 'send', payload: '{}', priority: 0, rememberMs: 60_000 },
  ...(group === undefined ? {} : { group }),
})

/** Jobs `a`, `b` and `c` run in one claim, `d` waits; a transaction that is open has ended `a`. */
async function scene({ group, maxRunning }: { group?: string; maxRunning?: { perGroup: number } } = {}) {
  const address = postgresAddress(await postgresStoreAddress())
  const store = new PostgresStore({ address })
  onTestFinished(() => store.close())
  await store.open([{ ...mail, ...(maxRunning === undefined ? {} : { maxRunning }) }])
  const jobs = ['a', 'b', 'c', 'd'].map((id) => job(id, group))
  await store.enqueue([{ callId: 'call-1', queue, jobs }])
  // Another process, which has not looked for leases yet.
  const other = new PostgresStore({ address })
  onTestFinished(() => other.close())
  const { claims } = await store.claim([{ queue, limit: 3 }], worker)
  expect(claims.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  const { fence } = claims[0]!
  const user = await testClient()
  const admin = await testClient()
  // Its notes are locked as well.
  const beat = { progress: { fraction: 0.1 }, checkpoint: { payload: '1' }, startedMs: 1, host: 'h', pid: 1 }
  await store.extend([{ queue, id: 'a', fence, leaseMs: 30_000, beat }])
  await user.query('BEGIN')
  expect(await store.transactions.complete(user, { queue, id: 'a', fence })).toBe(true)
  const table = (name: string) => `${address.schema}.${name}`
  const endLeases = async () => {
    for (const name of ['bunch', 'beat']) await admin.query(`UPDATE ${table(name)} SET lease_ms = 0`)
    await admin.query(`UPDATE ${table('queue_state')} SET lease_floor = 0`)
  }
  const depth = async () => {
    const [{ ready, running, dead, processed }] = (await store.depth([queue])).depths as [
      Awaited<ReturnType<typeof store.depth>>['depths'][0],
    ]
    return { ready, running, dead, processed }
  }
  return { store, other, user, fence, endLeases, depth }
}

const isHeld = (id: string) =>
  expect.objectContaining({
    code: 'store-unavailable',
    inDoubt: false,
    message: expect.stringMatching(new RegExp(`job '${id}' of queue 'mail' .* still open .*pg_stat_activity`)),
  })

describe('while a transaction is open that has ended a job', () => {
  it('other jobs of its claim are settled and renewed, and so is the job itself', async () => {
    const { store, user, fence, depth } = await scene()
    const renewed = ['a', 'b', 'c'].map((id) => ({ queue, id, fence, leaseMs: 60_000 }))
    expect(await store.extend(renewed)).toEqual(['ok', 'ok', 'ok'])
    expect(
      await store.extend([{ queue, id: 'a', fence, leaseMs: 60_000, beat: { progress: { fraction: 0.2 } } }]),
    ).toEqual(['ok'])
    const settled = [
      { queue, id: 'b', fence, kind: 'complete' as const },
      { queue, id: 'c', fence, kind: 'retry' as const, delayMs: 0, error: 'no' },
    ]
    expect(await store.settle(settled)).toEqual(['ok', 'ok'])
    expect(await depth()).toEqual({ ready: 2, running: 1, dead: 0, processed: 1 })
    await user.query('COMMIT')

    expect(await depth()).toEqual({ ready: 2, running: 0, dead: 0, processed: 2 })
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'retry', delayMs: 0, error: 'no' }])).toEqual(['gone'])
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  })

  it('its claim is lost to it, and ends with its lease after a rollback', async () => {
    const { store, other, user, fence, endLeases } = await scene()
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'retry', delayMs: 0, error: 'no' }])).toEqual(['lost'])
    await user.query('ROLLBACK')
    await endLeases()
    const { crashed } = await other.claim([{ queue, limit: 9 }], { worker: 'worker02', leaseMs: 30_000 })

    expect(crashed.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c'])
  })

  it('recovery takes the other jobs of a dead worker back, claims go on, and the job is looked at again', async () => {
    const { other, user, endLeases, depth } = await scene()
    await endLeases()
    const { crashed, claims, waits, more } = await other.claim([{ queue, limit: 9 }], {
      worker: 'worker02',
      leaseMs: 30_000,
    })
    expect(crashed.map(({ id }) => id)).toEqual(['b', 'c'])
    expect(claims.map(({ id }) => id)).toEqual(['d'])
    // Nobody asks again at once, for as long as the transaction is open.
    expect(more).toBe(false)
    expect(Math.min(...waits.map(({ forMs = 0 }) => forMs))).toBeGreaterThan(0)
    await user.query('COMMIT')

    expect(await depth()).toMatchObject({ running: 1, processed: 1 })
  })

  it('an operator learns which job it holds, and changes all others', async () => {
    const { store, user, fence, depth } = await scene()
    const { records } = store
    await expect(records.cancel(queue, { ids: ['a'] }, 'why')).rejects.toEqual(isHeld('a'))
    await expect(records.fail!(queue, 'a', { delayMs: 0, reason: 'why' })).rejects.toEqual(isHeld('a'))
    expect(await records.fail!(queue, 'c', { delayMs: 60_000, reason: 'why' })).toBe('ok')
    expect(await records.cancel(queue, 'all')).toEqual({ changed: 3, more: false })
    expect(await store.extend([{ queue, id: 'b', fence, leaseMs: 60_000 }])).toEqual(['cancel'])
    await user.query('ROLLBACK')

    expect(await records.cancel(queue, { ids: ['a'] }, 'why')).toEqual({ changed: 1, more: false })
    expect(await depth()).toMatchObject({ ready: 0, running: 2 })
  })

  it('the queue is paused, cleared, drained and resumed, and jobs are deleted, buried and run now', async () => {
    const { store, user, depth } = await scene()
    const { records } = store
    await store.enqueue([{ callId: 'call-2', queue, jobs: [job('e'), job('f'), { ...job('g'), delayMs: 60_000 }] }])
    await records.pause(queue)
    expect(await records.runNow(queue, 'all')).toEqual({ changed: 1, more: false })
    expect(await records.delete(queue, { ids: ['a', 'e'] })).toEqual({ changed: 1, more: false })
    expect(await records.bury(queue, { ids: ['f'] })).toEqual({ changed: 1, more: false })
    expect(await records.morgue.revive(queue, 'all')).toEqual({ changed: 1, more: false })
    await records.drain(queue)
    expect(await records.clear(queue)).toEqual({ changed: 3, more: false })
    await records.resume(queue)
    await records.setLimits(queue, { maxCrashes: 2 })
    expect((await records.get(queue, 'a'))?.state).toBe('running')
    expect((await records.list(queue, { state: 'running', by: 'time', limit: 9 })).jobs.map(({ id }) => id)).toEqual([
      'a',
      'b',
      'c',
    ])
    await user.query('COMMIT')

    expect(await depth()).toMatchObject({ ready: 0, running: 2 })
  })

  it('jobs of its group are enqueued and started, and its end makes room in the group', async () => {
    const { store, user, fence, depth } = await scene({ group: 'ada', maxRunning: { perGroup: 3 } })
    const claim = async () => (await store.claim([{ queue, limit: 9 }], worker)).claims.map(({ id }) => id)
    expect(await claim()).toEqual([])
    await store.enqueue([{ callId: 'call-2', queue, jobs: [job('e', 'ada'), job('f', 'bob')] }])
    expect(await claim()).toEqual(['f'])
    expect(await store.settle([{ queue, id: 'b', fence, kind: 'complete' }])).toEqual(['ok'])
    expect(await claim()).toEqual(['d'])
    await user.query('COMMIT')
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'retry', delayMs: 0, error: 'no' }])).toEqual(['gone'])

    expect(await claim()).toEqual(['e'])
    expect(await depth()).toEqual({ ready: 0, running: 4, dead: 0, processed: 2 })
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  })
})
