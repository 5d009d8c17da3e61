/** Contract cases: lanes, in which the jobs of each group wait, and the turns in which claims go round them. */

import assert from 'node:assert/strict'
import type { ClaimFrom } from '../../../stores/contract/claim.js'
import type { CanonicalLanes } from '../../state/canonical-state.js'
import { groups, orderedCase, plainCase, plainConcern, priority, records } from '../scenes/contract-case.js'
import { grouped } from '../scenes/limit-words.js'
import type { Scene } from '../scenes/scene.js'

export const lanes = plainConcern('lanes of groups', [groups], {
  async 'groups are served in turn, in the order of their arrival'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'y1', 'z1'))

    assert.deepEqual(await oneByOne(scene, 5), ['x1', 'y1', 'z1', 'x2', 'x3'])
  },

  async 'a lane has its turn by its first ready job, and not by one that is due later'(scene) {
    await scene.add({ id: 'x1', group: 'x', delayMs: 9_000 }, ...grouped('y1', 'x2', 'z1', 'x3'))

    assert.deepEqual(await oneByOne(scene, 4), ['y1', 'x2', 'z1', 'x3'])
  },

  async 'a claim for several jobs takes a share of each lane'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'y1', 'y2', 'y3'))

    assert.deepEqual(await scene.claimIds({ limit: 4 }), ['x1', 'x2', 'y1', 'y2'])
  },

  async 'shares are rounded up, so that a claim makes one round, and the next continues where it ended'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'y1', 'y2', 'y3', 'z1', 'z2'))

    assert.deepEqual(await scene.claimIds({ limit: 5 }), ['x1', 'x2', 'y1', 'y2', 'z1'])
    assert.deepEqual((await turns(scene)).turns, ['x', 'y', 'z'])
    assert.deepEqual(await oneByOne(scene, 3), ['x3', 'y3', 'z2'])
  },

  async 'a lane that cannot fill its share leaves the rest to others'(scene) {
    await scene.add(...grouped('x1', 'y1', 'y2', 'y3', 'y4', 'y5'))

    assert.deepEqual(await scene.claimIds({ limit: 4 }), ['x1', 'y1', 'y2', 'y3'])
  },

  async 'a claim makes another round if lanes still have jobs'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'y1'))

    assert.deepEqual(await scene.claimIds(), ['x1', 'x2', 'x3', 'y1'])
    assert.deepEqual((await turns(scene)).turns, [])
  },

  async 'jobs without a group have a lane of their own'(scene) {
    await scene.add('a', 'b', ...grouped('x1', 'x2'))

    assert.deepEqual(await oneByOne(scene, 4), ['x1', 'a', 'x2', 'b'])
  },

  async 'an emptied lane that gets jobs again comes last'(scene) {
    await scene.add(...grouped('x1', 'y1', 'y2', 'z1', 'z2'))
    assert.deepEqual(await oneByOne(scene, 1), ['x1'])
    await scene.add(...grouped('x2'))

    assert.deepEqual(await oneByOne(scene, 5), ['y1', 'z1', 'x2', 'y2', 'z2'])
  },

  async 'lanes that get jobs by one call have their turns in the order of these jobs, whether they are new or wait'(
    scene,
  ) {
    await scene.add({ id: 'x1', group: 'x', delayMs: 9_000 })
    await scene.add(...grouped('x2', 'y1', 'x3'))

    assert.deepEqual(await oneByOne(scene, 3), ['x2', 'y1', 'x3'])
  },

  async 'a group keeps its turn if its only job is replaced into another group after it got a new one in the same call'(
    scene,
  ) {
    await scene.add({ id: 'a', group: 'x' }, { id: 'b', group: 'y' })
    await scene.enqueue([
      { id: 'c', group: 'x' },
      { id: 'a', group: 'z', ifWaiting: 'replace' },
    ])

    assert.deepEqual((await turns(scene)).turns, ['x', 'y', 'z'])
    assert.deepEqual(await oneByOne(scene, 3), ['c', 'b', 'a'])
  },

  'within a lane jobs are in the order of the queue: by priority, then first in, first out': plainCase(
    [groups, priority],
    async (scene) => {
      const [x1, x2, x3, y1] = grouped('x1', 'x2', 'x3', 'y1')
      await scene.add(x1!, x2!, { ...x3!, priority: 5 }, { ...y1!, priority: 9 })

      assert.deepEqual(await oneByOne(scene, 4), ['x3', 'y1', 'x1', 'x2'])
    },
  ),

  async 'within a lane of a lifo queue the last comes first'(scene) {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(grouped('x1', 'x2', 'y1', 'y2'), { queue: 'stack' })

    assert.deepEqual(await scene.claimIds({ queue: 'stack', limit: 2 }), ['x2', 'y2'])
  },

  async 'a job that comes back keeps its place in its lane, and a failed one goes behind the others'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3'))
    const { claims } = await scene.claim({ limit: 2 })
    await scene.end(claims[0]!, { kind: 'retry', delayMs: 0 })
    await scene.end(claims[1]!, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await scene.claimIds(), ['x2', 'x3', 'x1'])
  },

  async 'a due job has its turn in the lane of its group'(scene) {
    const [x1, y1] = grouped('x1', 'y1')
    await scene.add({ ...x1!, delayMs: 1_000 }, y1!)
    assert.deepEqual((await turns(scene)).turns, ['y'])
    await scene.advance(1_000)

    assert.deepEqual(await oneByOne(scene, 2), ['y1', 'x1'])
  },

  'a claim names the group of its job, and so does the record': plainCase([groups, records], async (scene) => {
    await scene.add(...grouped('x1'))
    assert.equal((await scene.claimOne()).group, 'x')
    assert.equal((await scene.records.get(scene.queue, 'x1'))?.group, 'x')
  }),

  'a lane whose last job is cancelled, deleted or buried has no turn': plainCase([groups, records], async (scene) => {
    for (const action of ['cancel', 'delete', 'bury'] as const) {
      await scene.add(...grouped('x1', 'y1'))
      await scene.records[action](scene.queue, { ids: ['x1'] })
      assert.deepEqual((await turns(scene)).turns, ['y'], action)
      assert.deepEqual(await scene.claimIds(), ['y1'], action)
      await scene.harness.advance(90_000_000)
      await scene.claim({ limit: 0 })
      await scene.records.clear(scene.queue)
    }
  }),

  'a revived job has its turn in the lane of its group': plainCase([groups, records], async (scene) => {
    await scene.addDead('x1', { group: 'x' })
    await scene.add(...grouped('y1', 'y2'))
    await scene.records.morgue.revive(scene.queue, 'all')

    assert.deepEqual(await oneByOne(scene, 3), ['y1', 'x1', 'y2'])
  }),

  async 'suspects are in no lane: claims alone get them before any group has its turn'(scene) {
    await scene.addSuspects(...grouped('x1', 'y1'))
    await scene.add(...grouped('z1'))
    assert.deepEqual((await turns(scene)).turns, ['z'])

    assert.deepEqual(await scene.claimIds({ alone: true }), ['x1'])
    assert.deepEqual(await scene.claimIds(), ['z1'])
    assert.deepEqual(await scene.claimIds({ alone: true }), ['y1'])
  },

  async 'a group has as many turns in a round as its weight, one after the other'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'x4', 'y1', 'y2', 'z1'))

    assert.deepEqual(await oneByOne(scene, 1, { y: 2 }), ['x1'])
    assert.deepEqual(await oneByOne(scene, 1, { x: 2, y: 2 }), ['y1'])
    assert.deepEqual((await turns(scene)).turns, ['y after 1', 'z', 'x'])
    assert.deepEqual(await oneByOne(scene, 5, { x: 2, y: 2 }), ['y2', 'z1', 'x2', 'x3', 'x4'])
  },

  async 'a claim for several jobs takes a share of a group for each of its turns'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'y1', 'y2', 'y3', 'y4'))

    assert.deepEqual(await claimed(scene, 8, { x: 3 }), ['x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'y1', 'y2'])
    assert.deepEqual((await turns(scene)).turns, ['x', 'y'])
  },

  async 'a claim that ends within the turns of a group leaves it the rest of them'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'y1', 'y2'))

    assert.deepEqual(await claimed(scene, 2, { x: 3 }), ['x1', 'x2'])
    assert.deepEqual((await turns(scene)).turns, ['x after 2', 'y'])
    assert.deepEqual(await claimed(scene, 4, { x: 3 }), ['x3', 'x4', 'y1', 'y2'])
    assert.deepEqual((await turns(scene)).turns, ['x'])
  },

  async 'a group loses the rest of its turns with its last job, or if a claim gives it no weight'(scene) {
    await scene.add(...grouped('x1', 'x2', 'y1', 'y2', 'y3'))
    assert.deepEqual(await oneByOne(scene, 2, { x: 5 }), ['x1', 'x2'])
    await scene.add(...grouped('x3', 'x4', 'x5'))

    assert.deepEqual(await oneByOne(scene, 2, { x: 5 }), ['y1', 'x3'])
    assert.deepEqual(await oneByOne(scene, 3, {}), ['x4', 'y2', 'x5'])
  },

  'payloads that wait next to a running id are in its group again when that ends': orderedCase(
    [groups],
    async (scene) => {
      await scene.enqueue(grouped('x1', 'y1', 'y2'))
      const claim = await scene.claimOne()
      await scene.enqueue(grouped('x1'))
      await scene.end(claim, { kind: 'complete' })

      assert.equal((await scene.live('x1')).group, 'x')
      assert.deepEqual(await oneByOne(scene, 3), ['y1', 'x1', 'y2'])
    },
  ),
})

/** The ids that claims of one job each receive. */
async function oneByOne(scene: Scene, count: number, weights?: ClaimFrom['weights']): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push(...(await claimed(scene, 1, weights)))
  return ids
}

/** The ids that one claim receives. */
function claimed(scene: Scene, limit: number, weights: ClaimFrom['weights']): Promise<string[]> {
  return scene.claimIds({ from: [{ queue: scene.queue, limit, ...(weights && { weights }) }] })
}

async function turns(scene: Scene): Promise<CanonicalLanes> {
  return (await scene.stored()).lanes
}
