/** Contract cases: deaths that are kept until they are reported. */

import assert from 'node:assert/strict'
import {
  type DeathBacklog,
  type Deaths,
  tasksInBacklog,
  type UnreportedDeath,
} from '../../../stores/contract/job-records.js'
import type { NewJob } from '../../../stores/contract/new-job.js'
import { compareBytes } from '../../../stores/rules/byte-order.js'
import {
  deaths as hasDeaths,
  joinCase,
  joins,
  plainCase,
  plainConcern,
  records,
  scheduled,
  steps,
  tellsCrashes,
  workers,
} from '../scenes/contract-case.js'
import { callsOf, memberOf, members, newJoin, newSet } from '../scenes/join-scene.js'
import type { Scene } from '../scenes/scene.js'
import { hourly, schedulesOf, storedSchedule, tickOf } from '../scenes/schedule-words.js'

const reporting = { reportsDeath: true } as const
const tasks = ['send-mail']

export const deaths = plainConcern('deaths', [hasDeaths], {
  async 'a death has what the job was then'(scene) {
    await scene.openQueue({ maxCrashes: 3 })
    const payload = Uint8Array.of(0, 1, 255)
    await scene.add({
      id: 'É\n',
      payload,
      codec: 'raw',
      meta: '{}',
      priority: 3,
      group: 'g',
      rememberMs: 1_000,
      ...reporting,
    })
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'first' })
    await scene.advance(50)
    await scene.end(await scene.claimOne(), {
      kind: 'retry',
      delayMs: 0,
      last: true,
      error: 'ü "2"\0',
      reason: 'no more',
    })

    const [death, ...others] = await unreported(scene)
    const { number, ...about } = death!
    assert.deepEqual(others, [])
    assert.ok(Number.isSafeInteger(number))
    const { attempt, crashes, finishedAt } = await scene.job('É\n')
    assert.deepEqual(about, {
      ...{ queue: scene.queue, id: 'É\n', task: 'send-mail', payload, codec: 'raw', attempt, crashes },
      ...{ error: 'ü "2"\0', reason: 'no more', diedAt: finishedAt },
    })
  },

  async 'a failure for good and a burial are deaths, and nothing else that a claim ends in'(scene) {
    await diesBy(scene, async () => scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, last: true }))
    await diesBy(scene, async () => scene.end(await scene.claimOne(), { kind: 'bury', error: 'x', reason: 'refused' }))
    await scene.add(
      { id: 'a', ...reporting },
      { id: 'b', ...reporting },
      { id: 'c', ...reporting },
      { id: 'd', ...reporting },
    )
    const { claims } = await scene.claim()
    const ends = [
      { kind: 'complete' },
      { kind: 'cancel' },
      { kind: 'retry', delayMs: 0 },
      { kind: 'release', delayMs: 0 },
    ]
    for (const [i, claim] of claims.entries()) await scene.end(claim, ends[i] as { kind: 'complete' })
    assert.deepEqual(await unreported(scene), [])
  },

  'one crash too many is a death, in a claim and at the end of a dead worker': plainCase(
    [hasDeaths, tellsCrashes, workers],
    async (scene) => {
      await scene.openQueue({ maxCrashes: 1 })
      await diesBy(scene, async () => {
        await scene.claimOne({ leaseMs: 1_000, alone: true })
        await scene.advance(1_000)
        assert.equal((await scene.claim({ limit: 0 })).buried.length, 1)
      })
      await diesBy(scene, async () => {
        const claim = await scene.claimOne({ worker: 'gone', alone: true })
        await scene.workers.gone([claim], 'gone')
      })
    },
  ),

  'an operator who buries or fails a job brings it to its death': plainCase([hasDeaths, records], async (scene) => {
    const { queue } = scene
    await diesBy(scene, async (id) => {
      await scene.records.bury(queue, { ids: [id] })
    })
    await diesBy(scene, async () => {
      await scene.records.bury(queue, 'all')
    })
    await diesBy(scene, async () => {
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 9_000 })
      await scene.records.bury(queue, 'failed')
    })
    await diesBy(scene, async (id) => {
      await scene.claimOne()
      await scene.records.fail(queue, id, { delayMs: 0, last: true, reason: 'by hand' })
    })
    await diesBy(scene, (id) => scene.records.bury(queue, { ids: [id] }), { delayMs: 60_000, expiresMs: 90_000 })
  }),

  'a death without an error of its own has that of the failure before': plainCase(
    [hasDeaths, records],
    async (scene) => {
      await scene.add({ id: 'a', ...reporting })
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 9_000, error: 'first' })
      await scene.records.bury(scene.queue, 'all')
      const [{ error, reason, attempt }] = (await unreported(scene)) as [UnreportedDeath]
      assert.deepEqual({ error, reason, attempt }, { error: 'first', reason: 'buried', attempt: 2 })
    },
  ),

  'a job that waits for a signal dies when it is buried': plainCase([hasDeaths, records, steps], async (scene) => {
    await diesBy(scene, async (id) => {
      await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' })
      await scene.records.bury(scene.queue, { ids: [id] })
    })
  }),

  'what takes a job away without a burial is no death': plainCase([hasDeaths, records], async (scene) => {
    const { queue } = scene
    const waiting = (id: string, job: Partial<NewJob> = {}) => ({ id, delayMs: 500, ...reporting, ...job })
    await scene.add(
      waiting('cancelled'),
      waiting('deleted'),
      waiting('expired', { expiresMs: 1_000 }),
      waiting('cleared'),
    )
    await scene.records.cancel(queue, { ids: ['cancelled'] })
    await scene.records.delete(queue, { ids: ['deleted'] })
    await scene.advance(1_000)
    assert.equal((await scene.claim({ limit: 0 })).expired?.length, 1)
    await scene.records.clear(queue)
    assert.deepEqual(await unreported(scene), [])
  }),

  async 'the death of a job without that flag is not kept'(scene) {
    await scene.addDead('a')
    assert.deepEqual(await unreported(scene), [])
  },

  'a death that was reported is forgotten, and no other; a second report changes nothing': plainCase(
    [hasDeaths],
    async (scene) => {
      for (const id of ['a', 'b', 'c']) await scene.addDead(id, reporting)
      const [first, second] = await unreported(scene)
      const other = await scene.harness.open()
      await other.deaths!.reported(scene.queue, [second!])
      await deathsOf(scene).reported(scene.queue, [second!, { ...first!, id: 'never' }])
      await deathsOf(scene).reported(scene.queue, [])
      assert.deepEqual(await unreportedIds(scene), ['a', 'c'])
    },
  ),

  async 'a look gets the deaths of the named tasks, the oldest first, up to its limit'(scene) {
    for (let i = 0; i < 45; i += 1) await scene.addDead(`r${i}`, { task: 'resize', ...reporting })
    for (const id of ['c', 'a', 'b']) await scene.addDead(id, reporting)
    const { queue } = scene
    const ids = async (of: string[], limit: number) =>
      (await deathsOf(scene).unreported([queue], of, limit)).map(({ id }) => id)
    assert.deepEqual(await ids(['send-mail'], 2), ['c', 'a'])
    assert.deepEqual(await ids(['resize', 'send-mail'], 100), [
      ...Array.from({ length: 45 }, (_, i) => `r${i}`),
      'c',
      'a',
      'b',
    ])
    assert.deepEqual(await ids(['Send-mail', ''], 100), [])
    assert.deepEqual(await ids([], 100), [])
    await scene.openQueue({ name: 'other' })
    assert.deepEqual(await deathsOf(scene).unreported(['other'], tasks, 10), [])
  },

  async 'a look passes over the deaths that it is to leave out, of their own queue and task alone'(scene) {
    const { queue } = scene
    await scene.openQueue({ name: 'other' })
    for (let i = 0; i < 9; i += 1) await scene.addDead(`m${i}`, reporting)
    for (let i = 0; i < 3; i += 1) await scene.addDead(`r${i}`, { task: 'resize', ...reporting })
    const asked = ['resize', ...tasks]
    const look = async (limit: number, except: readonly UnreportedDeath[]) =>
      (await deathsOf(scene).unreported([queue, 'other'], asked, limit, except)).map(({ id }) => id).sort()
    const mails = await unreported(scene)
    const [first, second, , , , , , , last] = mails as [UnreportedDeath, ...UnreportedDeath[]]
    const [resized] = await deathsOf(scene).unreported([queue], ['resize'], 1)
    const left = ['m2', 'm3', 'm4', 'm5', 'm6', 'm7', 'r1', 'r2']
    assert.deepEqual(await look(99, [last!, first, resized!, second!]), left)
    assert.deepEqual(await look(99, [...mails, resized!]), ['r1', 'r2'])
    assert.equal((await look(99, [{ ...first, number: 999_999 }])).length, 12)
    assert.equal((await look(4, [first, second!])).length, 4)
    assert.deepEqual(
      (await deathsOf(scene).unreported([queue], tasks, 2, [first, mails[2]!])).map(({ id }) => id),
      ['m1', 'm3'],
    )
    await deathsOf(scene).reported(queue, [second!])
    assert.deepEqual(await look(99, [second!, resized!, ...mails.slice(2)]), ['m0', 'r1', 'r2'])
  },

  async 'the backlog of a queue has each task with deaths, how many they are, and since when'(scene) {
    const { queue } = scene
    assert.deepEqual(await backlog(scene), [])
    for (const task of ['send-mail', 'send', 'send']) {
      await scene.addDead(`${task}-${await scene.now()}`, { task, ...reporting })
      await scene.advance(50)
    }
    await scene.addDead('kept-by-nobody', { task: 'resize' })
    const ofTask = (task: string) => deathsOf(scene).unreported([queue], [task], 10)
    const [[mail], [first, second]] = [await ofTask('send-mail'), await ofTask('send')]
    assert.deepEqual(await backlog(scene), [
      { queue, task: 'send', count: 2, since: first!.diedAt },
      { queue, task: 'send-mail', count: 1, since: mail!.diedAt },
    ])
    await deathsOf(scene).reported(queue, [mail!, first!])
    assert.deepEqual(await backlog(scene), [{ queue, task: 'send', count: 1, since: second!.diedAt }])
  },

  async 'the backlog counts up to its limit, and of each queue by itself'(scene) {
    const other = 'other'
    await scene.openQueue({ name: other })
    for (const id of ['a', 'b', 'c']) await scene.addDead(id, reporting)
    assert.deepEqual(
      (await backlog(scene, [scene.queue, other], 2)).map(({ queue, count }) => [queue, count]),
      [[scene.queue, 2]],
    )
    assert.deepEqual(await backlog(scene, [other]), [])
    assert.deepEqual(await backlog(scene, []), [])
  },

  'the backlog names at most 100 tasks of a queue, each with all its deaths': plainCase(
    [hasDeaths, records],
    async (scene) => {
      const queue = 'many'
      await scene.openQueue({ name: queue, shards: 2 })
      const names = Array.from({ length: 120 }, (_, i) => `task-${i}`)
      const jobs = names.flatMap((task) => ['a', 'b'].map((id) => ({ id: `${task}.${id}`, task, ...reporting })))
      await scene.enqueue(jobs, { queue })
      await scene.records.bury(queue, 'all')

      const counts = (await backlog(scene, [queue])).map(({ count }) => count)

      assert.deepEqual(counts, Array(tasksInBacklog).fill(2))
    },
  ),

  'a death stays as it is, whatever becomes of the job': plainCase([hasDeaths, records], async (scene) => {
    const { queue } = scene
    for (const id of ['revived', 'deleted', 'replaced', 'trimmed']) await scene.addDead(id, reporting)
    const before = await unreported(scene)
    const { morgue } = scene.records
    await morgue.revive(queue, { ids: ['revived'] })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await morgue.delete(queue, { ids: ['deleted'] })
    assert.deepEqual(await scene.enqueue([{ id: 'replaced', payload: '2', ifWaiting: 'replace' }]), ['replaced'])
    await scene.openQueue({ dead: { ageMs: 1_000 } })
    await scene.advance(2_000)
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.claim({ limit: 0 })
    assert.deepEqual(await scene.records.morgue.list(queue, { by: 'id', limit: 10 }), { jobs: [] })
    assert.deepEqual(await unreported(scene), before)
  }),

  'a revived job that dies again has another death, if only a moment later': plainCase(
    [hasDeaths, records],
    async (scene) => {
      await scene.addDead('a', reporting)
      const [first] = await unreported(scene)
      await deathsOf(scene).reported(scene.queue, [first!])
      await scene.records.morgue.revive(scene.queue, 'all')
      await scene.end(await scene.claimOne(), { kind: 'bury', error: 'again' })
      const [second, ...others] = await unreported(scene)
      assert.deepEqual(others, [])
      assert.deepEqual([second!.id, second!.error], ['a', 'again'])
      assert.notEqual(second!.number, first!.number)
      await scene.records.morgue.revive(scene.queue, 'all')
      await scene.records.bury(scene.queue, 'all')
      await scene.records.morgue.delete(scene.queue, 'all')
      const both = await unreported(scene)
      assert.deepEqual(
        both.map(({ payload, reason }) => [payload, reason]),
        [
          [first!.payload, undefined],
          [first!.payload, 'buried'],
        ],
      )
    },
  ),

  'a waiting job is replaced with its flag, or without one': plainCase([hasDeaths, records], async (scene) => {
    const ifWaiting = 'replace'
    await scene.add({ id: 'a', delayMs: 1_000, ...reporting }, { id: 'b', delayMs: 1_000 })
    const answers = await scene.enqueue([
      { id: 'a', delayMs: 2_000, ifWaiting },
      { id: 'b', delayMs: 2_000, ifWaiting, ...reporting },
    ])
    assert.deepEqual(answers, ['replaced', 'replaced'])
    await scene.records.bury(scene.queue, 'all')
    assert.deepEqual(await unreportedIds(scene), ['b'])
  }),

  'a job is moved, put off and given fields without losing its flag': plainCase([hasDeaths, records], async (scene) => {
    const { queue } = scene
    await scene.add({ id: 'a', rememberMs: 5_000, fields: { n: 1 }, ...reporting })
    await scene.records.reschedule(queue, ['a'], { priority: 5, delayMs: 1_000 })
    await scene.records.setFields(queue, 'a', { n: 2 })
    await scene.records.runNow(queue, 'all')
    await scene.end(await scene.claimOne(), { kind: 'release', delayMs: 100 })
    await scene.advance(100)
    const claim = await scene.claimOne()
    await scene.extend(claim, { beat: { checkpoint: { payload: '1' } } })
    await scene.end(claim, { kind: 'retry', delayMs: 0, last: true })
    assert.deepEqual(await unreportedIds(scene), ['a'])
  }),

  async 'jobs with that flag and others come and go together'(scene) {
    const ids = Array.from({ length: 30 }, (_, i) => `${i}`)
    await scene.add(...ids.map((id, i) => (i % 3 === 0 ? { id, ...reporting } : { id })))
    const { claims } = await scene.claim({ limit: 30 })
    assert.equal(claims.length, 30)
    const keys = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    await scene.store.settle(keys.slice(0, 15).map((key) => ({ ...key, kind: 'complete' as const })))
    await scene.store.settle(keys.slice(15).map((key) => ({ ...key, kind: 'bury' as const, error: 'x' })))
    assert.deepEqual((await unreportedIds(scene)).sort(), ['15', '18', '21', '24', '27'])
    assert.equal((await scene.depth()).dead, 15)
  },

  'a tick can enqueue jobs whose deaths are kept': plainCase([hasDeaths, scheduled], async (scene) => {
    await schedulesOf(scene.store).put(hourly('a', await scene.now()), undefined)
    const schedule = await storedSchedule(scene.store, 'a')
    const tick = tickOf(schedule)
    await schedulesOf(scene.store).tick({ ...tick, jobs: tick.jobs.map((job) => ({ ...job, ...reporting })) })
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'bury', error: 'x' })
    assert.deepEqual(
      (await deathsOf(scene).unreported([scene.queue], [claim.task], 9)).map(({ id }) => id),
      [claim.id],
    )
  }),

  'the deaths of a join by a member, by its time and unsealed are kept, and that of the member': joinCase(
    [hasDeaths],
    async (scene) => {
      const within = { withinMs: 1_000, job: reporting }
      await scene.join({ sets: { all: 2 }, job: reporting, member: reporting })
      await scene.dies()
      await scene.join({ id: 'late', sets: { all: 1 }, ...within })
      await scene.join({ id: 'open', sets: { all: {} }, sealWithinMs: 1_000, job: reporting })
      await scene.advance(1_000)
      await scene.sweep()
      const found = await unreported(scene)
      assert.deepEqual(found.map(({ id, reason }) => `${id} ${reason}`).sort(), [
        'join join-member-dead',
        'late join-late',
        'open join-never-sealed',
      ])
      const [member, ...others] = await deathsOf(scene).unreported([members], tasks, 9)
      assert.deepEqual([member?.id, member?.error, others], ['join.all.0', 'broken', []])
    },
  ),

  'a member, and one among many, keeps its flag beside its places': joinCase([hasDeaths, joins], async (scene) => {
    const all = newSet('join', 'all', { size: 40, onDead: 'go-on' })
    const many = Array.from({ length: 40 }, (_, i) => memberOf('join', all, i, i === 7 || i > 37 ? reporting : {}))
    await scene.joins.enqueue(
      callsOf('graph', [
        ['mail', [newJoin({ sets: { all } })]],
        [members, many],
      ]),
    )
    const claims = await scene.members()
    await scene.store.settle(
      claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'bury' as const, error: 'x' })),
    )
    const ids = (await deathsOf(scene).unreported([members], tasks, 99)).map(({ id }) => id)
    assert.deepEqual(ids.sort(), ['join.all.38', 'join.all.39', 'join.all.7'])
    assert.equal(await scene.state(), 'ready')
  }),
})

function deathsOf({ store }: Scene): Deaths {
  assert.ok(store.deaths, 'the store keeps deaths')
  return store.deaths
}

function unreported(scene: Scene): Promise<UnreportedDeath[]> {
  return deathsOf(scene).unreported([scene.queue], tasks, 100)
}

/** By the names of the tasks. */
async function backlog(scene: Scene, queues: readonly string[] = [scene.queue], most = 10): Promise<DeathBacklog[]> {
  const found = await deathsOf(scene).backlog(queues, most)
  return found.sort((a, b) => compareBytes(a.task, b.task))
}

async function unreportedIds(scene: Scene): Promise<string[]> {
  return (await unreported(scene)).map(({ id }) => id)
}

/** A new job dies by this, and its death is kept once; then it is reported. */
async function diesBy(scene: Scene, die: (id: string) => Promise<unknown>, job: Partial<NewJob> = {}): Promise<void> {
  const id = `job-${(await scene.depth()).dead}`
  await scene.add({ id, ...reporting, ...job })
  await die(id)
  const found = await unreported(scene)
  assert.deepEqual(
    found.map((death) => death.id),
    [id],
  )
  await deathsOf(scene).reported(scene.queue, found)
  assert.deepEqual(await unreported(scene), [])
}
