import { defineTask, exponential } from 'millrace'
import { testMill as clockedMill } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../../test-mill.js'

describe.each(storeKinds)('an expiry, on %s', (kind) => {
  it('comes from the task unless the enqueue sets another or none', async () => {
    const code = defineTask({ name: 'code', expiresIn: '2m' })
    const m = testMill({ tasks: [code] }, kind)
    const restMs = async (options: { readonly expiresIn?: '1h' | 'never' }) => {
      const record = await (await m.enqueue(code, undefined, options)).record()
      return record?.expiresAt && record.expiresAt.getTime() - record.createdAt.getTime()
    }

    expect(await restMs({})).toBe(120_000)
    expect(await restMs({ expiresIn: '1h' })).toBe(3_600_000)
    expect(await restMs({ expiresIn: 'never' })).toBeUndefined()
    await expect(m.enqueue(code, undefined, { runAt: new Date() })).rejects.toThrow(/expiresIn: 'never'/)
    const due = await m.enqueue(code, undefined, { runAt: new Date(), expiresIn: 'never' })
    expect((await due.record())?.expiresAt).toBeUndefined()
  })

  it('is visible to the handler and, at each attempt, in the record', async () => {
    const seen: unknown[] = []
    const code = defineTask({
      name: 'code',
      expiresIn: '2m',
      retry: { max: 1, backoff: () => 0 },
      async run(_: number, ctx) {
        const record = await m.job(code, ctx.job.id).record()
        seen.push(ctx.job.expiresAt, record?.expiresAt)
        if (seen.length === 2) throw new Error('once more')
      },
    })
    const m = testMill({ tasks: [code] }, kind)
    const job = await m.enqueue(code, 1)
    const at = (await job.record())?.expiresAt
    const ended = job.result({ timeout: '5s' })
    await m.worker().start()
    await ended

    expect(seen).toEqual([at, at, at, at])
  })
})

describe('a job that expires', () => {
  it('is not retried after its expiry', async () => {
    let sent = 0
    const code = defineTask({
      name: 'code',
      expiresIn: '2m',
      retry: { max: 3, backoff: () => 600_000 },
      async run() {
        sent += 1
        throw new Error('the server is away')
      },
    })
    const mill = clockedMill({ tasks: [code] })
    const job = await mill.enqueue(code, undefined)
    await mill.drain()
    await mill.advance('10m')
    await mill.drain()

    expect(sent).toBe(1)
    expect(await job.record()).toMatchObject({ state: 'cancelled', reason: 'expired' })
  })

  it('before its first retry is certainly due is reported once for its task', async () => {
    const slow = defineTask({
      name: 'slow',
      expiresIn: '2m',
      retry: { backoff: exponential({ base: '10m', jitter: false }) },
    })
    const once = defineTask({
      name: 'once',
      expiresIn: '2m',
      retry: { max: 0, backoff: exponential({ base: '10m', jitter: false }) },
    })
    const quick = defineTask({ name: 'quick', expiresIn: '2m' })
    const hasty = defineTask({ name: 'hasty', expiresIn: '5s' })
    const m = testMill({ tasks: [slow, once, quick, hasty] })
    const told: unknown[] = []
    m.on('expiry.short', (event) => told.push(event))
    for (const task of [slow, slow, once, quick, hasty, hasty]) await m.enqueue(task, undefined)

    expect(told).toEqual([
      { task: 'slow', queue: 'default', expiresMs: 120_000, retryMs: 600_000 },
      { task: 'hasty', queue: 'default', expiresMs: 5_000, retryMs: 60_000 },
    ])
  })
})

describe.each(storeKinds)('an id whose job is dead, on %s', (kind) => {
  it('refuses and reports further inputs until one replaces the dead job', async () => {
    const ran: unknown[] = []
    const sync = defineTask({
      name: 'sync',
      retry: { max: 0 },
      async run(version: string) {
        if (version === 'v1') throw new Error('a bug')
        ran.push(version)
        return version
      },
    })
    const m = testMill({ tasks: [sync] }, kind)
    const dropped: unknown[] = []
    m.on('job.dropped', (event) => dropped.push(event))
    await m.worker().start()
    await expect((await m.enqueue(sync, 'v1', { id: 'a' })).result({ timeout: '5s' })).rejects.toThrow()
    const kept = await m.enqueue(sync, 'v2', { id: 'a' })
    const [many] = await m.enqueueMany(sync, ['v2'], () => ({ id: 'a' }))

    expect([kept.outcome, many?.outcome]).toEqual(['duplicate', 'duplicate'])
    expect(dropped).toEqual(Array(2).fill({ queue: 'default', id: 'a', task: 'sync' }))
    const replaced = await m.enqueue(sync, 'v3', { id: 'a', ifWaiting: 'replace' })
    expect(replaced.outcome).toBe('replaced')
    expect(await replaced.result({ timeout: '5s' })).toBe('v3')
    expect(ran).toEqual(['v3'])
  })
})
