/** The names of jobs that a handler enqueues from sealed jobs: no reader of the store can guess an input by them. */

import { createHash } from 'node:crypto'
import { bury, defineOrderedTask, defineTask, type JobContext, type MillOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { jsonCodec } from '#src/core/values/codec.js'
import { digestId } from '#src/core/values/ids.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../test-mill.js'

const keys = { a: Buffer.alloc(32, 1).toString('base64'), b: Buffer.alloc(32, 2).toString('base64') }
const ship = defineTask({ name: 'ship', queue: 'shipping', run: (_: { to: string }) => {} })
const secret = { to: 'ada' }

/** Runs the parent of this kind on one store: first it dies with the first options, then it is revived with the next ones. */
async function childrenOf(kind: 'plain' | 'ordered', ...options: readonly Pick<MillOptions, 'seal'>[]) {
  const data = new MemoryData()
  const run = async (ctx: JobContext, isFirst: boolean) => {
    await ctx.enqueue(ship, secret)
    await ctx.enqueue(ship, secret)
    await ctx.enqueue(ship, secret, { key: 'label' })
    return isFirst ? bury('as told') : 'done'
  }
  for (const [i, more] of options.entries()) {
    const handler = (_: unknown, ctx: unknown) => run(ctx as JobContext, i === 0)
    const parent =
      kind === 'plain'
        ? defineTask({ name: 'parent', run: handler })
        : defineOrderedTask({ name: 'parent', queue: 'parents', run: handler as never })
    const mill = testMillOn(new MemoryStore(undefined, data), { tasks: [parent, ship], ...more })
    const queue = mill.queue(parent.queue)
    const worker = mill.worker({ queues: [parent.queue] })
    await worker.start()
    if (i === 0) await mill.enqueue(parent as unknown as typeof ship, secret, { id: 'p' })
    else await queue.morgue.revive(['p'])
    // Nothing is kept of an ordered job that is done.
    const done = kind === 'plain' ? 'completed' : undefined
    await expect.poll(async () => (await queue.jobs.get('p'))?.state).toBe(i === 0 ? 'dead' : done)
    await worker.stop()
    if (i < options.length - 1) continue
    const createdAt = (await queue.jobs.get('p'))?.createdAt
    const { jobs } = await mill.queue('shipping').jobs.list({ by: 'time' })
    return { ids: jobs.map(({ id }) => id), createdAt }
  }
  throw new Error('no options')
}

/** What a reader of the store can compute from its facts and a guessed input. */
function guessed(createdAt = new Date(Number.NaN)): string {
  const head = JSON.stringify(['default', 'p', createdAt.getTime(), null, 'ship', 'input'])
  return digestId(createHash('sha256').update(head).update(jsonCodec.encode(secret)).digest())
}

describe('the id of a job that a handler enqueues', () => {
  it('can be computed from a guessed input without a seal, and cannot with one', async () => {
    const plain = await childrenOf('plain', {})
    expect(plain.ids).toContain(guessed(plain.createdAt))
    const sealed = await childrenOf('plain', { seal: { current: 'a', keys } })
    expect(sealed.ids).toHaveLength(3)
    expect(sealed.ids).not.toContain(guessed(sealed.createdAt))
  })

  it.each(['plain', 'ordered'] as const)('stays the same for a sealed %s parent when the key changes', async (kind) => {
    const first = { seal: { current: 'a', keys } }
    const second = { seal: { current: 'b', keys } }
    expect((await childrenOf(kind, first, second)).ids).toHaveLength(3)
  })

  it('stays the same for a parent from before the first seal', async () => {
    expect((await childrenOf('plain', {}, { seal: { current: 'a', keys } })).ids).toHaveLength(3)
  })
})
