/** Contract cases: the weight of a claim, which takes no more jobs once it has enough bytes of them. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import type { NewJob } from '../../../stores/contract/new-job.js'
import { mostClaimBytes } from '../../../stores/rules/claim-weight.js'
import { groups, inOrder, orderedConcern, plainCase, priority, tellsCrashes } from '../scenes/contract-case.js'

/** Two of them are enough for a claim. */
const large = text(mostClaimBytes / 2)
const most = 500

export const claimBytes = orderedConcern('the weight of a claim', [], {
  'a claim takes one of 500 jobs of 1 MiB, and leaves the rest ready in place': plainCase([inOrder], async (scene) => {
    const ids = Array.from({ length: 3 }, (_, i) => `job-${i}`)
    await scene.add(...ids.map((id) => ({ id, payload: text(mostClaimBytes) })))

    const answers = [await scene.claim({ limit: most }), await scene.claim({ limit: most })]

    assert.deepEqual(
      answers.map(({ claims, more }) => [claims.map(({ id }) => id), more]),
      [
        [['job-0'], true],
        [['job-1'], true],
      ],
    )
    assert.deepEqual(await scene.states(), ['job-0 running', 'job-1 running', 'job-2 ready'])
  }),

  'a claim takes jobs up to 1 MiB, to the byte, including their meta': plainCase([inOrder], async (scene) => {
    const almost = { id: 'a', payload: text(mostClaimBytes - 9), meta: '"ü234"' }
    assert.equal(bytesOf(almost), mostClaimBytes - 2)
    await scene.add(almost, { id: 'b', payload: '1' }, { id: 'c', payload: '1' }, { id: 'd', payload: '1' })
    assert.deepEqual(await scene.claimIds({ limit: most }), ['a', 'b', 'c'])

    await scene.add({ ...almost, id: 'e' })
    assert.deepEqual(await scene.claimIds({ limit: most }), ['d', 'e'])
  }),

  'payloads of bytes are weighed by their bytes': plainCase([], async (scene) => {
    const payload = new Uint8Array(mostClaimBytes / 2)
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, payload, codec: 'packed' })))
    assert.equal((await scene.claimIds({ limit: most })).length, 2)
  }),

  'large jobs among small ones end a claim, whatever came before them': plainCase([inOrder], async (scene) => {
    const ids = Array.from({ length: 40 }, (_, i) => `job-${String(i).padStart(2, '0')}`)
    const isLarge = (i: number) => i === 9 || i === 20 || i === 31
    await scene.add(...ids.map((id, i) => (isLarge(i) ? { id, payload: large } : { id })))
    assert.deepEqual(await scene.claimIds({ limit: most }), ids.slice(0, 21))
    assert.deepEqual(await scene.claimIds({ limit: most }), ids.slice(21))
  }),

  'jobs of any priority are weighed, in order': plainCase([priority], async (scene) => {
    const given = [
      { id: 'a', payload: large, priority: -1 },
      { id: 'b', payload: large },
      { id: 'c', payload: large, priority: 5 },
    ]
    await scene.add(...given)
    assert.deepEqual(await scene.claimIds({ limit: most }), ['c', 'b'])
    assert.deepEqual(await scene.claimIds({ limit: most }), ['a'])
  }),

  'a checkpoint is weighed like a payload': plainCase([tellsCrashes], async (scene) => {
    await scene.add('a', 'b', 'c')
    const { claims } = await scene.claim({ limit: most })
    for (const claim of claims) {
      await scene.extend(claim, { beat: { checkpoint: { payload: large } } })
      await scene.end(claim, { kind: 'retry', delayMs: 0, error: 'broken' })
    }

    const again = [await scene.claim({ limit: most }), await scene.claim({ limit: most })]

    assert.deepEqual(
      again.map(({ claims }) => claims.map(told)),
      [['a broken', 'b broken'], ['c broken']],
    )
  }),

  'a suspect that is too heavy to be claimed with others is granted to a claim alone': plainCase(
    [tellsCrashes],
    async (scene) => {
      await scene.addSuspects({ id: 'a', payload: text(mostClaimBytes) })
      assert.deepEqual(await scene.claimIds({ limit: most, alone: true }), ['a'])
    },
  ),

  'a claim over several groups ends when it has enough, and the next one continues with the next group': plainCase(
    [groups],
    async (scene) => {
      await scene.add(...['x1', 'x2', 'y1', 'y2', 'z1'].map((id) => ({ id, group: id[0]!, payload: large })))
      const claim = () => scene.claimIds({ limit: 2 * most })
      assert.deepEqual([await claim(), await claim(), await claim()], [['x1', 'x2'], ['y1', 'y2'], ['z1']])
    },
  ),

  async 'ids of an ordered queue are taken up to 1 MiB'(scene) {
    for (const id of ['a', 'b', 'c']) await scene.push(id, large)
    const { claims, more } = await scene.claim({ limit: most })
    assert.deepEqual([claims.map(({ id }) => id), more], [['a', 'b'], true])
    assert.deepEqual(await scene.claimIds({ limit: most }), ['c'])
  },

  async 'shards of an ordered queue in one claim are weighed together'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    for (const id of ['a', 'b', 'd', 'e']) await scene.enqueue([{ id, payload: large }], { queue: 'wide' })
    const claim = () => scene.claimIds({ queue: 'wide', limit: most })
    assert.deepEqual(
      [await claim(), await claim()],
      [
        ['d', 'e'],
        ['a', 'b'],
      ],
    )
  },

  async 'a full claim says nothing about later shards, whether or not the queue has them'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    for (const id of ['d', 'e']) await scene.enqueue([{ id, payload: large }], { queue: 'wide' })
    const claimed = await scene.claim({ from: [0, 7, 1].map((shard) => ({ queue: 'wide', shard, limit: most })) })
    const told = claimed.waits.map(({ shard, reason }) => [shard, reason])
    assert.deepEqual([claimed.claims.map(({ id }) => id), told], [['d', 'e'], [[0, 'empty']]])
  },

  async 'a shard that the queue lacks adds nothing to the weight of earlier ones'(scene) {
    await scene.openQueue({ name: 'wide', shards: 2 })
    for (const id of ['d', 'a', 'b']) await scene.enqueue([{ id, payload: large }], { queue: 'wide' })
    const from = [0, 7, 1].map((shard) => ({ queue: 'wide', shard, limit: most }))
    assert.deepEqual(await scene.claimIds({ from }), ['d', 'a'])
  },

  async 'a claim of one id takes payloads up to 1 MiB, but at least one, and says that there are more'(scene) {
    const [one, other, last] = ['a', 'b', 'c'].map((end) => large.slice(0, -1) + end)
    await scene.pushAll('id', [one!, other!, last!, text(mostClaimBytes)])

    const claims: Claim[] = []
    while (claims.length === 0 || claims.at(-1)!.hasMore) {
      claims.push(await scene.take(most))
      await scene.end(claims.at(-1)!, { kind: 'complete' })
    }

    assert.deepEqual(
      claims.map(({ payloads, hasMore }) => [payloads!.length, hasMore]),
      [
        [2, true],
        [1, true],
        [1, undefined],
      ],
    )
  },

  async 'a claim for all payloads of an id takes all of them, whatever their weight'(scene) {
    await scene.pushAll(
      'id',
      ['a', 'b', 'c'].map((end) => large.slice(0, -1) + end),
    )
    const { payloads, hasMore } = await scene.take()
    assert.deepEqual([payloads!.length, hasMore], [3, undefined])
  },
})

function text(bytes: number): string {
  return `"${'x'.repeat(bytes - 2)}"`
}

function bytesOf({ payload, meta }: Pick<NewJob, 'payload' | 'meta'>): number {
  return Buffer.byteLength(payload) + Buffer.byteLength(meta ?? '')
}

function told({ id, error, checkpoint }: Claim): string {
  assert.equal(checkpoint?.payload, large)
  return `${id} ${error}`
}
