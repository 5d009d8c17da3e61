/** Handles of ordered jobs: they are about an id, whose jobs come and go and of which an entry may lie in the morgue. */
import { setImmediate as endOfTick } from 'node:timers/promises'
import { defineOrderedTask, defineTask, type Mill } from 'millrace'
import type { Claim, SettleItem } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../test-mill.js'

const sync = defineOrderedTask({ name: 'sync', queue: 'orders' })

type End = SettleItem extends infer Item
  ? Item extends SettleItem
    ? Omit<Item, 'queue' | 'id' | 'fence'>
    : never
  : never

/** A mill, and a worker's calls by hand. */
async function millAndWorker(): Promise<{
  mill: Mill
  claim: () => Promise<Claim>
  settle: (claim: Claim, end: End) => Promise<unknown>
}> {
  const store = new MemoryStore()
  const mill = testMillOn(store, { tasks: [sync, defineTask({ name: 'plain' })] })
  await mill.depths()
  return {
    mill,
    claim: async () => {
      const { claims } = await store.claim([{ queue: 'orders', limit: 1 }], { worker: 'w', leaseMs: 30_000 })
      return claims[0]!
    },
    settle: ({ queue, id, fence }, end) => store.settle([{ queue, id, fence, ...end } as SettleItem]),
  }
}

const complete: End = { kind: 'complete' }
const bury: End = { kind: 'bury', reason: 'unrecoverable', error: 'no such order' }

describe('the status of an ordered id', () => {
  it('is that of the waiting or running job, and only without one that of the dead job', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    expect(await job.status()).toBe('ready')

    const dying = await claim()
    expect(await job.status()).toBe('running')
    await settle(dying, bury)
    expect(await job.status()).toBe('dead')

    expect((await mill.enqueue(sync, 2, { id: 'a' })).outcome).toBe('added')
    expect(await job.status()).toBe('ready')
    await settle(await claim(), complete)
    expect(await job.status()).toBe('dead')
  })

  it('is found by its number as well, and undefined for an id that never existed', async () => {
    const { mill } = await millAndWorker()
    await mill.enqueue(sync, 1, { id: 42 })

    expect(await mill.job(sync, 42).status()).toBe('ready')
    expect(await mill.job(sync, '42').status()).toBe('ready')
    expect(await mill.job('42').status()).toBe('ready')
    expect(await mill.job(sync, 43).status()).toBeUndefined()
    for (const id of [Number.NaN, '', null]) expect(() => mill.job(sync, id as number)).toThrow(/a job id must be/)
  })
})

describe('the result of an ordered id', () => {
  it('resolves with undefined once no job of the id waits or runs', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    let resolved = false
    const result = job.result({ timeout: '5s' }).finally(() => {
      resolved = true
    })
    const first = await claim()
    expect((await mill.enqueue(sync, 2, { id: 'a' })).outcome).toBe('merged')
    await settle(first, complete)
    await endOfTick()
    expect([resolved, await job.status()]).toEqual([false, 'ready'])

    await settle(await claim(), complete)
    expect(await result).toBeUndefined()
  })

  it('is undefined at once if no job of the id waits or runs, or ever did', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    await settle(await claim(), complete)

    expect(await job.result()).toBeUndefined()
    expect(await mill.job(sync, 'never').result()).toBeUndefined()
    // It may have been of the other queue, which keeps results.
    await expect(mill.job('never').result()).rejects.toMatchObject({ code: 'result-not-kept' })
  })

  it('rejects if payloads of the id are in the morgue by then', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    const result = expect(job.result({ timeout: '5s' })).rejects.toMatchObject({
      code: 'job-dead',
      reason: 'unrecoverable',
      message: expect.stringContaining('no such order'),
    })
    await settle(await claim(), bury)

    await result
  })

  it('waits for the live job if an older payload is dead, and then rejects', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    await mill.enqueue(sync, 2, { id: 'a' })
    await settle(await claim(), { kind: 'retry', delayMs: 0, last: true, reason: 'max-retries' })
    expect(await job.status()).toBe('ready')

    const result = expect(job.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead' })
    await settle(await claim(), complete)
    await result
  })

  it('rejects when its timeout ends', async () => {
    const { mill } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })

    await expect(job.result({ timeout: 10 })).rejects.toMatchObject({ code: 'result-timeout' })
  })
})

describe('cancelling an ordered id', () => {
  it('drops the waiting job, and keeps nothing of it', async () => {
    const { mill } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    const result = job.result({ timeout: '5s' })

    expect(await job.cancel('no longer wanted')).toBe(true)
    expect(await result).toBeUndefined()
    expect(await job.status()).toBeUndefined()
    expect(await job.cancel()).toBe(false)
  })

  it('leaves a dead job in the morgue', async () => {
    const { mill, claim, settle } = await millAndWorker()
    const job = await mill.enqueue(sync, 1, { id: 'a' })
    await settle(await claim(), bury)

    expect(await job.cancel()).toBe(false)
    expect(await job.status()).toBe('dead')
  })
})
