/** Transactions of users that stay open after they have replaced a waiting job: claims go on without it, and nobody who waits is woken for it. */

import { describe, expect, it, onTestFinished } from 'vitest'
import type { NewJob } from '#src/stores/contract/new-job.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { lentPostgresAddress, testClient } from '../../../worker-postgres.js'

const queue = 'mail'
const by = { worker: 'worker01', leaseMs: 30_000 }
const job = (id: string, more: Partial<NewJob> = {}): NewJob => ({
  ...{ id, task: 'send', payload: '1', priority: 0, rememberMs: 0 },
  ...more,
})

/** Job `a` waits, as `state` says, and so does `b`, if `others`; a transaction that is open has replaced `a`. */
async function scene({ limited = false, group, others = 1, state }: SceneOptions) {
  const address = postgresAddress(await lentPostgresAddress())
  const opened = async () => {
    const store = new PostgresStore({ address })
    onTestFinished(() => store.close())
    const limits = limited ? { maxRunning: 9 } : {}
    await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...limits }])
    return store
  }
  const [store, other] = [await opened(), await opened()]
  const of = group === undefined ? {} : { group }
  const jobs = [job('a', of), job('b', of)].slice(0, 1 + others)
  await store.enqueue([{ callId: 'call-1', queue, jobs }])
  const admin = await testClient()
  await admin.query(`UPDATE ${address.schema}.job SET ${state ?? 'seq = seq'} WHERE id = 'a'`)
  const user = await testClient()
  await user.query('BEGIN')
  const replacing = [job('a', { payload: '2', ifWaiting: 'replace' })]
  expect(await store.transactions.enqueue(user, { queue, jobs: replacing })).toEqual(['replaced'])
  const claim = async (of: { alone?: boolean } = {}) => {
    const { claims, expired, more, waits } = await other.claim([{ queue, limit: 9 }], { ...by, ...of })
    return { ids: claims.map(({ id }) => id), expired, more, waits: waits.map(({ reason }) => reason) }
  }
  return { other, user, claim }
}

interface SceneOptions {
  readonly limited?: boolean
  readonly group?: string
  readonly others?: 0 | 1
  readonly state?: string
}

const queues: [what: string, options: SceneOptions][] = [
  ['a queue without limits', {}],
  ['a limited queue', { limited: true }],
  ['a group', { group: 'ada' }],
]

describe.each(queues)('while a transaction is open that has replaced a waiting job of %s', (_, options) => {
  it('others are claimed, though its time to begin is over', async () => {
    const { user, claim } = await scene({ ...options, state: 'expires_ms = 1' })
    expect(await claim()).toMatchObject({ ids: ['b'], more: false })
    expect(await claim()).toMatchObject({ ids: [], more: false })
    await user.query('ROLLBACK')

    expect(await claim()).toMatchObject({ ids: [], expired: [{ id: 'a' }] })
  })

  it('nobody is woken for it, and its commit wakes', async () => {
    const { other, user, claim } = await scene({ ...options, others: 0 })
    expect(await claim()).toMatchObject({ ids: [], more: false })
    const wait = (forMs: number) => other.wait([queue], forMs, new AbortController().signal)
    expect(await wait(100)).toEqual([])
    const waiting = wait(60_000)
    await user.query('COMMIT')
    expect(await waiting).toEqual([queue])

    expect(await claim()).toMatchObject({ ids: ['a'] })
  })

  it('nobody makes room for it if it is a suspect', async () => {
    const { user, claim } = await scene({ ...options, others: 0, state: 'pool = 1' })
    expect(await claim({ alone: true })).toMatchObject({ ids: [], waits: ['empty'] })
    await user.query('ROLLBACK')

    expect(await claim({ alone: true })).toMatchObject({ ids: ['a'] })
  })
})
