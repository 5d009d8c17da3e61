/** Another priority and another due time for jobs that wait, on every store that has records. */

import { defineTask, type Mill, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { PlaceChange } from '#src/client/admin/job-place.js'
import { isElsewhere } from '#src/client/admin/job-place.js'
import { testMill } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'

const send = defineTask({ name: 'send', queue: 'mail', run: (_to: string) => {} })

type Kind = 'memory' | 'sqlite' | 'postgres' | 'redis'
const kinds: readonly Kind[] = ['memory', 'sqlite', 'postgres', 'redis']

async function millOn(kind: Kind): Promise<Mill> {
  const options = { queues: { mail: {}, orders: { ordered: true } }, tasks: [send] }
  if (kind !== 'redis') return testMill(options, kind)
  const { url } = await workerRedis()
  const mill = millrace({ ...options, store: url, namespace: `place-${Math.random().toString(36).slice(2)}` }) as Mill
  onTestFinished(() => mill.close())
  return mill
}

describe.each(kinds)('jobs that wait on %s', (kind) => {
  it('get another priority and another due time by their ids; those that run or have ended stay', async () => {
    const mill = await millOn(kind)
    const { jobs } = mill.queue('mail')
    await mill.enqueueMany(send, ['a', 'b', 'c'], (id) => ({ id }))
    const store = await mill.adminParts.connect()
    await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
    const runAt = new Date(Date.now() + 3_600_000)

    expect(await jobs.reschedule(['a', 'b', 'never'], { priority: 7 })).toBe(1)
    expect(await jobs.reschedule(['c'], { runAt: runAt.toISOString() })).toBe(1)
    expect(await jobs.get('a')).toMatchObject({ state: 'running', priority: 0 })
    expect(await jobs.get('b')).toMatchObject({ state: 'ready', priority: 7 })
    expect(await jobs.get('c')).toMatchObject({ state: 'scheduled', priority: 0, runAt })
    expect(await jobs.reschedule(['c'], { delay: 0, priority: 9 })).toBe(1)
    expect((await jobs.list({ state: 'ready' })).jobs.map(({ id }) => id)).toEqual(['c', 'b'])
  })

  it('get it all, those that failed, or those of a filter, each once however many pages they are', async () => {
    const mill = await millOn(kind)
    const { jobs } = mill.queue('mail')
    await mill.enqueueMany(
      send,
      Array.from({ length: 450 }, (_, i) => `${i}`),
      (id) => ({
        id,
        ...(Number(id) % 3 === 0 ? { delay: '1h' } : {}),
        ...(Number(id) < 250 ? { group: 'acme' } : {}),
      }),
    )

    expect(await jobs.reschedule({ group: 'acme' }, { priority: -3 })).toBe(250)
    expect(await jobs.reschedule('all', { delay: 0 })).toBe(150)
    expect((await mill.queue('mail').depth()).ready).toBe(450)
    expect(await jobs.reschedule('all', { delay: '2h', priority: 1 })).toBe(450)
    expect(await mill.queue('mail').depth()).toMatchObject({ ready: 0, scheduled: 450 })
    // Those that are put off are behind all others, and are not met again.
    expect(await jobs.reschedule({ task: 'send' }, { delay: '3h' })).toBe(450)
    expect(await jobs.reschedule({ group: 'acme' }, { runAt: new Date(Date.now() + 90_000_000) })).toBe(250)
    expect(await jobs.reschedule('failed', { delay: 0 })).toBe(0)
    expect(await jobs.reschedule({ group: 'acme', state: 'ready' }, { delay: 0 })).toBe(0)
    const ids = Array.from({ length: 450 }, (_, i) => `${i}`)
    expect(await jobs.reschedule([...ids, ...ids, ...ids], { delay: 0 })).toBeGreaterThanOrEqual(450)
    expect((await mill.queue('mail').depth()).ready).toBe(450)
  })

  it('of an ordered queue are refused', async () => {
    const mill = await millOn(kind)
    await expect(mill.queue('orders').jobs.reschedule(['a'], { delay: 0 })).rejects.toMatchObject({
      code: 'argument-invalid',
      message: expect.stringMatching(/queue 'orders' have no other place: it is ordered/),
    })
  })
})

it.each<readonly [PlaceChange, RegExp]>([
  [{}, /say a priority, a delay or a runAt/],
  [{ priority: 1.5 }, /priority must be a whole number from -32768 to 32767; got 1.5/],
  [{ priority: 40_000 }, /priority must be/],
  [{ delay: 'soon' as never }, /jobs.reschedule\(\{ delay \}\) must be a duration/],
  [{ delay: -1 }, /must be a duration/],
  [{ delay: 1, runAt: new Date() }, /give delay or runAt, not both/],
  [{ runAt: 'tomorrow' }, /runAt must be a valid Date or ISO-8601 text/],
  [{ runAt: new Date(Number.NaN) }, /runAt must be a valid Date/],
  [{ delay: '9999w' }, /at most 10 years from now/],
  [{ prio: 1 } as never, /prio/],
  [null as never, /reschedule/],
])('a place that is wrong is refused, and nothing is changed: %j', async (place, message) => {
  const mill = testMill({ queues: { mail: {} }, tasks: [send] })
  await mill.enqueue(send, 'a', { id: 'a' })
  const before = await mill.queue('mail').jobs.get('a')
  const refused = await mill
    .queue('mail')
    .jobs.reschedule('all', place)
    .then(String, (error: unknown) => error)
  expect(refused).toMatchObject({ code: 'argument-invalid', message: expect.stringMatching(message) })
  expect(await mill.queue('mail').jobs.get('a')).toEqual(before)
})

it('a job that has become ready by the change is not changed once more', () => {
  const job = (state: 'ready' | 'scheduled', priority = 0) => ({ state, priority }) as never
  const now = isElsewhere({ delayMs: 0 }, 5)
  expect([now(job('scheduled')), now(job('ready'))]).toEqual([true, false])
  expect(isElsewhere({ runAt: 4, priority: 1 }, 5)(job('ready'))).toBe(true)
  expect(isElsewhere({ runAt: 4, priority: 1 }, 5)(job('ready', 1))).toBe(false)
  expect(isElsewhere({ runAt: 6 }, 5)(job('ready'))).toBe(true)
  expect(isElsewhere({ priority: 0 }, 5)(job('scheduled'))).toBe(false)
})
