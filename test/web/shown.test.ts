/** What of a mill is shown: payloads, values that JSON has not, stores that know less, and errors. */

import { webHandler } from 'millrace/web'
import { expect, it } from 'vitest'
import { testMill } from '../test-mill.js'
import { ask, change, mail, sync, token, WebScene } from './web-scene.js'

it('payloads are hidden where that is said, and changed by `redact`', async () => {
  const hidden = await WebScene.on('sqlite', { token, hidePayloads: true })
  const redacted = await WebScene.on('sqlite', { token, redact: (job) => ({ ...job, input: { to: '…' } }) })
  for (const { mill } of [hidden, redacted]) {
    await mill.enqueue(mail, { to: 'ada@secret' }, { id: 'm', meta: { card: '4242-secret' } })
    await mill.enqueue(sync, { order: 'o-secret' }, { id: 'o' })
    await mill.schedules.set('mine', { every: '1h', task: mail, input: { to: 'eve@secret' } })
  }
  for (const path of [
    'queues/mail/jobs',
    'queues/mail/jobs/m',
    'queues/orders/jobs/o',
    'search?id=m',
    'schedules',
    'schedules/mine',
  ])
    expect((await hidden.get(path)).text).not.toContain('secret')

  expect((await hidden.get('queues/mail/jobs/m')).json).toMatchObject({ id: 'm', payloadsHidden: true })
  expect((await redacted.get('queues/mail/jobs/m')).json).toMatchObject({ input: { to: '…' } })
})

it('values that JSON has not are shown, and text stays text', async () => {
  const scene = await WebScene.on('sqlite')
  const input = {
    to: '<script>alert(1)</script>',
    big: 12n,
    at: new Date(0),
    tags: new Set(['a']),
    bytes: new Uint8Array([1]),
  }
  await scene.mill.enqueue(mail, input, { id: 'm' })
  const { headers, json } = await scene.get('queues/mail/jobs/m')

  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  expect(json).toMatchObject({
    input: { to: '<script>alert(1)</script>', big: '12', at: '1970-01-01T00:00:00.000Z', tags: ['a'], bytes: 'AQ==' },
  })
})

it('a store without records says so, and is shown as far as it knows', async () => {
  const mill = testMill({ queues: { a: {} } })
  const store = await (
    mill as unknown as { adminParts: { connect(): Promise<Record<string, unknown>> } }
  ).adminParts.connect()
  for (const facet of ['records', 'workers', 'schedules', 'throttles', 'live'])
    Object.defineProperty(store, facet, { value: undefined })
  const window = webHandler(mill)
  const get = async (path: string) => {
    const response = await window.fetch(new Request(`http://localhost/api/v1/${path}`))
    return { status: response.status, json: (await response.json()) as Record<string, never> }
  }

  expect(await get('overview')).toMatchObject({
    status: 200,
    json: { queues: [{ name: 'a', ready: 0 }], workers: null },
  })
  expect(await get('session')).toMatchObject({ json: { features: { records: false, workers: false, history: false } } })
  for (const path of [
    'queues/a/jobs',
    'queues/a/morgue',
    'workers',
    'schedules',
    'queues/a/history',
    'queues/a/events',
  ])
    expect(await get(path)).toMatchObject({ status: 422, json: { error: { code: 'unsupported-by-store' } } })
})

it('an error that nobody foresaw is told by an id, without its stack, which the logger has', async () => {
  const said: unknown[] = []
  const logger = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (message: string, fields: unknown) => void said.push([message, fields]),
  }
  const scene = await WebScene.on(
    'sqlite',
    {
      token,
      redact: () => {
        throw new TypeError('broken hook')
      },
    },
    logger,
  )
  await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'm' })
  const { status, text } = await scene.get('queues/mail/jobs/m')
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  const id = /[\da-f-]{36}/.exec(error.message)![0]

  expect([status, error.code]).toEqual([500, 'internal'])
  expect(text).not.toMatch(/broken hook|\.js:/)
  expect(JSON.stringify(said)).toMatch(new RegExp(`${id}.*broken hook`))
})

it('health names nothing, and needs no token', async () => {
  const scene = await WebScene.on('sqlite')
  const { status, text } = await ask(`${scene.url}/health`)

  expect([status, text]).toEqual([200, '{"status":"ok"}'])
})

it('the history of a queue is told by its points, and sparklines by the minute, where the store keeps one', async () => {
  const mill = testMill({ queues: { a: {} } })
  const store = await (mill as unknown as { adminParts: { connect(): Promise<object> } }).adminParts.connect()
  const counts = { enqueued: 3, started: 2, completed: 2, failed: 1, dead: 0, crashed: 0, cancelled: 0, runMs: 70 }
  const asked: unknown[] = []
  Object.defineProperty(store, 'history', {
    value: {
      read: async (queues: string[], span: { fromAt: number; toAt: number }) => {
        asked.push(span)
        return queues.map(() => [{ at: span.toAt - 120_000, ...counts, gauges: { lagMs: 5, waiting: 4, running: 1 } }])
      },
    },
  })
  const window = webHandler(mill)
  const get = async (path: string) =>
    (await window.fetch(new Request(`http://localhost/api/v1/${path}`))).json() as Promise<never>
  const span = 'from=2026-11-25T10:00:00Z&to=2026-11-25T12:00:00Z'

  expect(await get(`queues/a/history?${span}&step=hour`)).toEqual({
    step: 'hour',
    points: [{ at: '2026-11-25T11:58:00.000Z', ...counts, lagMs: 5, depth: 4, running: 1 }],
  })
  expect(asked).toEqual([
    { step: 'hour', fromAt: Date.parse('2026-11-25T10:00Z'), toAt: Date.parse('2026-11-25T12:00Z') },
  ])
  expect(await get('overview?minutes=4')).toMatchObject({
    queues: [{ spark: { enqueued: [0, 0, 3, 0], done: [0, 0, 2, 0], failed: [0, 0, 1, 0] } }],
  })
  expect(await get('queues/a/history?from=2026-11-25T12:00:00Z&to=2026-11-25T10:00:00Z')).toMatchObject({
    error: { code: 'argument-invalid' },
  })
  expect(await get('queues/a/history?from=2020-11-25T12:00:00Z')).toMatchObject({ error: { code: 'argument-invalid' } })
  expect(await get('session')).toMatchObject({ features: { history: true } })
})

it('a worker is told to stop or to recycle, where the store passes orders on', async () => {
  const mill = testMill({ queues: { a: {} }, tasks: [] })
  const store = await (
    mill as unknown as { adminParts: { connect(): Promise<{ workers: object }> } }
  ).adminParts.connect()
  const orders: string[] = []
  const worker = {
    id: 'host/1-2-3',
    host: 'elsewhere',
    boot: 'b',
    pidns: 'n',
    pid: 1,
    ticks: 1,
    queues: ['a'],
    concurrency: 1,
    running: 0,
    startedAt: 0,
    seenAt: 0,
  }
  Object.assign(store.workers, {
    list: async () => [worker],
    order: async (id: string, how: string) => orders.push(`${how} ${id}`) > 0,
  })
  const window = webHandler(mill)
  const order = (path: string) =>
    window.fetch(new Request(`http://localhost/api/v1/workers/${path}`, { method: 'POST', headers: change }))

  expect(await (await order('host%2F1-2-3/recycle')).json()).toEqual({ changed: 1, more: false })
  expect((await order('other/stop')).status).toBe(404)
  expect(orders).toEqual(['recycle host/1-2-3'])
})
