/** Actions on the jobs that a filter chooses, on one job's place, and jobs enqueued again, over real HTTP. */

import { describe, expect, it } from 'vitest'
import { type Answered, mail, type SceneStore, WebScene } from './web-scene.js'

const errorOf = ({ json }: Answered) => (json as { error: { code: string; message: string } }).error

async function fill(scene: WebScene, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, (_, i) => i)
  await scene.mill.enqueueMany(
    mail,
    jobs.map((i) => ({ to: `${i}` })),
    (_, i) => ({ id: `job-${i}`, ...(i % 2 === 0 && { group: 'acme' }), ...(i % 4 === 0 && { delay: '1h' }) }),
  )
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('jobs are counted, cancelled, made due, rescheduled and deleted by a filter, and no others', async () => {
    const scene = await WebScene.on(store)
    await fill(scene, 400)
    await scene.mill.queue('mail').jobs.setFields('job-7', { order: 4711 })
    const count = (query: string) => scene.get(`queues/mail/count?${query}`)
    const act = (verb: string, where: object, more = {}) =>
      scene.post(`queues/mail/jobs/${verb}`, { where, confirm: 'mail', ...more })

    expect((await count('group=acme')).json).toEqual({ count: 200, more: false })
    expect((await count('group=acme&state=scheduled')).json).toEqual({ count: 100, more: false })
    expect((await count(`fields=${encodeURIComponent('{"order":4711}')}`)).json).toEqual({ count: 1, more: false })
    expect((await act('reschedule', { group: 'acme', state: 'ready' }, { priority: 9 })).json).toEqual({
      ...{ changed: 100, more: false },
    })
    expect((await act('run-now', { group: 'acme' })).json).toEqual({ changed: 100, more: false })
    expect((await act('cancel', { fields: { order: 4711 } }, { reason: 'by hand' })).json).toMatchObject({ changed: 1 })
    expect((await act('bury', { task: 'send-mail', group: 'acme' })).json).toMatchObject({ changed: 200 })
    const dead = { where: { group: 'acme', state: 'dead' }, confirm: 'mail' }
    expect((await scene.post('queues/mail/morgue/revive', dead)).json).toEqual({ changed: 200, more: false })
    await act('bury', { group: 'acme' })
    expect((await scene.post('queues/mail/morgue/delete', dead)).json).toEqual({ changed: 200, more: false })
    expect((await act('delete', { from: '2020-01-01T00:00:00Z' })).json).toMatchObject({ changed: 199 })
    expect(await scene.mill.queue('mail').depth()).toMatchObject({ ready: 0, scheduled: 0, dead: 0 })
    expect(scene.audits.map(({ action, which, changed }) => [action, which, changed])).toContainEqual([
      ...['job.cancel', 'filter', 1],
    ])
  })

  it('an action on a filter goes on at the cursor where a call has left it', async () => {
    const scene = await WebScene.on(store)
    await fill(scene, 450)
    const steps = await scene.mill.queue('mail').filteredSteps('cancel', { group: 'acme' }, {})
    // Those that wait and that are scheduled come first.
    for (let more = true; more && !/^ready\/./.test(steps.cursor() ?? ''); ) more = (await steps.step()).more
    const left = (await scene.get('queues/mail/count?group=acme')).json as { count: number }
    const cursor = steps.cursor()
    const rest = await scene.post('queues/mail/jobs/cancel', { where: { group: 'acme' }, confirm: 'mail', cursor })

    expect(cursor).toMatch(/^ready\/./)
    expect(rest.json).toEqual({ changed: left.count, more: false })
  })

  it('a job is put elsewhere, enqueued again, and revived with another input', async () => {
    const scene = await WebScene.on(store)
    const { jobs } = scene.mill.queue('mail')
    await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'welcome' })

    expect((await scene.post('queues/mail/jobs/welcome/reschedule', { priority: 4, delay: '1h' })).json).toEqual({
      ...{ changed: 1, more: false },
    })
    expect(await jobs.get('welcome')).toMatchObject({ priority: 4, state: 'scheduled' })
    const again = await scene.post('queues/mail/jobs/welcome/enqueue-again', { input: { to: 'bob' } })
    const [{ id }] = (again.json as { jobs: [{ id: string }] }).jobs
    expect([again.status, again.json]).toMatchObject([201, { jobs: [{ outcome: 'added' }], changed: 1 }])
    expect((await scene.get(`queues/mail/jobs/${id}`)).json).toMatchObject({
      ...{ input: { to: 'bob' }, priority: 4, repeatOf: { queue: 'mail', id: 'welcome', state: 'scheduled' } },
    })
    expect((await scene.post('queues/mail/jobs/welcome/enqueue-again')).status).toBe(201)
    await jobs.bury(['welcome'])
    const revived = await scene.post('queues/mail/morgue/revive', { ids: ['welcome'], input: { to: 'eve' } })
    expect(revived.json).toEqual({ changed: 1, more: false })
    expect(await jobs.get('welcome')).toMatchObject({ state: 'ready', input: { to: 'eve' } })
  })

  it('what does not go together is refused, and nothing is changed', async () => {
    const scene = await WebScene.on(store)
    await fill(scene, 4)
    const refused = async (path: string, body: object) => {
      const answer = await scene.post(`queues/mail/${path}`, body)
      return [answer.status, errorOf(answer).code, errorOf(answer).message] as const
    }
    const filter = { where: { group: 'acme' } }
    const confirm = 'mail'
    for (const [path, body, why] of [
      ['jobs/cancel', filter, /send `confirm` with the name of the queue/],
      ['jobs/cancel', { ...filter, confirm: 'orders' }, /send `confirm`/],
      ['jobs/cancel', { where: {}, confirm }, /a filter must say something/],
      ['jobs/cancel', { ...filter, ids: ['a'], confirm }, /say which jobs/],
      ['jobs/cancel', { ids: ['job-1'], cursor: 'ready/' }, /`cursor` goes with `where`/],
      ['jobs/cancel', { ...filter, confirm, cursor: 'dead/' }, /the cursor is not one that this action gave/],
      ['jobs/cancel', { ...filter, confirm, cursor: 'ready/???' }, /cursor/],
      ['jobs/cancel', { where: { group: 'acme', colour: 1 }, confirm }, /colour/],
      ['jobs/cancel', { where: { fields: { a: {} } }, confirm }, /fields/],
      ['jobs/reschedule', { ...filter, confirm }, /say a priority, a delay or a runAt/],
      ['jobs/reschedule', { all: true, confirm, priority: 1 }, /all/],
      ['jobs/reschedule', { ids: ['job-1'], priority: 1e6 }, /priority/],
      ['jobs/job-1/reschedule', {}, /say a priority, a delay or a runAt/],
      ['morgue/revive', { ...filter, confirm, input: 1 }, /`where` takes neither `members` nor `input`/],
      ['morgue/revive', { all: true, confirm, input: 1 }, /takes one id, and no members/],
    ] as const)
      expect(await refused(path, body)).toEqual([400, 'argument-invalid', expect.stringMatching(why)])
    expect((await refused('jobs/never/enqueue-again', {})).slice(0, 2)).toEqual([404, 'job-unknown'])
    expect((await scene.get('queues/mail/count?fields=nothing')).status).toBe(400)
    expect(await scene.mill.queue('mail').depth()).toMatchObject({ ready: 3, scheduled: 1 })
  })

  it('those who may only read may count, and change nothing', async () => {
    const scene = await WebScene.on(store, { authorize: () => ({ name: 'ada', role: 'viewer' }) })
    await fill(scene, 4)
    const act = await scene.post('queues/mail/jobs/cancel', { where: { group: 'acme' }, confirm: 'mail' })

    expect((await scene.get('queues/mail/count?group=acme')).json).toEqual({ count: 2, more: false })
    expect([act.status, errorOf(act).code]).toEqual([403, 'forbidden'])
  })
})
