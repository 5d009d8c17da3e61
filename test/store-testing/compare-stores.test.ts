import type { Store } from 'millrace/store'
import {
  type AuditEntry,
  auditBreaches,
  auditKind,
  compareStores,
  memoryHarness,
  type StoreHarness,
  StoresDifferError,
  UnseenError,
} from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { changed } from '../changed.js'

const aheadBy = 1_000_000

/** A store whose fences are other numbers than those of the model. */
function withOtherFences(store: Store): Store {
  const workers = store.workers!
  const own = <T extends { readonly fence: number }>(keys: readonly T[]) =>
    keys.map((key) => ({ ...key, fence: key.fence - aheadBy }))
  const other = <T extends { readonly fence: number }>(claims: readonly T[]) =>
    claims.map((claim) => ({ ...claim, fence: claim.fence + aheadBy }))
  return changed(store, {
    claim: async (from, by) => {
      const claimed = await store.claim(from, by)
      return { ...claimed, claims: other(claimed.claims) }
    },
    settle: (items) => store.settle(own(items)),
    extend: (items) => store.extend(own(items)),
    workers: {
      beat: (worker, ttlMs) => workers.beat(worker, ttlMs),
      signal: (id, order) => workers.signal(id, order),
      list: () => workers.list(),
      remove: (id) => workers.remove(id),
      held: async (worker) => other(await workers.held(worker)),
      gone: (claims, worker) => workers.gone(own(claims), worker),
      adopt: (claim, from, to) => workers.adopt(own([claim])[0]!, from, to),
    },
  })
}

/** A memory store of which nobody sees more than its answers. */
async function unseen(change: (store: Store) => Store = (store) => store): Promise<StoreHarness> {
  const harness = await memoryHarness()
  return {
    ...harness,
    name: 'unseen',
    open: async () => change(await harness.open()),
    dump: async () => {
      throw new UnseenError('nobody can look into it')
    },
  }
}

describe('a comparison of two stores by their answers', () => {
  it.each(['plain', 'ordered', 'limited'] as const)('needs no access to their state: %s queues', async (kind) => {
    await compareStores(await unseen(), await unseen(), { seed: 7, steps: 150, kind, compare: 'answers' })
    await expect(compareStores(await unseen(), await unseen(), { seed: 7, steps: 5, kind })).rejects.toThrow(
      UnseenError,
    )
  })

  it('allows different fences in each', async () => {
    const [model, subject] = [await memoryHarness(), await unseen(withOtherFences)]

    await compareStores(model, subject, { seed: 3, steps: 150, compare: 'answers' })
  })

  it('finds a different answer, and reports its seed and step', async () => {
    const subject = await unseen((store) =>
      changed(store, {
        settle: async (items) => (await store.settle(items)).map((answer) => (answer === 'lost' ? 'ok' : answer)),
      }),
    )

    const compared = compareStores(await memoryHarness(), subject, { seed: 3, steps: 300, compare: 'answers' })

    await expect(compared).rejects.toThrow(StoresDifferError)
    await expect(compared).rejects.toThrow(/unseen differs from memory in its answer at step \d+ of seed 3/)
  })
})

type States = Pick<AuditEntry, 'from' | 'to'>

function entry(id: string, { from, to }: States, fence: number): AuditEntry {
  return { at: 0, queue: 'mail', id, kind: auditKind(from, to)!, from, to, fence, worker: null }
}
const enqueue: States = { from: null, to: 'ready' }
const claim: States = { from: 'ready', to: 'running' }
const requeue: States = { from: 'running', to: 'ready' }
const leave: States = { from: 'running', to: null }

describe('the rules of an audit', () => {
  it('hold for a job that is claimed, put back, claimed again and done', () => {
    const entries = [
      entry('a', enqueue, 0),
      entry('a', claim, 1),
      entry('a', requeue, 1),
      entry('a', claim, 2),
      entry('a', leave, 2),
    ]

    expect(auditBreaches(entries)).toEqual([])
  })

  it('hold for several jobs of one claim, which share a fence', () => {
    expect(auditBreaches([entry('a', claim, 1), entry('b', claim, 1), entry('a', leave, 1)])).toEqual([])
  })

  it.each<[string, AuditEntry[], RegExp]>([
    ['a job is claimed twice at once', [entry('a', claim, 1), entry('a', claim, 2)], /fence 1 has not ended/],
    ['fences go back', [entry('a', claim, 2), entry('b', claim, 1)], /fence 2 was given before/],
    ['a superseded claim ends the job', [entry('a', claim, 2), entry('a', leave, 1)], /current claim has fence 2/],
    ['a job that nobody claimed ends as running', [entry('a', leave, 1)], /current claim has fence undefined/],
    ['a scheduled job is claimed', [entry('a', { from: 'scheduled', to: 'running' }, 1)], /scheduled, not ready/],
    [
      'a running job is taken as a waiting one',
      [entry('a', claim, 1), entry('a', { from: 'ready', to: 'dead' }, 0)],
      /is running with fence 1/,
    ],
  ])('are broken if %s', (_, entries, breach) => {
    const breaches = auditBreaches(entries)

    expect(breaches).toHaveLength(1)
    expect(breaches[0]).toMatch(breach)
  })
})

describe('a change of state', () => {
  it.each<[AuditEntry['from'], AuditEntry['to'], string | undefined]>([
    [null, 'scheduled', 'enqueue'],
    ['scheduled', 'ready', 'promote'],
    ['running', 'scheduled', 'requeue'],
    ['running', 'completed', 'keep'],
    ['ready', 'dead', 'bury'],
    ['dead', 'ready', 'revive'],
    ['scheduled', null, 'leave'],
    ['scheduled', 'scheduled', undefined],
  ])('from %s to %s is called %s', (from, to, kind) => {
    expect(auditKind(from, to)).toBe(kind)
  })
})
