/** Jobs that a worker has claimed and cannot run: they are left to those that can. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'
import { systemClock } from '#src/core/platform/clock.js'
import type { Claim } from '#src/stores/contract/claim.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { ForeignJobs } from '#src/workers/claims/foreign-jobs.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { recorded } from '../../next-event.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { testMill, testMillOn } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'

const redis = await workerRedis()

const claimOf = (id: string, task = 'billing') => ({ queue: 'default', id, task }) as Claim

/** The foreign jobs of a worker beside others that run these tasks; undefined: the registry does not answer. */
async function foreignJobs(
  others: readonly string[][] | undefined,
  more: { throttled?: boolean; metered?: boolean } = {},
) {
  let now = 0
  const told: EventMap['task.unknown'][] = []
  const left: number[] = []
  const events = new Events()
  events.on('task.unknown', (event) => told.push(event))
  const records = (others ?? []).map((taskNames, i) => ({ id: `w-${i}`, queues: ['default'], taskNames }))
  const list = async () => (others === undefined ? new Promise(() => {}) : records)
  const throttle = more.throttled ? { throttle: { scope: 'default', by: 'queue', rules: [] } } : {}
  const jobs = new ForeignJobs(
    givenSurroundings({ events, mono: () => now }),
    { workers: { list }, traits: { metered: more.metered ?? false } } as never,
    new LimitedQueues([{ name: 'default', ...throttle } as never]),
    (_, forMs) => left.push(forMs),
  )
  // The first look at the registry is under way then.
  jobs.putAside(claimOf('first'), 'unknown-task')
  await new Promise(setImmediate)
  const put = (id: string, reason: 'unknown-task' | 'unknown-key' = 'unknown-task') => {
    now += 2_000
    return jobs.putAside(claimOf(id), reason)
  }
  const often = (id: string, reason?: 'unknown-key') => Array.from({ length: 14 }, () => put(id, reason))
  const pass = (ms: number) => {
    now += ms
  }
  return { jobs, put, often, told, left, pass }
}

describe('a job that a worker cannot run', () => {
  it('is put aside for a moment, as long as a living worker has its task', async () => {
    const { often, told } = await foreignJobs([['crm'], ['billing']])
    expect(often('a')).toEqual([20, 20, 20, 20, 20, 20, ...Array(8).fill(250)])
    expect(told).toEqual([{ queue: 'default', task: 'billing' }])
  })

  it('is put aside for longer each time, up to 30 s, if no worker has its task', async () => {
    const grown = [20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240, 20_480, 30_000, 30_000, 30_000]
    expect((await foreignJobs([['crm']])).often('a')).toEqual(grown)
    expect((await foreignJobs([['billing']])).often('a', 'unknown-key')).toEqual(grown)
    // A throttle counts each claim as a start.
    expect((await foreignJobs([['billing']], { throttled: true })).often('a')).toEqual(grown)
    expect((await foreignJobs([['billing']], { metered: true })).put('a')).toBe(1_000)
  })

  it('leaves its queue to other workers meanwhile, for at most half of the time', async () => {
    const { often, jobs, left } = await foreignJobs([['billing']])
    left.length = 0
    often('a')
    expect(left.slice(0, 7)).toEqual([25, 50, 100, 200, 400, 800, 25])
    left.length = 0
    for (let i = 0; i < 3; i += 1) jobs.putAside(claimOf('b'), 'unknown-task')
    // At the same moment: it has just left.
    expect(left).toEqual([25, 25, 25])
  })

  it('is sometimes left for longer than it waits, so that the worker with its task is alone there when it is due', async () => {
    const { often, left } = await foreignJobs([['crm'], ['billing']])
    left.length = 0
    often('a')
    expect(left.slice(8)).toEqual([25, 25, 25, 275, 25, 25])
  })

  it('among many waits longer, so that they do not use up all claims', async () => {
    const { jobs, pass } = await foreignJobs([['billing']])
    pass(5_000)
    const delays = Array.from({ length: 1_000 }, (_, i) => jobs.putAside(claimOf(`j-${i}`), 'unknown-task'))
    expect([delays[0], delays[99], delays[999]]).toEqual([20, 200, 2_000])
  })
})

const kinds = {
  memory: () => {
    const data = new MemoryData()
    return (options: object) => testMillOn(new MemoryStore(systemClock, data), options)
  },
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-foreign-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    return (options: object) => testMill({ store: `sqlite:${join(folder, 'jobs.db')}`, ...options })
  },
  redis: () => (options: object) => testMill({ store: redis.url, namespace: 'foreign', ...options }),
}

describe.each(Object.entries(kinds))('two services that share a queue on %s', (_, made) => {
  it('run their own jobs at once, and each reports the other once', async () => {
    const open = made()
    const services = ['billing', 'crm'].map((name) => {
      const task = defineTask({ name, run: () => name })
      const mill = open({ tasks: [task] })
      return { mill, task, told: recorded(mill, 'task.unknown'), released: recorded(mill, 'job.released') }
    })
    for (const { mill } of services) await mill.worker().start()
    const jobs = await Promise.all(
      services.flatMap(({ mill, task }) => Array.from({ length: 20 }, () => mill.enqueue(task, undefined))),
    )
    // Half a minute, if a job waited for whoever cannot run it.
    const results = await Promise.all(jobs.map((job) => job.result({ timeout: '15s' })))
    expect(results).toEqual([...Array(20).fill('billing'), ...Array(20).fill('crm')])
    for (const { told, released } of services) expect(told).toHaveLength(new Set(released.map(({ task }) => task)).size)
  }, 30_000)
})
