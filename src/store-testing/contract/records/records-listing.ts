/** Contract cases: looking jobs up and listing them. */

import assert from 'node:assert/strict'
import { InvalidArgumentError } from '../../../core/errors.js'
import { pagesOf } from '../../../core/values/pages.js'
import type { ListQuery } from '../../../stores/contract/job-records.js'
import type { NewJob } from '../../../stores/contract/new-job.js'
import { groups, plainCase, plainConcern, priority, records } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const recordsListing = plainConcern('records: listing', [records], {
  async 'get shows a job in each of its states'(scene) {
    const createdAt = await scene.now()
    await scene.add({ id: 'a', meta: '{}', priority: 2 })
    const fresh = await scene.records.get(scene.queue, 'a')
    await scene.advance(10)
    const claim = await scene.claimOne()
    await scene.extend(claim, {
      beat: { startedMs: 0, host: 'mill-1', pid: 123_456, progress: { fraction: 0.5 } },
    })
    await scene.advance(10)
    const running = await scene.records.get(scene.queue, 'a')
    await scene.end(claim, { kind: 'complete', result: { payload: '"RESULT"' } })
    const completed = await scene.records.get(scene.queue, 'a')

    const always = {
      queue: scene.queue,
      id: 'a',
      task: 'send-mail',
      payload: '{"to":"a"}',
      meta: '{}',
      priority: 2,
      attempt: 1,
      crashes: 0,
      createdAt,
      runAt: createdAt,
    }
    const held = {
      startedAt: createdAt + 10,
      worker: 'worker-1',
      host: 'mill-1',
      pid: 123_456,
      progress: { fraction: 0.5 },
    }
    assert.deepEqual(fresh, { ...always, state: 'ready', updatedAt: createdAt })
    assert.deepEqual(running, { ...always, ...held, state: 'running', updatedAt: createdAt + 10 })
    assert.deepEqual(completed, {
      ...always,
      ...held,
      state: 'completed',
      updatedAt: createdAt + 20,
      finishedAt: createdAt + 20,
      result: { payload: '"RESULT"' },
    })
  },

  async 'get returns undefined if nothing is kept'(scene) {
    await scene.add('a')

    assert.equal(await scene.records.get(scene.queue, 'A'), undefined)
  },

  async 'by id lists all states in the byte order of the ids'(scene) {
    await scene.addDead('b')
    await scene.addCompleted('é')
    await scene.add('a')
    await scene.claimOne()
    await scene.add('Z', '🎈', { id: '\uffee', delayMs: 1_000 }, '10', '9')

    assert.deepEqual(await listed(scene, { by: 'id' }), ['10', '9', 'Z', 'a', 'b', 'é', '\uffee', '🎈'])
  },

  async 'by time lists running, ready, scheduled, completed and dead, each in its order'(scene) {
    for (const id of ['dead 1', 'dead 2']) {
      await scene.addDead(id)
      await scene.advance(1)
    }
    for (const id of ['done 1', 'done 2']) {
      await scene.addCompleted(id)
      await scene.advance(1)
    }
    await scene.add('run 1', 'run 2')
    await scene.claimOne({ leaseMs: 90_000 })
    await scene.claimOne({ leaseMs: 30_000 })
    await scene.add('ready 1', 'ready 2', { id: 'later 2', delayMs: 2_000 }, { id: 'later 1', delayMs: 1_000 })

    assert.deepEqual(await listed(scene, { by: 'time' }), [
      'run 1',
      'run 2',
      'ready 1',
      'ready 2',
      'later 1',
      'later 2',
      'done 2',
      'done 1',
      'dead 2',
      'dead 1',
    ])
  },

  'by time lists ready jobs as they will be claimed': plainCase([records, priority], async (scene) => {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(['a', { id: 'high', priority: 4 }, 'b', { id: 'low', priority: -1 }, 'c'], {
      queue: 'stack',
    })

    const { jobs } = await scene.records.list('stack', { by: 'time', limit: 10 })

    assert.deepEqual(
      jobs.map(({ id }) => id),
      await scene.claimIds({ queue: 'stack' }),
    )
  }),

  async 'by retry lists waiting and running jobs that failed, fewest failures first'(scene) {
    await scene.add('twice', 'once', 'never', 'dead')
    const { claims } = await scene.claim()
    for (const claim of claims.slice(0, 2)) await scene.end(claim, { kind: 'retry', delayMs: 0 })
    await scene.end(claims[2]!, { kind: 'release', delayMs: 5_000 })
    await scene.end(claims[3]!, { kind: 'retry', delayMs: 0, last: true })
    const again = await scene.claimOne()
    assert.equal(again.id, 'twice')
    await scene.end(again, { kind: 'retry', delayMs: 5_000 })
    await scene.claimOne()

    assert.deepEqual(await listed(scene, { by: 'retry' }), ['once', 'twice'])
  },

  async 'a list of one state shows no other'(scene) {
    await scene.addDead('dead')
    await scene.addCompleted('done')
    await scene.add('running')
    await scene.claimOne()
    await scene.add('ready', { id: 'later', delayMs: 1_000 })

    for (const [state, id] of [
      ['dead', 'dead'],
      ['completed', 'done'],
      ['running', 'running'],
      ['ready', 'ready'],
      ['scheduled', 'later'],
    ] as const) {
      assert.deepEqual(await listed(scene, { state, by: 'id' }), [id])
      assert.deepEqual(await listed(scene, { state, by: 'time' }), [id])
    }
  },

  'a list of a group shows its jobs alone, in the order of the whole list': plainCase(
    [records, groups, priority],
    async (scene) => {
      const thrice = (id: string, more: Partial<NewJob> = {}) => [
        { ...more, id, group: 'x' },
        { ...more, id: `${id} of y`, group: 'y' },
        { ...more, id: `${id} of none` },
      ]
      await scene.addSuspects(...thrice('suspect'))
      await scene.add(...thrice('dead'), ...thrice('done'), ...thrice('run'), ...thrice('again'))
      const { claims } = await scene.claim({ limit: 12 })
      assert.equal(claims.length, 12)
      for (const claim of claims) {
        if (claim.id.startsWith('dead'))
          await scene.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
        if (claim.id.startsWith('done')) await scene.end(claim, { kind: 'complete', result: { payload: '1' } })
        if (claim.id.startsWith('again')) await scene.end(claim, { kind: 'retry', delayMs: 60_000 })
      }
      await scene.add(...thrice('second'), ...thrice('third'), ...thrice('first', { priority: 1 }))
      await scene.add(...thrice('later', { delayMs: 1_000 }))

      for (const by of ['id', 'time', 'retry'] as const) {
        const whole = (await paged(scene, { by, limit: 200 })).flat()
        for (const limit of [1, 2, 200])
          assert.deepEqual(
            (await paged(scene, { by, limit, group: 'x' })).flat(),
            whole.filter((id) => !id.includes(' of ')),
          )
      }
      assert.deepEqual((await paged(scene, { by: 'time', limit: 5, group: 'z' })).flat(), [])
      const { jobs } = await scene.records.morgue.list(scene.queue, { by: 'time', limit: 5, group: 'x' })
      assert.deepEqual(
        jobs.map(({ id }) => id),
        ['dead'],
      )
    },
  ),

  'a page of the ready jobs of a group is not shorter for those of others between them': plainCase(
    [records, groups, priority],
    async (scene) => {
      for (const order of ['fifo', 'lifo'] as const) {
        await scene.openQueue({ name: order, order })
        for (let n = 1; n <= 5; n += 1)
          await scene.enqueue(
            [{ id: `x${n}`, group: 'x' }, ...['a', 'b', 'c', 'd'].map((name) => ({ id: `${name}${n}`, group: 'y' }))],
            { queue: order },
          )
        const pages: string[][] = []
        const query = { state: 'ready', by: 'time', limit: 2, group: 'x' } as const
        for await (const { jobs } of pagesOf((from) => scene.records.list(order, { ...query, ...from })))
          pages.push(jobs.map(({ id }) => id))

        assert.deepEqual(
          pages,
          order === 'fifo' ? [['x1', 'x2'], ['x3', 'x4'], ['x5']] : [['x5', 'x4'], ['x3', 'x2'], ['x1']],
        )
      }
    },
  ),

  async 'pages follow one another without a gap or a repeat, and the last has no cursor'(scene) {
    const ids = Array.from({ length: 23 }, (_, i) => `job-${String(i).padStart(2, '0')}`)
    await scene.add(...ids)

    for (const by of ['id', 'time'] as const) {
      const pages = await paged(scene, { by, limit: 10 })
      assert.deepEqual(
        pages.map(({ length }) => length),
        [10, 10, 3],
      )
      assert.deepEqual(pages.flat(), ids)
    }
  },

  async 'a page that just ends the list has no cursor'(scene) {
    await scene.add('a', 'b')

    assert.equal((await scene.records.list(scene.queue, { by: 'id', limit: 2 })).cursor, undefined)
  },

  async 'pages by time cover all states'(scene) {
    for (const id of ['dead 1', 'dead 2']) await scene.addDead(id)
    for (const id of ['done 1', 'done 2']) await scene.addCompleted(id)
    await scene.add('run 1', 'run 2')
    await scene.claim()
    await scene.add('ready 1', { id: 'later 1', delayMs: 1_000 }, 'ready 2', { id: 'later 2', delayMs: 1_000 })

    const whole = await listed(scene, { by: 'time' })

    assert.equal(whole.length, 10)
    for (const limit of [1, 3, 4]) assert.deepEqual((await paged(scene, { by: 'time', limit })).flat(), whole)
  },

  async 'pages by retry cover jobs with equally many failures'(scene) {
    await scene.add('a', 'b', 'c', 'd', 'e')
    for (const claim of (await scene.claim()).claims) await scene.end(claim, { kind: 'retry', delayMs: 60_000 })

    const whole = await listed(scene, { by: 'retry' })

    assert.deepEqual([...whole].sort(), ['a', 'b', 'c', 'd', 'e'])
    assert.deepEqual((await paged(scene, { by: 'retry', limit: 2 })).flat(), whole)
  },

  async 'jobs that arrive and leave between two pages do not shift others'(scene) {
    const ids = ['b', 'c', 'd', 'e', 'f', 'g']
    await scene.add(...ids)
    for (const by of ['id', 'time'] as const) {
      const first = await scene.records.list(scene.queue, { by, limit: 3 })
      await scene.records.delete(scene.queue, { ids: ['b', 'd'] })
      if (by === 'id') await scene.add('a')
      const second = await scene.records.list(scene.queue, { by, limit: 10, cursor: first.cursor! })

      assert.deepEqual(
        second.jobs.map(({ id }) => id),
        ['e', 'f', 'g'],
      )
      await scene.records.clear(scene.queue)
      await scene.add(...ids)
    }
  },

  async 'an invalid cursor is refused'(scene) {
    await scene.add('a')

    for (const by of ['id', 'time', 'retry'] as const) {
      for (const cursor of ['no cursor', '', '-1', '{"a":1}', '💥']) {
        await assert.rejects(scene.records.list(scene.queue, { by, limit: 5, cursor }), InvalidArgumentError)
      }
    }
    await assert.rejects(
      scene.records.morgue.list(scene.queue, { by: 'time', limit: 5, cursor: 'no cursor' }),
      InvalidArgumentError,
    )
  },

  async 'a cursor from a list in another order is refused'(scene) {
    await scene.add('a', 'b')
    const byId = await scene.records.list(scene.queue, { by: 'id', limit: 1 })
    const byTime = await scene.records.list(scene.queue, { by: 'time', limit: 1 })

    await assert.rejects(
      scene.records.list(scene.queue, { by: 'time', limit: 1, cursor: byId.cursor! }),
      InvalidArgumentError,
    )
    await assert.rejects(
      scene.records.list(scene.queue, { by: 'id', limit: 1, cursor: byTime.cursor! }),
      InvalidArgumentError,
    )
  },

  async 'a list changes nothing'(scene) {
    await scene.add('a', { id: 'b', delayMs: 1_000 })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(2_000)
    const before = await scene.harness.dump()

    for (const by of ['id', 'time', 'retry'] as const) await scene.records.list(scene.queue, { by, limit: 10 })
    await scene.records.get(scene.queue, 'a')

    assert.deepEqual(await scene.harness.dump(), before)
  },
})

async function listed(scene: Scene, query: Omit<ListQuery, 'limit'>): Promise<string[]> {
  return (await scene.records.list(scene.queue, { ...query, limit: 200 })).jobs.map(({ id }) => id)
}

/** The ids of all pages. */
async function paged(scene: Scene, query: ListQuery): Promise<string[][]> {
  const pages: string[][] = []
  for await (const { jobs } of pagesOf((from) => scene.records.list(scene.queue, { ...query, ...from }))) {
    pages.push(jobs.map(({ id }) => id))
    if (pages.length === 100) break
  }
  return pages
}
