/** The calls that `postgres-plans` measures, each on jobs that are there already. */

import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import type { Touched, TouchedBuffers } from './touched-buffers.js'

const by = { worker: 'w', leaseMs: 3_600_000 }
const shortestLeaseMs = 3_000
/** The store gave up after 10 s. */
const unanswered: Touched = { buffers: Number.POSITIVE_INFINITY, worst: 'no answer within 10 s', worstBuffers: 0 }

/** `name`: no other measurement adds jobs of this name. */
export async function measuredCalls(
  touched: TouchedBuffers,
  store: PostgresStore,
  eyes: pg.Client,
  name: string,
): Promise<ReadonlyMap<string, Touched>> {
  const found = new Map<string, Touched>()
  let calls = 0
  const measured = async <Answer>(call: string, work: () => Promise<Answer>): Promise<Answer> => {
    let answer: Answer | undefined
    found.set(call, await touched.of(async () => (answer = await work())))
    return answer!
  }
  const enqueue = (queue: string, count: number, more: Partial<NewJob> = {}, hasNewIds = true) => {
    calls += 1
    const jobs = Array.from({ length: count }, (_, n) => ({
      ...{ id: `${name}-${calls}-${n}`, task: 't', payload: '{}', priority: 0, rememberMs: 0 },
      ...more,
    }))
    return store.enqueue([{ callId: `${name}-${calls}`, queue, jobs, hasNewIds }])
  }
  const claim = async (queue: string, limit: number, leaseMs = by.leaseMs) =>
    (await store.claim([{ queue, limit }], { ...by, leaseMs })).claims
  const complete = (claims: readonly Claim[]) =>
    store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))

  // What a connection does once.
  await claim('mail', 1)
  await enqueue('mail', 1)
  await measured('enqueue 1 job', () => enqueue('mail', 1))
  await measured('enqueue 100 jobs', () => enqueue('mail', 100))
  await measured("enqueue 100 jobs with ids of the user's", () => enqueue('mail', 100, { rememberMs: 60_000 }, false))
  await measured('enqueue a job whose id is taken', () => enqueue('mail', 1, { id: 'job-777' }, false))
  const many = await measured('claim 250 jobs', () => claim('mail', 250))
  await measured('extend 250 claims', () =>
    store.extend(many.map(({ queue, id, fence }) => ({ queue, id, fence, leaseMs: by.leaseMs }))),
  )
  await measured('complete 250 jobs', () => complete(many))
  const ten = await measured('claim 10 jobs', () => claim('mail', 10))
  await measured('retry 5 jobs and bury 5', () =>
    store.settle(
      ten.map(({ queue, id, fence }, n) => ({
        ...{ queue, id, fence, error: 'an error' },
        ...(n % 2 === 0 ? { kind: 'retry', delayMs: 60_000 } : { kind: 'bury', reason: 'no-retries' }),
      })),
    ),
  )
  await measured('push 100 payloads', () => enqueue('entities', 100, { score: 3 }, false))
  const ids = await measured('claim 50 ordered ids', () => claim('entities', 50))
  await measured('complete 50 ordered ids', () => complete(ids))
  await measured('enqueue 100 jobs of a group', () => enqueue('sites', 100, { group: 'group-8' }))
  const starts = await measured('claim 50 throttled jobs', () => claim('sites', 50))
  await measured('complete 50 throttled jobs', () => complete(starts))

  const { records } = store
  for (const by of ['time', 'id'] as const)
    for (const state of ['ready', 'running', 'scheduled'] as const) {
      const { cursor } = await measured(`list 50 ${state} jobs by ${by}`, () =>
        records.list('mail', { state, by, limit: 50 }),
      )
      if (cursor !== undefined)
        await measured(`list 50 more of the ${state} jobs by ${by}`, () =>
          records.list('mail', { state, by, cursor, limit: 50 }),
        )
    }
  await measured('list 50 ordered ids', () => records.list('entities', { state: 'ready', by: 'time', limit: 50 }))
  await measured('list 50 throttled jobs', () => records.list('sites', { state: 'ready', by: 'time', limit: 50 }))
  await measured('list 50 dead jobs', () => records.morgue.list('mail', { by: 'time', limit: 50 }))
  await measured('list 50 dead jobs by id', () => records.morgue.list('mail', { by: 'id', limit: 50 }))
  const { rows } = await eyes.query(
    "SELECT id FROM millrace.job WHERE fence = 0 AND pool = 0 AND id LIKE 'job-%' LIMIT 1",
  )
  await measured('get a job', () => records.get('mail', rows[0].id))
  await measured('cancel a job', () => records.cancel('mail', { ids: [rows[0].id] }))
  // Last, because a connection that is given up has other plans afterwards.
  await claim('mail', 20, shortestLeaseMs)
  await delay(shortestLeaseMs)
  await measured('recover 20 crashed jobs and claim 1', () => store.claim([{ queue: 'mail', limit: 1 }], by)).catch(
    () => found.set('recover 20 crashed jobs and claim 1', unanswered),
  )
  return found
}
