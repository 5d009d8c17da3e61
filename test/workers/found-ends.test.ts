/** Ends that nobody settled: a process finds them, and tells the task of a job that it gave up. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineOrderedTask, defineTask, type ExhaustedJob, type ExhaustedPayload, type Mill } from 'millrace'
import type { Store } from 'millrace/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { systemClock } from '#src/core/platform/clock.js'
import { plainAccess, storeSource } from '#src/mill/store-source.js'
import { identityText } from '#src/runtime/process/process-identity.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../next-event.js'
import { testMill, testMillOn } from '../test-mill.js'
import { workerRedis } from '../worker-redis.js'
import { deadProcess } from './isolated/orphan-scene.js'

const redis = await workerRedis()

/** Two views of one store: that of a mill, and one to take jobs with. */
const kinds = {
  memory: async () => {
    const data = new MemoryData()
    const mill = (options: object) => testMillOn(new MemoryStore(systemClock, data), options)
    return { mill, store: new MemoryStore(systemClock, data) as Store }
  },
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-found-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    return onServer(`sqlite:${join(folder, 'jobs.db')}`)
  },
  redis: () => onServer(redis.url, `found-${Math.random()}`),
}

async function onServer(descriptor: string, namespace = 'millrace') {
  const store = await storeSource(descriptor, { ...plainAccess, namespace }).create()
  onTestFinished(() => store.close())
  return { mill: (options: object) => testMill({ store: descriptor, namespace, ...options }), store }
}

interface Death {
  readonly mill: Mill
  readonly store: Store
  readonly queue: string
}

/** A worker takes a job alone and is not heard of again; its process may still be there. */
async function silence({ store, queue }: Death): Promise<void> {
  const { claims } = await store.claim([{ queue, limit: 1 }], { worker: 'silent', leaseMs: 1, alone: true })
  expect(claims).toHaveLength(1)
}

/** A worker takes a job alone, and its process dies. */
async function death({ store, queue }: Death): Promise<void> {
  const process = await deadProcess()
  const worker = `${identityText(process)}/1`
  const record = { ...process, id: worker, queues: [queue], concurrency: 1, running: 1, startedAt: 0 }
  await store.workers!.beat(record, 600_000)
  const { claims } = await store.claim([{ queue, limit: 1 }], { worker, leaseMs: 600_000, alone: true })
  expect(claims).toHaveLength(1)
}

const ways = { 'whose lease is over': silence, 'whose worker is dead': death }
const cases = Object.entries(kinds).flatMap(([store, open]) =>
  Object.entries(ways).map(([how, dies]) => [how, store, open, dies] as const),
)
const retry = { max: 0 }
/** A server that has just started spares leases for as long as one lasts. */
const policy = { maxCrashes: 1, lease: '5s' as const }

describe.each(cases)('onExhausted of a job %s, on %s', { timeout: 30_000 }, (_, __, open, dies) => {
  it('is called once, with the job, its input and an error, when its last crash has buried it', async () => {
    const { mill: made, store } = await open()
    const told: ExhaustedJob<{ n: number; unit: string }>[] = []
    const charge = defineTask({
      ...{ name: 'charge', queue: 'cards', retry },
      input: z.object({ n: z.number(), unit: z.string().default('EUR') }),
      onExhausted: (exhausted) => void told.push(exhausted),
      run: () => {},
    })
    const mill = made({ queues: { cards: policy }, tasks: [charge] })
    await mill.enqueue(charge, { n: 7 }, { id: 'c', meta: { shop: 'a' } })
    await dies({ mill, store, queue: 'cards' })
    const buried = recorded(mill, 'job.buried')
    for (let i = 0; i < 3; i++) await mill.worker({ concurrency: 2 }).start()
    await expect.poll(() => told.length, { timeout: 15_000 }).toBe(1)
    const next = nextEvent(mill, 'job.completed')
    await mill.enqueue(charge, { n: 8 })
    await next

    const [{ job, input, error }] = told as [(typeof told)[0]]
    expect(told).toHaveLength(1)
    expect([job.id, job.task, job.attempt, job.crashes, job.meta, input]).toEqual([
      ...['c', 'charge', 1, 1, { shop: 'a' }, { n: 7, unit: 'EUR' }],
    ])
    expect(job.fence).toBeGreaterThan(0)
    expect(error).toMatchObject({ code: 'process-died', by: 'unknown' })
    expect(buried).toEqual([{ queue: 'cards', id: 'c', task: 'charge', reason: 'crashed', error: undefined }])
  })

  it('is called with the one buried payload if it is ordered', async () => {
    const { mill: made, store } = await open()
    const told: (readonly ExhaustedPayload<number>[])[] = []
    const sync = defineOrderedTask({
      ...{ name: 'sync', queue: 'orders', id: () => 'a', score: (n: number) => n, retry },
      onExhausted: (payloads: readonly ExhaustedPayload<number>[]) => void told.push(payloads),
      run: () => {},
    })
    const mill = made({ queues: { orders: { shards: 1, ...policy } }, tasks: [sync] })
    // The morgue has a payload of the id already, with a higher score.
    await mill.enqueue(sync, 9)
    await mill.queue('orders').jobs.bury(['a'])
    for (const n of [1, 2]) await mill.enqueue(sync, n, { meta: { n } })
    await dies({ mill, store, queue: 'orders' })
    await mill.worker().start()
    await expect.poll(() => told.length, { timeout: 15_000 }).toBe(1)

    expect(told[0]).toEqual([{ id: 'a', input: 1, score: 1, meta: { n: 1 }, error: expect.anything() }])
    const dead = await mill.queue('orders').morgue.get('a')
    expect(dead?.payloads?.map(({ score }) => score)).toEqual([1, 9])
  })
})
