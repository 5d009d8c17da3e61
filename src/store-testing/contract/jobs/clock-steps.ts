/**
 * Contract cases: a wall clock that is set back. Nothing then lasts longer than it was to, and nothing is granted
 * early.
 */

import assert from 'node:assert/strict'
import {
  type ContractConcern,
  groups,
  limited,
  plainCase,
  plainConcern,
  remote,
  steps,
  tellsCrashes,
  throttled,
  workers,
} from '../scenes/contract-case.js'
import { byGroup, denied, grouped, jobs, longLeaseMs, rule, taken, throttle } from '../scenes/limit-words.js'
import type { Scene } from '../scenes/scene.js'

const windowMs = 10_000
const release = (of: 'queue' | 'group', forMs: number) =>
  ({ kind: 'release', delayMs: 0, hold: { of, forMs } }) as const

const concerns = [5_000, 60_000, 3_600_000].map((backMs) =>
  plainConcern(`a clock that is set back by ${backMs / 1_000} s`, [], {
    'keeps a throttled queue shut for at most one window, and lets nothing through before': plainCase(
      [throttled],
      async (scene) => {
        await scene.openQueue({ throttle: throttle(rule(3, windowMs)) })
        await scene.add(...jobs(9))
        assert.equal(await taken(scene), 3)
        await denied(scene)
        await scene.harness.step(-backMs)

        assert.equal(await firstShut(scene), windowMs + 1)
        await scene.advance(windowMs)
        await denied(scene)
        await scene.advance(1)
        assert.equal(await taken(scene), 3)
      },
    ),

    'keeps each group of a throttled queue shut for at most one window': plainCase(
      [throttled, groups],
      async (scene) => {
        await scene.openQueue({ throttle: byGroup(rule(1, windowMs)) })
        await scene.add(...grouped('x1', 'x2', 'y1', 'y2', 'z1', 'z2'))
        assert.equal(await taken(scene), 3)
        await denied(scene)
        await scene.harness.step(-backMs)

        assert.equal(await firstShut(scene), windowMs + 1)
        await scene.advance(windowMs + 1)
        assert.equal(await taken(scene), 3)
      },
    ),

    'charges a long window, and keeps it shut for at most its length': plainCase([throttled], async (scene) => {
      const longMs = 20 * 60_000
      await scene.openQueue({ throttle: throttle(rule(2, longMs)) })
      await scene.add(...jobs(9))
      assert.equal(await taken(scene), 2)
      await denied(scene)
      await scene.harness.step(-backMs)

      assert.equal(await firstShut(scene), longMs + 1)
      await scene.advance(longMs + 1)
      assert.equal(await taken(scene), 2)
    }),

    'leaves a hold of a queue its length': plainCase([limited], async (scene) => {
      await scene.add('a', 'b')
      await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), release('queue', 4_000))
      await scene.harness.step(-backMs)

      assert.equal(await firstShut(scene), 4_000)
      await scene.advance(4_000)
      assert.equal(await taken(scene), 2)
    }),

    'leaves a hold of a group its length, also one that is made afterwards': plainCase(
      [groups, limited],
      async (scene) => {
        await scene.add(...grouped('x1', 'y1'))
        const { claims } = await scene.claim({ leaseMs: longLeaseMs })
        await scene.end(claims[0]!, release('group', 4_000))
        await denied(scene)
        await scene.harness.step(-backMs)
        await scene.end(claims[1]!, release('group', 2_000))

        assert.equal(await firstShut(scene), 2_000)
        await scene.advance(2_000)
        assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['y1'])
        await scene.advance(2_000)
        assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['x1'])
      },
    ),

    'lets no hold be reported as longer than requested': plainCase([groups, limited, throttled], async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(10, windowMs)) })
      await scene.add(...grouped('x1'))
      await scene.end(await scene.claimOne(), release('group', 4 * windowMs))
      await scene.harness.step(-backMs)

      assert.equal((await scene.throttles.state(scene.queue, 'x'))?.forMs, 4 * windowMs)
    }),

    'leaves a lease that a step has renewed its length': plainCase([steps, tellsCrashes], async (scene) => {
      await scene.add('a')
      const { queue, id, fence } = await scene.claimOne()
      await scene.advance(20_000)
      await scene.steps.keep({ queue, id, fence }, { name: 'charge', kind: 'step' }, 30_000)
      await scene.harness.step(-backMs)
      await scene.claim({ limit: 0 })
      await scene.advance(29_999)
      assert.deepEqual((await scene.claim({ limit: 0 })).crashed, [])
      await scene.advance(1)
      assert.equal((await scene.claim({ limit: 0 })).crashed.length, 1)
    }),

    async 'leaves a lease its length, whichever worker has died'(scene) {
      await scene.add('a', 'b')
      await scene.claim({ worker: 'victim' })
      await scene.harness.step(-backMs)
      await scene.claim({ limit: 0 })
      await scene.advance(29_999)
      assert.deepEqual((await scene.claim({ limit: 0 })).crashed, [])
      await scene.advance(1)

      const { crashed } = await scene.claim({ limit: 0 })
      assert.deepEqual(crashed.map(({ id }) => id).sort(), ['a', 'b'])
    },

    async 'is handled once, however often a claim names its queue'(scene) {
      await scene.add('a')
      await scene.claim({ worker: 'victim' })
      await scene.harness.step(-backMs)
      await scene.claim({ from: [0, 0].map((limit) => ({ queue: scene.queue, limit })) })
      await scene.advance(29_999)
      assert.deepEqual((await scene.claim({ limit: 0 })).crashed, [])
      await scene.advance(1)

      assert.deepEqual(
        (await scene.claim({ limit: 0 })).crashed.map(({ id }) => id),
        ['a'],
      )
    },

    async 'ends no renewed lease early, before or after a claim'(scene) {
      await scene.add('a', 'b')
      const { claims } = await scene.claim({ worker: 'survivor' })
      await scene.advance(20_000)
      await scene.harness.step(-backMs)
      assert.equal(await scene.extend(claims[0]!), 'ok')
      await scene.advance(5_000)
      assert.equal(await scene.extend(claims[1]!), 'ok')
      await scene.advance(24_999)
      assert.deepEqual((await scene.claim({ limit: 0 })).crashed, [])
      await scene.advance(1)
      assert.deepEqual(
        (await scene.claim({ limit: 0 })).crashed.map(({ id }) => id),
        ['a'],
      )
      await scene.advance(5_000)
      assert.deepEqual(
        (await scene.claim({ limit: 0 })).crashed.map(({ id }) => id),
        ['b'],
      )
    },

    'lets the lead of the suspects lapse as usual': plainCase([tellsCrashes], async (scene) => {
      // The worker that finds them leads, and dies.
      await scene.addSuspects('a')
      await scene.harness.step(-backMs)
      const asked = async () =>
        (await scene.claim({ worker: 'heir' })).waits.find(({ reason }) => reason === 'suspect')?.lead
      assert.equal(await asked(), undefined)
      await scene.advance(6_001)

      assert.equal(await asked(), true)
    }),

    'spares the leases after a restart of the server for at most one lease': plainCase([remote], async (scene) => {
      await scene.add('a')
      await scene.claim({ worker: 'victim' })
      await scene.advance(60_000)
      await scene.harness.restart()
      assert.deepEqual((await scene.claim({ limit: 0 })).crashed, [])
      await scene.harness.step(-backMs)
      await scene.claim({ limit: 0 })
      await scene.advance(30_000)

      assert.deepEqual(
        (await scene.claim({ limit: 0 })).crashed.map(({ id }) => id),
        ['a'],
      )
    }),

    'lets the record of a worker lapse as usual': plainCase([workers], async (scene) => {
      const process = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, queues: [], concurrency: 1, running: 0 }
      const beat = (id: string) => scene.workers.beat({ ...process, id, startedAt: 0 }, 10_000)
      const listed = async () => (await scene.workers.list()).map(({ id }) => id)
      await beat('dead')
      await scene.harness.step(-backMs)
      await beat('alive')
      assert.deepEqual(await listed(), ['alive', 'dead'])
      await scene.advance(9_999)
      await beat('alive')
      await scene.advance(1)

      assert.deepEqual(await listed(), ['alive'])
    }),
  }),
)

/** For how long nothing is granted, by the answer to a claim that takes nothing. */
async function firstShut(scene: Scene): Promise<number | undefined> {
  return (await denied(scene)).find(({ reason }) => reason === 'throttled')?.forMs
}

export const clockSteps: ContractConcern = {
  concern: 'clocks that are set back',
  cases: concerns.flatMap(({ concern, cases }) => cases.map((one) => ({ ...one, title: `${concern} ${one.title}` }))),
}
