/** The endpoints of the API, each over real HTTP, on SQLite and on Redis. */

import { defineTask, exponential, millrace } from 'millrace'
import { webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { nextEvent } from '../next-event.js'
import { ask } from './ask.js'
import {
  type Answered,
  bearer,
  change,
  mail,
  type SceneStore,
  sceneMill,
  sceneOptions,
  served,
  sync,
  token,
  WebScene,
} from './web-scene.js'

const errorOf = ({ json }: Answered) => (json as { error: { code: string; message: string; fields?: unknown[] } }).error

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('the session and the overview describe user, store and queues', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }])
    const session = await scene.get('session')
    const overview = await scene.get('overview')
    const { queues, totals, workers } = overview.json as Record<string, never[]>

    expect(session.json).toMatchObject({
      ...{ user: 'token', role: 'operator', readOnly: false, store: scene.mill.store.text, namespace: 'millrace' },
      features: { schedules: true, throttles: true, live: true, history: true, workers: true, records: true },
    })
    expect(queues).toMatchObject([
      { name: 'mail', kind: 'plain', declared: true, ready: 2, paused: false, spark: { done: expect.any(Array) } },
      { name: 'orders', kind: 'ordered', shards: 2 },
      { name: 'crawl', limit: { hits: 0, limit: 10, windowMs: 60_000, nextMs: 0 }, maxRunning: 4 },
    ])
    expect({ totals, workers }).toMatchObject({ totals: { ready: 2 }, workers: { count: 0, slots: 0, running: 0 } })
    expect((await scene.get('stats')).json).toMatchObject({
      total: { length: 2, morgue_length: 0, lag: expect.any(Number) },
      by_worker: { mail: { length: 2 }, orders: { length: 0 } },
    })
  })

  it('a queue is paused, resumed, drained and cleared', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }])
    const paused = await scene.post('queues/mail/pause')
    const look = await scene.get('queues/mail')
    await scene.post('queues/mail/resume')
    const drained = await scene.post('queues/mail/drain')
    const refused = await scene.post('queues/mail/jobs', { task: 'send-mail', input: { to: 'eve' } })
    await scene.post('queues/mail/resume')
    const unconfirmed = await scene.post('queues/mail/clear', { confirm: 'orders' })
    const cleared = await scene.post('queues/mail/clear', { confirm: 'mail' })

    expect([paused.status, look.json]).toMatchObject([200, { paused: true, settings: { order: 'fifo' }, workers: [] }])
    expect(drained.json).toEqual({ changed: 1, more: true })
    expect([refused.status, errorOf(refused).code]).toEqual([409, 'queue-draining'])
    expect([unconfirmed.status, errorOf(unconfirmed).code]).toEqual([400, 'argument-invalid'])
    expect(cleared.json).toEqual({ changed: 2, more: false })
    expect(scene.audits.map(({ action, changed, error }) => [action, changed ?? error])).toEqual([
      ['queue.pause', 1],
      ['queue.resume', 1],
      ['queue.drain', 1],
      ['job.enqueue', 'queue-draining'],
      ['queue.resume', 1],
      ['queue.clear', 'argument-invalid'],
      ['queue.clear', 2],
    ])
  })

  it('jobs are enqueued, one or many, once for each id and for each idempotency key', async () => {
    const scene = await WebScene.on(store)
    const one = {
      task: 'send-mail',
      input: { to: 'ada' },
      id: 'welcome',
      priority: 3,
      delay: '1h',
      meta: { from: 'php' },
      fields: { order: 4711 },
    }
    const first = await scene.post('queues/mail/jobs', one)
    const again = await scene.post('queues/mail/jobs', one)
    const many = {
      jobs: [
        { task: 'send-mail', input: { to: 'bob' } },
        { task: 'send-mail', input: { to: 'eve' } },
      ],
    }
    const keyed = [1, 2].map(() => scene.post('queues/mail/jobs', many, { headers: { 'idempotency-key': 'order-7' } }))
    const [once, twice] = await Promise.all(keyed)
    const ordered = await scene.post('queues/orders/jobs', {
      jobs: [1, 2].map((score) => ({ task: 'sync-order', id: '7', input: { order: '7' }, score })),
    })
    const sale = { task: 'sync-order', id: '8', input: { order: '8' } }
    for (let i = 0; i < 2; i += 1)
      await scene.post('queues/orders/jobs', { jobs: [sale, sale] }, { headers: { 'idempotency-key': 'sale-8' } })
    expect((await scene.mill.queue('orders').jobs.get('8'))?.payloadCount).toBe(2)
    const unknown = await scene.post('queues/crawl/jobs', { task: 'crawl-page', input: 'https://example.org' })

    expect([first.status, first.json]).toEqual([201, { jobs: [{ id: 'welcome', outcome: 'added' }], changed: 1 }])
    expect(again.json).toMatchObject({ jobs: [{ outcome: 'duplicate' }], changed: 0 })
    const idsOf = (answer: Answered) => (answer.json as { jobs: { id: string }[] }).jobs.map(({ id }) => id)
    expect(idsOf(once!)).toEqual(idsOf(twice!))
    expect((await scene.mill.queue('mail').depth()).ready).toBe(2)
    expect(ordered.json).toMatchObject({ jobs: [{ outcome: 'added' }, { outcome: 'merged' }] })
    expect(unknown.status).toBe(201)
    expect((await scene.get('queues/mail/jobs/welcome')).json).toMatchObject({
      ...{ state: 'scheduled', input: { to: 'ada' }, priority: 3, meta: { from: 'php' }, fields: { order: 4711 } },
    })
  })

  it('invalid jobs are refused by name, and nothing is stored', async () => {
    const scene = await WebScene.on(store)
    const refused = await Promise.all([
      scene.post('queues/mail/jobs', { task: 'send-mail', input: 1, delay: 'soon', colour: 'red' }),
      scene.post('queues/mail/jobs', { jobs: [] }),
      scene.post('queues/mail/jobs', { jobs: [{ task: 'send-mail' }, { task: 'send-mail', runAt: 'never' }] }),
      scene.post('queues/nowhere/jobs', { task: 'send-mail' }),
      scene.post('queues/mail/jobs', { task: 'send-mail', input: 'x'.repeat(300_000) }),
      scene.post('queues/mail/jobs', { task: 'sync-order', input: {} }),
    ])

    expect(refused.map((answer) => [answer.status, errorOf(answer).code])).toEqual([
      [400, 'argument-invalid'],
      [400, 'argument-invalid'],
      [400, 'argument-invalid'],
      [404, 'queue-unknown'],
      [413, 'payload-too-large'],
      [400, 'job-invalid'],
    ])
    expect(errorOf(refused[0]!).fields).toMatchObject([{ path: 'delay' }, { path: 'colour' }])
    expect(errorOf(refused[2]!).fields).toMatchObject([{ path: 'jobs.1.runAt' }])
    expect((await scene.mill.queue('mail').depth()).ready).toBe(0)
  })

  it('jobs are listed in pages, found by task, and changed one by one', async () => {
    const scene = await WebScene.on(store)
    const ids = ['a', 'b', 'c', 'd', 'e']
    for (const id of ids) await scene.mill.enqueue(mail, { to: id }, { id, ...(id > 'b' && { delay: '1h' }) })
    const page = await scene.get('queues/mail/jobs?by=id&limit=3')
    const { cursor } = page.json as { cursor: string }
    const next = await scene.get(`queues/mail/jobs?by=id&limit=3&cursor=${encodeURIComponent(cursor)}`)
    const none = await scene.get('queues/mail/jobs?task=other')
    const answers = await Promise.all([
      scene.post('queues/mail/jobs/a/cancel', { reason: 'too late' }),
      scene.post('queues/mail/jobs/b/bury'),
      scene.post('queues/mail/jobs/c/run-now'),
      scene.post('queues/mail/jobs/d/fields', { region: 'eu', tries: 2 }),
      scene.get('queues/mail/jobs/e', { method: 'DELETE', headers: change }),
      scene.post('queues/mail/jobs/c/fail', { reason: 'by hand' }),
    ])

    expect((page.json as { items: { id: string }[] }).items.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect((next.json as { items: { id: string }[] }).items.map(({ id }) => id)).toEqual(['d', 'e'])
    expect(none.json).toEqual({ items: [] })
    expect(answers.map(({ json }) => json)).toEqual([
      ...new Array(5).fill({ changed: 1, more: false }),
      { changed: 0, more: false },
    ])
    expect((await scene.get('queues/mail/jobs/d')).json).toMatchObject({ fields: { region: 'eu', tries: 2 } })
    expect(errorOf(await scene.get('queues/mail/jobs/e')).code).toBe('job-unknown')
    expect(errorOf(await scene.post('queues/mail/jobs/e/cancel')).code).toBe('job-unknown')
    expect((await scene.get('search?id=d')).json).toMatchObject({ items: [{ queue: 'mail', id: 'd' }], more: false })
    expect((await scene.get('search?task=send-mail')).json).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ id: 'c' })]),
    })
    for (const query of ['', '?id=d&text=d', '?text=', '?colour=red', '?fields=nothing'])
      expect(errorOf(await scene.get(`search${query}`)).code).toBe('argument-invalid')
  })

  it('jobs of all queues are found by a part of what they have, however long the queues before are', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(
      mail,
      Array.from({ length: 450 }, (_, i) => ({ to: `reader-${i}` })),
      // Ids that are made may have any text in them.
      (_, i) => ({ id: `m${i}` }),
    )
    await scene.mill.enqueue(mail, { to: 'Ada 4711' }, { id: 'late' })
    await scene.mill.enqueue(mail, { to: 'eve' }, { id: 'with-4711', delay: '1h', fields: { order: 12 } })
    await scene.mill.enqueue(sync, { order: '4711' }, { id: 'o' })
    const ids = async (path: string) => {
      const { json } = await scene.get(path)
      const { items, more } = json as { items: { id: string }[]; more?: boolean }
      return [items.map(({ id }) => id).sort(), more]
    }

    expect(await ids('search?text=4711')).toEqual([['late', 'o', 'with-4711'], false])
    expect(await ids('search?text=ADA')).toEqual([['late'], false])
    expect(await ids(`search?fields=${encodeURIComponent('{"order":12}')}`)).toEqual([['with-4711'], false])
    expect(await ids('search?text=4711&task=send-mail')).toEqual([['late', 'with-4711'], false])
    const many = (await scene.get('search?text=reader')).json as { items: unknown[]; more: boolean }
    expect([many.items.length, many.more]).toEqual([200, true])
    expect(await ids('queues/mail/jobs?text=4711&state=ready')).toEqual([['late'], undefined])
  })

  it('many jobs are changed at once, and all of them only with a confirmation', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(
      mail,
      Array.from({ length: 1_200 }, () => ({ to: 'ada' })),
      (_, i) => ({ id: `m${i}` }),
    )
    const some = await scene.post('queues/mail/jobs/cancel', { ids: ['m0', 'm1', 'other'] })
    const neither = await scene.post('queues/mail/jobs/bury', {})
    const both = await scene.post('queues/mail/jobs/bury', { ids: ['m2'], all: true, confirm: 'mail' })
    const unconfirmed = await scene.post('queues/mail/jobs/delete', { all: true })
    const buried = await scene.post('queues/mail/jobs/bury', { all: true, confirm: 'mail' })

    expect(some.json).toEqual({ changed: 2, more: false })
    expect([neither, both, unconfirmed].map(({ status }) => status)).toEqual([400, 400, 400])
    expect(buried.json).toEqual({ changed: 1_198, more: false })
    expect(scene.audits.at(-1)).toMatchObject({ action: 'job.bury', which: 'all', changed: 1_198 })
  })

  it('a delete that leaves a running job is audited as taken in part, with its number', async () => {
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const slow = defineTask({ name: 'slow', queue: 'mail', run: () => ended })
    const scene = await WebScene.on(store, { token }, { tasks: [slow, sync], schedules: {} })
    const begun = nextEvent(scene.mill, 'job.started')
    await scene.mill.enqueue(slow, undefined, { id: 'runs' })
    const worker = scene.mill.worker({ queues: ['mail'], concurrency: 1 })
    await worker.start()
    await begun
    await scene.mill.enqueue(slow, undefined, { id: 'waits', delay: '1h' })
    const both = await scene.post('queues/mail/jobs/delete', { ids: ['runs', 'waits'] })
    const one = await scene.post('queues/mail/jobs/delete', { ids: ['runs'] })
    end()
    await worker.stop()

    expect(both).toMatchObject({ status: 409, json: { error: { code: 'job-running', changed: 1 } } })
    expect(one).toMatchObject({ status: 409, json: { error: { code: 'job-running', changed: 0 } } })
    expect(scene.audits).toMatchObject([
      { action: 'job.delete', changed: 1, error: 'job-running' },
      { action: 'job.delete', changed: 0, error: 'job-running' },
    ])
  })

  it('the morgue is grouped by error, and revived', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(mail, [{ to: 'nobody' }, { to: 'nobody' }, { to: 'ada' }], (_, i) => ({ id: `m${i}` }))
    await scene.run()
    await scene.mill.enqueue(mail, { to: 'eve' }, { id: 'm3' })
    await scene.mill.queue('mail').jobs.bury(['m3'])
    const errors = await scene.get('queues/mail/morgue/errors')
    const listed = await scene.get('queues/mail/morgue?by=id')
    const one = await scene.get('queues/mail/morgue/m0')
    const revived = await scene.post('queues/mail/morgue/revive', { ids: ['m0'] })
    const unconfirmed = await scene.post('queues/mail/morgue/delete', { all: true })
    const deleted = await scene.post('queues/mail/morgue/delete', { all: true, confirm: 'mail' })

    expect(errors.json).toMatchObject({
      ...{ scanned: 3, more: false },
      groups: [
        { error: 'Error: no such address', task: 'send-mail', count: 2, ids: expect.arrayContaining(['m0', 'm1']) },
        { error: 'buried', count: 1 },
      ],
    })
    const { groups } = errors.json as { groups: { hours: number[]; firstAt: string; lastAt: string }[] }
    const deaths = groups.map(({ hours }) => [hours.length, hours.reduce((sum, count) => sum + count, 0)])
    expect(deaths).toEqual([
      [24, 2],
      [24, 1],
    ])
    expect(groups.every(({ firstAt, lastAt }) => firstAt <= lastAt)).toBe(true)
    expect((listed.json as { items: { id: string }[] }).items.map(({ id }) => id)).toEqual(['m0', 'm1', 'm3'])
    expect(one.json).toMatchObject({ state: 'dead', reason: 'no-retries' })
    expect([revived.json, unconfirmed.status, deleted.json]).toEqual([
      { changed: 1, more: false },
      400,
      { changed: 2, more: false },
    ])
    expect(errorOf(await scene.get('queues/mail/morgue/m0')).code).toBe('job-unknown')
  })

  it('an ordered queue is resharded, and moved', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueueMany(sync, [{ order: '1' }, { order: '2' }])
    const reshard = await scene.post('queues/orders/reshard', { shards: 3 })
    const look = await scene.get('queues/orders')
    const plain = await scene.post('queues/mail/reshard', { shards: 3 })
    const nowhere = await scene.post('queues/orders/move', { to: 'nowhere' })
    const toPlain = await scene.post('queues/orders/move', { to: 'mail' })

    expect(reshard.json).toMatchObject({ more: false })
    expect(look.json).toMatchObject({
      shards: 3,
      ready: 2,
      shardLagsMs: [expect.any(Number), expect.any(Number), expect.any(Number)],
    })
    expect([plain, nowhere, toPlain].map((answer) => [answer.status, errorOf(answer).code])).toEqual([
      [400, 'argument-invalid'],
      [404, 'queue-unknown'],
      [400, 'argument-invalid'],
    ])
  })

  it('throttles are shown and changed', async () => {
    const scene = await WebScene.on(store)
    const changed = await scene.get('queues/crawl/throttle', {
      method: 'PUT',
      headers: change,
      body: { rules: [{ limit: 5, window: '1m' }] },
    })
    const told = await scene.get('queues/crawl/throttle')
    const wrong = await scene.get('queues/crawl/throttle', {
      method: 'PUT',
      headers: change,
      body: { rules: { limit: 0, window: 'x' } },
    })

    expect(changed.json).toEqual({ changed: 1, more: false })
    expect(told.json).toMatchObject({ rules: [{ limit: 5, windowMs: 60_000 }], hits: [0], queues: ['crawl'] })
    expect((await scene.get('throttles')).json).toMatchObject({
      items: [{ scope: 'crawl', by: 'queue', queues: ['crawl'] }],
    })
    expect((await scene.get('queues/mail/throttle')).json).toBeNull()
    expect([wrong.status, errorOf(wrong).fields]).toMatchObject([
      400,
      [{ path: 'rules.limit' }, { path: 'rules.window' }],
    ])
  })

  it('the groups with ready jobs are listed, the one that waits longest for its throttle first', async () => {
    const fetchPage = defineTask({ name: 'fetch-page', queue: 'sites', run: () => {} })
    const throttle = { limit: 1, window: '1h', by: 'group' } as const
    const queues = { ...sceneOptions.queues, sites: { throttle } }
    const scene = await WebScene.on(store, { token }, { queues, tasks: [mail, sync, fetchPage] })
    const enqueue = (group: string) => scene.mill.enqueue(fetchPage, undefined, { group })
    await enqueue('slow.example')
    const inner = await scene.mill.adminParts.connect()
    await inner.claim([{ queue: 'sites', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
    for (const group of ['new.example', 'new.example', 'slow.example']) await enqueue(group)
    const groups = async (queue: string) => (await scene.get(`queues/${queue}/throttle/groups`)).json

    const rules = [{ limit: 1, windowMs: 3_600_000 }]
    expect(await groups('sites')).toMatchObject({
      items: [
        { group: 'slow.example', ready: 1, forMs: expect.any(Number), rules, hits: [1] },
        { group: 'new.example', ready: 2, forMs: 0, rules, hits: [0] },
      ],
      more: false,
    })
    expect(await groups('crawl')).toEqual({ items: [], more: false })
    expect((await scene.get('queues/none/throttle/groups')).status).toBe(404)
  })

  it('a group gets a rate of its own, and loses it with "default"', async () => {
    const throttle = { limit: 3, window: '1m', by: 'group' } as const
    const scene = await WebScene.on(store, undefined, {
      ...sceneOptions,
      queues: { ...sceneOptions.queues, sites: { throttle } },
    })
    const put = (body: object) => scene.get('queues/sites/throttle', { method: 'PUT', headers: change, body })
    const rateOf = async (name: string) => (await scene.get(`queues/sites/throttle?group=${name}`)).json

    const set = await put({ rules: { limit: 1, window: '10s' }, group: 'slow.example' })
    expect(set.json).toEqual({ changed: 1, more: false })
    expect(await rateOf('slow.example')).toMatchObject({ rules: [{ limit: 1, windowMs: 10_000 }], isOwn: true })
    expect(await rateOf('other.example')).toMatchObject({ rules: [{ limit: 3, windowMs: 60_000 }] })

    await put({ rules: 'default', group: 'slow.example' })
    expect(await rateOf('slow.example')).toMatchObject({ rules: [{ limit: 3, windowMs: 60_000 }] })
    const ofAll = await put({ rules: 'default' })
    expect([ofAll.status, errorOf(ofAll).code]).toEqual([400, 'argument-invalid'])
  })

  it('schedules are listed, run, paused and resumed', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.schedules.reconcile()
    const listed = await scene.get('schedules')
    const next = await scene.get('schedules/nightly/next?count=2')
    const ran = await scene.post('schedules/nightly/run')
    const jobs = await scene.get('schedules/nightly/jobs')
    const paused = await scene.post('schedules/nightly/pause')
    const standing = await scene.get('schedules/nightly')
    const cleared = await scene.post('schedules/nightly/clear')
    const resumed = await scene.post('schedules/nightly/resume')
    const unknown = await scene.post('schedules/none/run')

    expect(listed.json).toMatchObject({
      items: [
        { name: 'nightly', cron: '0 3 * * *', isDeclared: true, input: { to: 'all' }, nextDay: expect.any(Array) },
      ],
    })
    expect((next.json as { items: string[] }).items).toEqual([
      expect.stringMatching(/T03:00:00/),
      expect.stringMatching(/T03:00:00/),
    ])
    expect(ran.json).toMatchObject({ changed: 1, job: { queue: 'mail', outcome: 'added' } })
    expect(jobs.json).toMatchObject({ items: [{ state: 'ready', schedule: { name: 'nightly' } }], more: false })
    expect([paused.json, cleared.json]).toMatchObject([{ changed: 1, waiting: 1 }, { changed: 1 }])
    expect([paused.status, standing.json, resumed.status]).toMatchObject([200, { isPaused: true }, 200])
    expect([unknown.status, errorOf(unknown).code]).toEqual([404, 'not-found'])
  })

  it('workers are shown with their host and process', async () => {
    const scene = await WebScene.on(store)
    const worker = scene.mill.worker({ queues: ['mail'], concurrency: 3 })
    await worker.start()
    const { items } = (await scene.get('workers')).json as { items: { id: string }[] }
    const unknown = await scene.post('workers/nobody/stop')

    expect(items).toMatchObject([{ pid: process.pid, process: 'alive', slots: 3, queues: ['mail'] }])
    expect([unknown.status, errorOf(unknown).code]).toEqual([404, 'not-found'])
    await worker.stop()
  })

  it('an undeclared queue is shown and administered as far as the store can', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'm1' })
    const { mill: smaller } = await otherMill(scene)
    const { json } = await smaller('overview')
    const rows = (json as { queues: { name: string; declared: boolean; ready: number }[] }).queues

    expect(rows.map(({ name, declared }) => [name, declared])).toEqual(expect.arrayContaining([['mail', false]]))
    expect(rows.find(({ name }) => name === 'mail')).toMatchObject({ ready: 1 })
    expect((await smaller('queues/mail/jobs/m1')).json).toMatchObject({ id: 'm1', task: 'send-mail' })
    expect((await smaller('queues/mail/jobs/cancel', { ids: ['m1'] })).json).toEqual({ changed: 1, more: false })
    expect((await smaller('queues/mail/pause', {})).status).toBe(200)
    expect((await scene.mill.queue('mail').depth()).paused).toBe(true)
    expect((await smaller('queues/mail/pause', { group: 'a' })).status).toBe(200)
    expect(await smaller('holds')).toMatchObject({ status: 200, json: { items: [{ queue: 'mail', total: 1 }] } })
    expect(errorOf(await smaller('queues/nowhere/pause', {})).code).toBe('queue-unknown')
    expect(errorOf(await smaller('queues/nowhere')).code).toBe('queue-unknown')
  })
})

/** Another mill on the same store, which declares one other queue only. */
async function otherMill(scene: WebScene) {
  const mill = millrace({ store: scene.mill.store.text, queues: { other: {} } })
  const window = webHandler(mill, { token })
  onTestFinished(() => mill.close())
  return {
    mill: async (path: string, body?: unknown) => {
      const response = await window.fetch(
        new Request(`http://localhost/api/v1/${path}`, {
          headers: { ...bearer, ...(body === undefined ? {} : { ...change, 'content-type': 'application/json' }) },
          ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
        }),
      )
      return { status: response.status, headers: {}, text: '', json: (await response.json()) as never }
    },
  }
}

const inQuery = (id: string) => `id=${encodeURIComponent(id)}`

/** A parent that has enqueued and waits for its next attempt, as the window tells of it. */
async function failedParent(store: SceneStore) {
  const child = defineTask({ name: 'child', queue: 'crawl', run: async () => {} })
  const parent = defineTask({
    name: 'parent',
    queue: 'mail',
    retry: { max: 3, backoff: exponential({ base: '10m', max: '15m' }) },
    run: async (_: undefined, ctx) => {
      await ctx.enqueue(child, undefined, { delay: '1h' })
      await ctx.enqueue(child, undefined, { id: 'named', delay: '1h' })
      throw new Error('not yet')
    },
  })
  const mill = await sceneMill(store, { tasks: [mail, sync, child, parent] })
  const window = webHandler(mill, { token })
  onTestFinished(() => window.close())
  const url = await served(window.node)
  await mill.enqueue(parent, undefined, { id: 'p' })
  const worker = mill.worker({ queues: ['mail'] })
  await worker.start()
  await expect.poll(async () => (await mill.queue('mail').jobs.get('p'))?.attempt, { timeout: 10_000 }).toBe(2)
  await worker.stop()
  const get = async (path: string) =>
    (await ask(`${url}/api/v1/${path}`, { headers: bearer })).json as Record<string, never>
  return { mill, get }
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('an id that does not fit into a path is named by the query, in every address of a job', async () => {
    const scene = await WebScene.on(store)
    const ids = ['.', '..', '../mail', '~', 'a//b', '\u202eexe']
    for (const id of ids) await scene.mill.enqueue(mail, { to: id }, { id, delay: '1h' })
    for (const id of ids)
      expect((await scene.get(`queues/mail/jobs/~?${inQuery(id)}`)).json).toMatchObject({ id, state: 'scheduled' })
    const answers = [
      await scene.post(`queues/mail/jobs/~/run-now?${inQuery('.')}`),
      await scene.post(`queues/mail/jobs/~/fields?${inQuery('..')}`, { region: 'eu' }),
      await scene.post(`queues/mail/jobs/~/cancel?${inQuery('../mail')}`),
      await scene.post(`queues/mail/jobs/~/bury?${inQuery('..')}`),
      await scene.get(`queues/mail/jobs/~?${inQuery('a//b')}`, { method: 'DELETE', headers: change }),
    ]

    expect(answers.map(({ json }) => json)).toEqual(new Array(5).fill({ changed: 1, more: false }))
    expect((await scene.get(`queues/mail/morgue/~?${inQuery('..')}`)).json).toMatchObject({ id: '..', state: 'dead' })
    expect((await scene.get('queues/mail/jobs/~')).json).toMatchObject({ id: '~' })
    expect((await scene.get('queues/mail/jobs/a?id=b')).status).toBe(400)
    expect(scene.audits.map(({ on }) => on['id'])).toEqual(['.', '..', '../mail', '..', 'a//b'])
  })

  it('a job shows its parent, and a parent the children it has recorded, with their states', async () => {
    const { mill, get } = await failedParent(store)
    const parent = await get('queues/mail/jobs/p')
    const [made] = (parent as { children?: { id: string }[] }).children!
    const child = await get(`queues/crawl/jobs/${made!.id}`)
    await mill.queue('mail').jobs.delete(['p'])
    const orphan = await get('queues/crawl/jobs/named')

    expect(parent).toMatchObject({
      childCalls: 2,
      children: [{ queue: 'crawl', id: made!.id, task: 'child', state: 'scheduled' }],
    })
    expect(child).toMatchObject({ parent: { queue: 'mail', id: 'p', task: 'parent', state: 'scheduled' } })
    expect(orphan['parent']).toEqual({ queue: 'mail', id: 'p', task: 'parent' })
    expect(orphan).not.toHaveProperty('children')
  })

  it('a job shows its retries, their delays, and the length of its lease', async () => {
    const { get } = await failedParent(store)
    const { retry, leaseMs } = await get('queues/mail/jobs/p')

    expect({ retry, leaseMs }).toEqual({
      retry: {
        max: 3,
        delays: [
          // After its second failure and its third; the fourth is the last.
          { leastMs: 0, mostMs: 900_000 },
          { leastMs: 0, mostMs: 900_000 },
        ],
      },
      leaseMs: 30_000,
    })
  })
})
