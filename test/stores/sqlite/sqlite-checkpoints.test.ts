/** Checkpoints, logs and steps in the file of a SQLite store: what they cost, and that nothing of them is left. */

import { statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Claim, Claimer } from '#src/stores/contract/claim.js'
import type { Beat } from '#src/stores/contract/job-beat.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { type Database, loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, queue, SqliteScene } from './sqlite-scene.js'

const scene = new SqliteScene()
let store: SqliteStore
let db: Database
beforeEach(async () => {
  store = await scene.opened()
  db = (await loadDriver())(scene.file)
})
afterEach(async () => {
  db.close()
  await scene.close()
})

const by = { worker: 'w', leaseMs: 60_000 }
const mebibyte = 1_048_576
const notes = { checkpoint: { payload: '{"done":0.5}' }, log: 'half way\n' }

let calls = 0
async function add(...jobs: NewJob[]): Promise<void> {
  calls += 1
  await store.enqueue([{ callId: `call-${calls}`, queue: queue.name, jobs }])
}

async function claimed(how: Partial<Claimer> = {}): Promise<Claim[]> {
  return (await store.claim([{ queue: queue.name, limit: 9 }], { ...by, ...how })).claims
}

async function beat(claim: Claim, beat: Beat): Promise<void> {
  const { queue, id, fence } = claim
  expect(await store.extend([{ queue, id, fence, leaseMs: 60_000, beat }])).toEqual(['ok'])
}

/** Of how many jobs there are notes. */
function left(): number[] {
  return ['checkpoint', 'log'].map(
    (table) => (db.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n,
  )
}

/** How many bytes a step writes to the log of the file. */
async function written(step: () => Promise<void>): Promise<number> {
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  await step()
  return statSync(`${scene.file}-wal`).size
}

it('a log line rewrites neither payload nor checkpoint, and a checkpoint does not rewrite the payload', async () => {
  await add(job('a', { payload: JSON.stringify('p'.repeat(mebibyte - 2)) }))
  const [claim] = await claimed()
  await beat(claim!, { startedMs: 0, host: 'mill-1', pid: 7, checkpoint: { payload: 'c'.repeat(mebibyte) } })

  expect(await written(() => beat(claim!, { log: 'one more line\n' }))).toBeLessThan(64 * 1_024)
  expect(await written(() => beat(claim!, { checkpoint: { payload: '1' } }))).toBeLessThan(64 * 1_024)
})

describe('no notes are left of a job', () => {
  type Step = (claim: Claim) => Promise<unknown>
  type Way = readonly [what: string, steps: readonly Step[], settings?: Partial<QueueSettings>]
  const settled =
    (...items: readonly object[]) =>
    async ({ queue, id, fence }: Claim) => {
      for (const item of items) expect(await store.settle([{ queue, id, fence, ...item } as never])).toEqual(['ok'])
    }
  const buried = settled({ kind: 'bury' })
  const kept = (keepMs?: number) => settled({ kind: 'complete', result: { payload: '1', keepMs } })
  const retried = settled({ kind: 'release', delayMs: 0 })
  /** Trims what is over its bounds. */
  const another = async () => {
    await add(job('another'))
    const [claim] = await claimed()
    await settled({ kind: 'complete' })(claim!)
  }

  const crashed = async (claim: Claim) => expect((await store.workers.gone([claim], 'w')).crashed).toHaveLength(1)
  const ids = { ids: ['a'] }
  const ways: readonly Way[] = [
    ['that completed', [settled({ kind: 'complete' })]],
    ['that was cancelled as it ran', [settled({ kind: 'cancel' })]],
    ['that was cancelled as it waited', [retried, () => store.records.cancel(queue.name, ids)]],
    ['that was deleted', [retried, () => store.records.delete(queue.name, 'all')]],
    ['that was cleared with its queue', [retried, () => store.records.clear(queue.name)]],
    ['that was cleared with the morgue', [buried, () => store.records.clear(queue.name)]],
    ['that was deleted from the morgue', [buried, () => store.records.morgue.delete(queue.name, 'all')]],
    ['that was trimmed from the morgue', [buried, another], { dead: { count: 0 } }],
    ['whose result was trimmed', [kept(), another], { resultsCount: 0 }],
    ['whose result has expired and whose id came again', [kept(0), () => add(job('a'))]],
    ['that was to be cancelled and crashed', [() => store.records.cancel(queue.name, ids), crashed]],
  ]
  for (const [what, steps, settings] of ways)
    for (const group of [undefined, 'g'])
      it(`${what}${group === undefined ? '' : ', of a group'}`, async () => {
        await store.open([{ ...queue, ...settings }])
        await add(job('a', group === undefined ? {} : { group }))
        const [claim] = await claimed()
        await beat(claim!, notes)
        expect(left()).toEqual([1, 1])

        for (const step of steps) await step(claim!)

        expect(left()).toEqual([0, 0])
      })
})

it('a kept result keeps the log, but not the checkpoint', async () => {
  await add(job('a'))
  const [claim] = await claimed()
  await beat(claim!, notes)
  const { queue, id, fence } = claim!
  await store.settle([{ queue, id, fence, kind: 'complete', result: { payload: '1' } }])

  expect(left()).toEqual([0, 1])
})

it('each job of a claim gets its own checkpoint, in any position', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const inGroup = (id: string) => (id > 'c' ? { group: 'g' } : {})
  await add(...ids.map((id) => job(id, inGroup(id))))
  const first = await claimed()
  const of = (id: string) => ({ payload: Uint8Array.of(0, id.charCodeAt(0)), codec: 'bytes' })
  for (const claim of first.filter(({ id }) => id !== 'a' && id !== 'd'))
    await beat(claim, { checkpoint: of(claim.id) })
  for (const { queue, id, fence } of first)
    await store.settle([{ queue, id, fence, kind: 'retry', delayMs: 0, error: 'broken' }])

  const again = new Map((await claimed()).map(({ id, checkpoint }) => [id, checkpoint]))
  expect([...again].sort()).toEqual([
    ['a', undefined],
    ['b', of('b')],
    ['c', of('c')],
    ['d', undefined],
    ['e', of('e')],
    ['f', of('f')],
  ])
})

it('jobs that complete together leave no step, whether all of them had steps or some', async () => {
  await add(...['a', 'b', 'c', 'd', 'e', 'f'].map((id) => job(id)))
  const claims = await claimed()
  for (const { queue, id, fence } of claims.slice(0, 4))
    await store.steps.keep({ queue, id, fence }, { name: 'charge', kind: 'step', payload: '7' }, 60_000)
  const steps = () => (db.prepare('SELECT count(*) AS n FROM step').get() as { n: number }).n
  expect(steps()).toBe(4)
  const ends = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' }) as const)
  expect(await store.settle(ends)).toEqual(ends.map(() => 'ok'))
  expect(steps()).toBe(0)
  expect((await store.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
})
