/** What of a mill is shown: payloads, values that JSON has not, stores that know less, and errors. */

import { cancel, defineTask, type JobRecord } from 'millrace'
import { webHandler } from 'millrace/web'
import { expect, it } from 'vitest'
import { nextEvent } from '../next-event.js'
import { testMill } from '../test-mill.js'
import { ask, bearer, mail, sync, token, WebScene } from './web-scene.js'

const charge = defineTask({
  name: 'charge',
  queue: 'mail',
  retry: { max: 0 },
  run: async (_: undefined, ctx) => {
    await ctx.progress(0.5, 'half of the secret')
    throw new Error('card 4242 secret refused')
  },
})
const giveUp = defineTask({ name: 'give-up', queue: 'mail', run: async () => cancel('of the secret') })

it('payloads are hidden on request, and changed by `redact`', async () => {
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

it('a text is looked for in nothing that is hidden', async () => {
  const hidden = await WebScene.on('sqlite', { token, hidePayloads: true })
  const redacted = await WebScene.on('sqlite', {
    ...{ token, redact: ({ group: _, ...job }) => ({ ...job, input: 'shown' }) },
  })
  const found = async (scene: WebScene, text: string) => {
    const paths = ['queues/mail/jobs', 'queues/mail/count', 'search']
    const answers = await Promise.all(paths.map((path) => scene.get(`${path}?text=${text}`)))
    return answers.map(({ json }) => {
      const { items, count } = json as { items?: unknown[]; count?: number }
      return count ?? items?.length
    })
  }
  for (const scene of [hidden, redacted]) {
    await scene.mill.enqueue(mail, { to: 'ada@secret' }, { id: 'm-1', group: 'acme' })
    await scene.mill.enqueue(sync, { order: 'o-1' }, { id: 'o-1' })
    const cancelled = await scene.post('queues/mail/jobs/cancel', { where: { text: 'secret' }, confirm: 'mail' })
    expect(cancelled.json).toEqual({ changed: 0, more: false })
    expect(await found(scene, 'secret')).toEqual([0, 0, 0])
    expect(await found(scene, 'm-1')).toEqual([1, 1, 1])
  }

  expect([await found(hidden, 'acme'), await found(redacted, 'acme')]).toEqual([
    [1, 1, 1],
    [0, 0, 0],
  ])
  expect([await found(hidden, 'shown'), await found(redacted, 'shown')]).toEqual([
    [0, 0, 0],
    [1, 1, 2],
  ])
})

it('an error that `redact` hides is in no group of errors and in no live event', async () => {
  const scene = await WebScene.on(
    'sqlite',
    { token, redact: ({ error: _, failures: _failures, reason: _reason, progress: _progress, ...job }) => job },
    { tasks: [mail, charge, giveUp] },
  )
  const events = await fetch(`${scene.url}/api/v1/queues/mail/events`, { headers: bearer })
  const told = events.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  let stream = (await told.next()).value as string
  await scene.mill.enqueue(charge, undefined, { id: 'x' })
  await scene.mill.enqueue(giveUp, undefined, { id: 'gone' })
  await scene.run(['mail'])
  while (!stream.includes('event: job.cancelled')) stream += (await told.next()).value
  while (!stream.includes('event: job.buried')) stream += (await told.next()).value
  expect((await scene.get('queues/mail/jobs/x')).text).not.toContain('secret')
  expect((await scene.get('queues/mail/morgue/errors')).json).toMatchObject({ groups: [{ error: '', count: 1 }] })
  expect(stream).toContain('event: job.failed')
  expect(stream).toMatch(/event: job.progressed\ndata: .*"progress":{"fraction":0.5}/)
  expect(stream).not.toContain('secret')
})

it('the reasons why a job waits have no error, step or group that `redact` hides', async () => {
  const hourMs = 3_600_000
  const failing = defineTask({
    name: 'failing',
    queue: 'mail',
    retry: { max: 1, backoff: () => hourMs },
    run: () => {
      throw new Error('card 4242 secret refused')
    },
  })
  const resting = defineTask({
    name: 'resting',
    queue: 'mail',
    run: (_: undefined, ctx) => ctx.sleep('the secret rest', hourMs),
  })
  const scene = await WebScene.on(
    'sqlite',
    {
      token,
      redact: ({ error: _, failures: _failures, reason: _reason, group: _group, steps: _steps, ...job }) => job,
    },
    { tasks: [mail, failing, resting] },
  )
  await scene.mill.enqueue(failing, undefined, { id: 'failed' })
  await scene.mill.enqueue(resting, undefined, { id: 'rests' })
  await scene.run(['mail'])
  await scene.mill.queue('mail').pause({ group: 'secret-acme' })
  await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'kept', group: 'secret-acme' })
  const waitsOf = async (id: string) => {
    const { text } = await scene.get(`queues/mail/jobs/${id}`)
    expect(text).not.toContain('secret')
    const { waits } = JSON.parse(text) as { waits: { why: string; text: string }[] }
    return [waits[0]!.why, waits[0]!.text]
  }

  expect(await waitsOf('failed')).toEqual(['retry', expect.stringMatching(/^its attempt 2 is due in [\dhms ]+$/)])
  expect((await waitsOf('rests'))[0]).toBe('delayed')
  expect(await waitsOf('kept')).toEqual([
    'paused',
    'its group is paused; `millrace queues resume mail --group <group>` lets it go on',
  ])
  expect((await scene.get('queues/mail/jobs')).text).not.toContain('secret')
})

it('the running jobs of a worker are listed without the notes of their progress if there is a `redact`', async () => {
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const long = defineTask({
    name: 'long',
    queue: 'mail',
    run: async (_: undefined, ctx) => {
      await ctx.progress(0.5, 'half of the secret')
      await gate
    },
  })
  const redact = ({ progress: _, ...job }: JobRecord) => job
  const scene = await WebScene.on('sqlite', { token, redact }, { tasks: [mail, long] })
  const started = nextEvent(scene.mill, 'job.started')
  await scene.mill.enqueue(long, undefined, { id: 'w' })
  const worker = scene.mill.worker({ queues: ['mail'] })
  await worker.start()
  const path = `workers/${encodeURIComponent((await started).worker)}/jobs`
  let text = ''
  while (!text.includes('fraction')) ({ text } = await scene.get(path))
  goOn()
  await worker.stop()

  expect(JSON.parse(text)).toMatchObject({ items: [{ id: 'w', progress: { fraction: 0.5 } }] })
  expect(text).not.toContain('secret')
})

it('a filter chooses by what `redact` leaves: by no field, group and error that it hides', async () => {
  const scene = await WebScene.on(
    'sqlite',
    { token, redact: ({ error: _, failures: _failures, fields: _fields, ...job }) => ({ ...job, group: 'masked' }) },
    { tasks: [mail, charge] },
  )
  await scene.mill.enqueue(charge, undefined, { id: 'x', group: 'acme', fields: { iban: 'DE1' } })
  await scene.run(['mail'])
  const found = async (query: string) => {
    const paths = ['queues/mail/jobs', 'queues/mail/morgue', 'queues/mail/count', 'search']
    const answers = await Promise.all(paths.map((path) => scene.get(`${path}?${query}`)))
    return answers.map(({ json }) => {
      const { items, count } = json as { items?: unknown[]; count?: number }
      return count ?? items!.length
    })
  }
  const fields = encodeURIComponent('{"iban":"DE1"}')
  const error = encodeURIComponent('Error: card 1111 secret refused')
  for (const query of [`fields=${fields}`, `error=${error}`, 'group=acme'])
    expect(await found(query)).toEqual([0, 0, 0, 0])
  expect(await found('group=masked')).toEqual([1, 1, 1, 1])
  expect(await found('error=no-retries')).toEqual([1, 1, 1, 1])
  for (const where of [{ fields: { iban: 'DE1' } }, { group: 'acme' }]) {
    const revived = await scene.post('queues/mail/morgue/revive', { where, confirm: 'mail' })
    expect(revived.json).toEqual({ changed: 0, more: false })
  }
  const revived = await scene.post('queues/mail/morgue/revive', { where: { group: 'masked' }, confirm: 'mail' })
  expect(revived.json).toEqual({ changed: 1, more: false })
})

it('values that JSON lacks are shown, and text stays text', async () => {
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

it('a store without records says so, and is shown as far as possible', async () => {
  const mill = testMill({ queues: { a: {} } })
  const store = await (
    mill as unknown as { adminParts: { connect(): Promise<Record<string, unknown>> } }
  ).adminParts.connect()
  for (const facet of ['records', 'workers', 'schedules', 'throttles', 'live', 'history'])
    Object.defineProperty(store, facet, { value: undefined })
  const window = webHandler(mill)
  const get = async (path: string) => {
    const response = await window.fetch(new Request(`http://localhost/api/v1/${path}`), { address: '127.0.0.1' })
    return { status: response.status, json: (await response.json()) as Record<string, never> }
  }

  expect(await get('overview')).toMatchObject({
    status: 200,
    json: { queues: [{ name: 'a', ready: 0, spark: { enqueued: [], done: [], failed: [] } }], workers: null },
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

it('an unexpected error is answered with an id and without its stack, which goes to the logger', async () => {
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
    { logger },
  )
  await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'm' })
  const { status, text } = await scene.get('queues/mail/jobs/m')
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  const id = /[\da-f-]{36}/.exec(error.message)![0]

  expect([status, error.code]).toEqual([500, 'internal'])
  expect(text).not.toMatch(/broken hook|\.js:/)
  expect(JSON.stringify(said)).toMatch(new RegExp(`${id}.*broken hook`))
})

it('health reveals no names, and needs no token', async () => {
  const scene = await WebScene.on('sqlite')
  const { status, text } = await ask(`${scene.url}/health`)

  expect([status, text]).toEqual([200, '{"status":"ok"}'])
})

it('input and meta that a schedule gives its jobs are shown like those of a job', async () => {
  const redacted = await WebScene.on('sqlite', {
    token,
    redact: ({ meta: _, ...job }) => ({ ...job, input: { to: `… of ${job.task} by ${job.schedule?.name}` } }),
  })
  const { mill } = redacted
  await mill.schedules.set('s', { every: '1h', task: mail, input: { to: 'ada' }, enqueue: { meta: { card: '4111' } } })
  const one = (await redacted.get('schedules/s')).json
  expect(one).toMatchObject({ name: 's', input: { to: '… of send-mail by s' } })
  for (const shown of [one, (await redacted.get('schedules')).json])
    expect(JSON.stringify(shown)).not.toMatch(/ada|4111/)
})
