/** The graph of joins, as the API answers it, on SQLite and on Redis. */

import { defineTask, many } from 'millrace'
import { describe, expect, it } from 'vitest'
import { type SceneStore, WebScene } from './web-scene.js'

interface Graph {
  readonly jobs: { queue: string; id: string; task?: string; state?: string; hasExpired?: true }[]
  readonly sets: {
    join: number
    name: string
    members: number[]
    isCounted?: true
    task?: string
    size?: number
    done: number
    counts: Record<string, number>
  }[]
  readonly more: boolean
}

const rates = defineTask({ name: 'rates', queue: 'mail', run: async (_: string) => {} })
const sum = defineTask({
  name: 'sum',
  queue: 'sums',
  retry: { max: 0 },
  run: async (n: number) => {
    if (n < 0) throw new Error('negative')
  },
})
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rate: rates, sales: many(sum, { onDead: 'go-on' }) },
  run: async (_: string) => {},
})
const year = defineTask({
  name: 'year',
  queue: 'reports',
  joins: { first: report, second: report },
  run: async () => {},
})
const strict = defineTask({ name: 'strict', queue: 'reports', joins: { sales: many(sum) }, run: async () => {} })
const given = { tasks: [rates, sum, report, strict, year], schedules: {}, queues: { mail: {}, sums: {}, reports: {} } }

const many250 = Array.from({ length: 250 }, (_, i) => i)

describe.each(['sqlite', 'redis'] as const)('the graph of a join on %s', (store: SceneStore) => {
  const on = () => WebScene.on(store, undefined, given)
  const graphOf = async (scene: WebScene, queue: string, id: string) =>
    (await scene.get(`queues/${queue}/jobs/${encodeURIComponent(id)}/graph`)).json as Graph
  const stateOf = ({ jobs }: Graph) => jobs.map(({ task, state }) => `${task} ${state}`).sort()

  it('is whole again once a dead join is revived with its members', async () => {
    const scene = await on()
    const job = await scene.mill.flow((f) =>
      f.job(strict, undefined, { id: 'strict', after: { sales: f.jobs(sum, [1, -2, -3]) } }),
    )
    await scene.run(['sums'])
    expect(await job.status()).toBe('dead')
    const wrong = await scene.post('queues/reports/morgue/revive', { ids: ['strict'], members: 'all' })
    const refused = await scene.post('queues/reports/morgue/delete', { ids: ['strict'], members: true })
    const revived = await scene.post('queues/reports/morgue/revive', { ids: ['strict'], members: true })

    expect([wrong.status, refused.status]).toEqual([400, 400])
    expect(revived.json).toEqual({ changed: 3, more: false })
    expect(stateOf(await graphOf(scene, 'reports', 'strict'))).toEqual([
      'strict waiting',
      'sum completed',
      'sum ready',
      'sum ready',
    ])
  })

  it('has what it waits for and who waits for it, from whichever job it is asked for', async () => {
    const scene = await on()
    const { all, sales } = await scene.mill.flow((f) => {
      const rate = f.job(rates, 'today')
      const some = f.jobs(sum, [1, 2])
      const first = f.job(report, 'May', { after: { rate, sales: some } })
      const second = f.job(report, 'June', { after: { rate, sales: f.jobs(sum, [3]) } })
      return { sales: some, all: f.job(year, undefined, { after: { first, second } }) }
    })
    const fromTop = await graphOf(scene, 'reports', all.id)
    const fromMember = await graphOf(scene, 'sums', sales[1]!.id)

    expect(fromTop).toMatchObject({
      more: false,
      jobs: [{ queue: 'reports', id: all.id, task: 'year', state: 'waiting' }, ...Array(6).fill({})],
    })
    expect(fromMember.jobs[0]).toMatchObject({ id: sales[1]!.id, state: 'ready' })
    expect(stateOf(fromMember)).toEqual(stateOf(fromTop))
    expect(
      fromTop.sets.map(({ join, name, members, task }) => [fromTop.jobs[join]!.task, name, members.length, task]),
    ).toEqual([
      ['year', 'first', 1, 'report'],
      ['year', 'second', 1, 'report'],
      ['report', 'rate', 1, 'rates'],
      ['report', 'sales', 2, 'sum'],
      ['report', 'rate', 1, 'rates'],
      ['report', 'sales', 1, 'sum'],
    ])
    expect(fromTop.sets[2]!.members).toEqual(fromTop.sets[4]!.members)
  })

  it('says of members of which nothing is kept how they have ended', async () => {
    const scene = await on()
    const job = await scene.mill.enqueue(report, 'May', { after: { rate: '', sales: [1, 2, -1] } })
    await scene.run(['sums'])
    const { sums } = { sums: scene.mill.queue('sums') }
    const before = await graphOf(scene, 'reports', job.id)
    await sums.morgue.delete('all')

    expect(stateOf(before)).toEqual(['rates ready', 'report waiting', 'sum completed', 'sum completed', 'sum dead'])
    expect(stateOf(await graphOf(scene, 'reports', job.id))).toEqual(stateOf(before))
    expect(before.sets[1]).toMatchObject({ name: 'sales', size: 3, done: 3, counts: { completed: 2, dead: 1 } })
  })

  it('gives a set of more than 200 by its counts, and of these members only the one that was asked for', async () => {
    const scene = await on()
    const job = await scene.mill.enqueue(report, 'May', { after: { rate: '', sales: many250 } })
    const graph = await graphOf(scene, 'reports', job.id)
    const member = graph.sets[1] as unknown as { queue: string; ids: string }
    const ofMember = await graphOf(scene, 'sums', `${member.ids}.249`)

    expect(graph).toMatchObject({ more: false, jobs: [{ id: job.id }, { task: 'rates' }] })
    expect(graph.sets[1]).toMatchObject({ isCounted: true, task: 'sum', size: 250, members: [] })
    expect(ofMember.jobs.map(({ id }) => id)).toEqual([`${member.ids}.249`, job.id, graph.jobs[1]!.id])
    expect(ofMember.sets.find(({ name }) => name === 'sales')).toMatchObject({ isCounted: true, members: [0] })
  })

  it('counts the sets for which 200 jobs leave no room', async () => {
    const scene = await on()
    const [rate] = await scene.mill.flow((f) => {
      const one = f.job(rates, 'today')
      for (let i = 0; i < 60; i += 1) f.job(report, `${i}`, { after: { rate: one, sales: f.jobs(sum, [1, 2, 3, 4]) } })
      return [one]
    })
    const graph = await graphOf(scene, 'mail', rate!.id)

    expect(graph.more).toBe(false)
    expect(graph.jobs.length).toBeLessThanOrEqual(200)
    expect(graph.sets.filter(({ isCounted }) => isCounted).map(({ size }) => size)).toEqual(Array(26).fill(4))
  })

  it('has at most 200 jobs, those nearest to the one that was asked for, and says that there are more', async () => {
    const scene = await on()
    const [rate] = await scene.mill.flow((f) => {
      const [one, sales] = [f.job(rates, 'today'), f.jobs(sum, [])]
      for (let i = 0; i < 60; i += 1) {
        const first = f.job(report, `first ${i}`, { after: { rate: one, sales } })
        const second = f.job(report, `second ${i}`, { after: { rate: f.job(rates, `${i}`), sales } })
        f.job(year, undefined, { after: { first, second } })
      }
      return [one]
    })
    const graph = await graphOf(scene, 'mail', rate!.id)

    expect(graph).toMatchObject({ more: true, jobs: Array(200).fill({}) })
    expect(graph.jobs.filter(({ task }) => task === 'year')).toHaveLength(60)
  })

  it('is one job for one that waits for nobody, and refused for a job of which nothing is kept', async () => {
    const scene = await on()
    const { id } = await scene.mill.enqueue(rates, '')

    expect(await graphOf(scene, 'mail', id)).toEqual({
      ...{ jobs: [{ queue: 'mail', id, task: 'rates', state: 'ready' }], sets: [], more: false },
    })
    expect((await scene.get('queues/mail/jobs/nobody/graph')).status).toBe(404)
    expect((await scene.get('queues/none/jobs/nobody/graph')).status).toBe(404)
  })
})
