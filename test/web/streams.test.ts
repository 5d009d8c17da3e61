/** Streams: what changes is told as it happens, by one reader of the store for all who watch, at the pace of each. */

import { once } from 'node:events'
import { request, type ServerResponse } from 'node:http'
import { defineTask, type JobRecord } from 'millrace'
import type { Records } from 'millrace/store'
import { webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StoreRefusedError, StoreUnavailableError } from '#src/core/errors.js'
import { EventStream, type Source, Topic } from '#src/web/topic.js'
import { testMill } from '../test-mill.js'
import { bearer, mail, type SceneStore, served, token, WebScene } from './web-scene.js'

interface Told {
  readonly event: string
  readonly data: Record<string, unknown>
}

/** A client that reads events one after the other. */
async function watch(url: string): Promise<{ status: number; next(event?: string): Promise<Told>; leave(): void }> {
  const asked = request(url, { headers: bearer, agent: false })
  asked.on('error', () => {})
  asked.end()
  const [response] = await once(asked, 'response')
  response.setEncoding('utf8')
  onTestFinished(() => void asked.destroy())
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<string>
  let text = ''
  const next = async (wanted?: string): Promise<Told> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end >= 0) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
        text = text.slice(end + 2)
        if (event !== undefined && (wanted === undefined || event === wanted)) return { event, data: JSON.parse(data!) }
        continue
      }
      const { value, done } = await chunks.next()
      if (done) throw new Error('the stream has ended')
      text += value
    }
  }
  return { status: response.statusCode!, next, leave: () => void asked.destroy() }
}

const rowOf = ({ data }: Told, queue: string) =>
  (data as { queues: { name: string; ready: number }[] }).queues.find(({ name }) => name === queue)!

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('the overview is sent at once, and when it changes', async () => {
    const scene = await WebScene.on(store)
    const client = await watch(`${scene.url}/api/v1/events`)
    const first = await client.next()
    await scene.mill.enqueue(mail, { to: 'ada' })
    const second = await client.next('overview')

    expect([first.event, rowOf(first, 'mail').ready, rowOf(second, 'mail').ready]).toEqual(['overview', 0, 1])
  })

  it('a queue sends the events of its jobs, after `ready`', async () => {
    const scene = await WebScene.on(store)
    const client = await watch(`${scene.url}/api/v1/queues/mail/events`)
    expect(await client.next()).toEqual({ event: 'ready', data: { queue: 'mail' } })
    const worker = scene.mill.worker({ queues: ['mail'] })
    await worker.start()
    await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'm1' })

    expect(await client.next('job.completed')).toMatchObject({ data: { queue: 'mail', id: 'm1', task: 'send-mail' } })
    await worker.stop()
  })
})

it('a job is followed: its record as it changes, its log as it grows, and its end', async () => {
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const long = defineTask({
    name: 'long',
    run: async (_: undefined, ctx) => {
      ctx.log('begun')
      await ctx.progress(0.5, 'half')
      await gate
      ctx.log('done')
      return 1
    },
  })
  const mill = testMill({ tasks: [long], queues: { default: { retention: { results: 'untilDeleted' } } } }, 'sqlite')
  const window = webHandler(mill)
  const url = await served(window.node)
  await mill.enqueue(long, undefined, { id: 'j' })
  const client = await watch(`${url}/api/v1/queues/default/jobs/j/events`)
  expect(await client.next()).toMatchObject({ event: 'job', data: { state: 'ready' } })
  const worker = mill.worker()
  await worker.start()

  let seen = await client.next()
  const logs: unknown[] = []
  for (; seen.event !== 'end'; seen = await client.next()) {
    if (seen.event === 'log') logs.push(seen.data['text'])
    if (seen.event === 'job' && seen.data['progress'] !== undefined) goOn()
    if (seen.event === 'job') expect(seen.data).not.toHaveProperty('log')
  }
  expect(logs.join('')).toBe('begun\ndone\n')
  const late = await watch(`${url}/api/v1/queues/default/jobs/j/events`)
  expect(await late.next()).toMatchObject({ event: 'job', data: { state: 'completed', result: 1 } })
  expect(await late.next()).toEqual({ event: 'log', data: { text: 'begun\ndone\n', isGap: false } })
  expect((await late.next()).event).toBe('end')
  await worker.stop()
})

describe('the stream of a job', () => {
  const path = 'api/v1/queues/mail/jobs/j/events'

  it('ends after `end`, so that who comes when the job was revived follows it anew', async () => {
    const scene = await WebScene.on('sqlite')
    await scene.mill.enqueue(mail, { to: 'nobody' }, { id: 'j' })
    const staying = await watch(`${scene.url}/${path}`)
    await scene.run(['mail'])
    await staying.next('end')
    await scene.mill.queue('mail').morgue.revive(['j'])
    const late = await watch(`${scene.url}/${path}`)

    expect(await late.next()).toMatchObject({ event: 'job', data: { state: 'ready' } })
    await expect(staying.next()).rejects.toThrow('the stream has ended')
    await scene.run(['mail'])
    expect(await late.next('end')).toMatchObject({ event: 'end' })
  })

  it('tells the job anew after an outage of the store, also if it has not changed', async () => {
    const scene = await WebScene.on('sqlite')
    await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'j', delay: '1h' })
    const store = await (
      scene.mill as unknown as { adminParts: { connect(): Promise<{ records: Records }> } }
    ).adminParts.connect()
    const get = store.records.get.bind(store.records)
    let isAway = false
    store.records.get = async (...asked) => {
      if (isAway) throw new StoreUnavailableError('the store is away.')
      return get(...asked)
    }
    const client = await watch(`${scene.url}/${path}`)
    const first = await client.next()
    isAway = true
    expect(await client.next()).toMatchObject({ event: 'failure', data: { code: 'store-unavailable' } })
    isAway = false
    expect(await client.next('job')).toEqual(first)
  })

  it.each(['a store that refuses one look', 'a `redact` that throws once'])('goes on anew after %s', async (what) => {
    let isBroken = false
    const redact = (job: JobRecord) => {
      if (isBroken && what.includes('redact')) throw new TypeError('broken')
      return job
    }
    const scene = await WebScene.on('sqlite', { token, redact })
    await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'j', delay: '1h' })
    const store = await (
      scene.mill as unknown as { adminParts: { connect(): Promise<{ records: Records }> } }
    ).adminParts.connect()
    const get = store.records.get.bind(store.records)
    store.records.get = async (...asked) => {
      if (isBroken && what.includes('store')) throw new StoreRefusedError('the store refuses.')
      return get(...asked)
    }
    const client = await watch(`${scene.url}/${path}`)
    await client.next()
    isBroken = true
    await scene.mill.queue('mail').jobs.setFields('j', { seen: 1 })
    await client.next('failure')
    await expect(client.next()).rejects.toThrow('the stream has ended')
    isBroken = false

    const again = await watch(`${scene.url}/${path}`)
    expect(await again.next()).toMatchObject({ event: 'job', data: { fields: { seen: 1 } } })
    await scene.mill.queue('mail').jobs.setFields('j', { seen: 2 })
    expect(await again.next('job')).toMatchObject({ data: { fields: { seen: 2 } } })
  })
})

it('a client that fills the buffer with each event leaves nothing behind at its response', async () => {
  // Their rows are more than a response takes at once.
  const queues = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`queue-${n}`, {}]))
  const mill = testMill({ tasks: [mail], queues: { ...queues, mail: {} } }, 'sqlite')
  const window = webHandler(mill)
  const responses: ServerResponse[] = []
  const url = await served((request, response) => {
    responses.push(response)
    window.node(request, response)
  })
  const client = await watch(`${url}/api/v1/events`)
  await client.next('overview')
  const before = listenersOf(responses[0]!)
  for (let n = 0; n < 3; n += 1) {
    await mill.enqueue(mail, { to: 'ada' })
    await client.next('overview')
  }

  expect(listenersOf(responses[0]!)).toEqual(before)
})

const listenersOf = (response: ServerResponse) =>
  ['close', 'error', 'drain'].map((event) => response.listenerCount(event))

it('a hundred clients cost the store as much as one', async () => {
  const scene = await WebScene.on('sqlite')
  const store = await (
    scene.mill as unknown as { adminParts: { connect(): Promise<{ depth(names: string[]): unknown }> } }
  ).adminParts.connect()
  let looks = 0
  const depth = store.depth.bind(store)
  store.depth = (names) => {
    looks += 1
    return depth(names)
  }
  const clients = await Promise.all(Array.from({ length: 100 }, () => watch(`${scene.url}/api/v1/events`)))
  await Promise.all(clients.map((client) => client.next()))
  expect(looks).toBeLessThanOrEqual(3)
  await scene.mill.enqueue(mail, { to: 'ada' })
  await Promise.all(clients.map((client) => client.next()))

  expect(looks).toBeLessThanOrEqual(6)
})

it('close() ends the open streams', async () => {
  const scene = await WebScene.on('sqlite')
  const client = await watch(`${scene.url}/api/v1/events`)
  await client.next()
  await scene.window.close()

  await expect(client.next()).rejects.toThrow('the stream has ended')
})

it('the store is no longer read when the last client has left', async () => {
  let reading: AbortSignal | undefined
  let empty = 0
  const source: Source = {
    keeping: 'all',
    begin: async (_tell, signal) => {
      reading = signal
    },
    opening: () => [],
  }
  const topic = new Topic(source, () => {
    empty += 1
  })
  const clients = [new AbortController(), new AbortController()]
  let left = 0
  for (const { signal } of clients) await topic.join(signal, () => (left += 1))
  clients[0]!.abort()
  expect([reading!.aborted, empty, left]).toEqual([false, 0, 1])
  clients[1]!.abort()

  expect([reading!.aborted, empty, left]).toEqual([true, 1, 2])
})

it('a stream of an unknown queue or job is refused before it begins', async () => {
  const scene = await WebScene.on('sqlite')
  expect((await watch(`${scene.url}/api/v1/queues/nowhere/events`)).status).toBe(404)
  expect((await watch(`${scene.url}/api/v1/queues/mail/jobs/none/events`)).status).toBe(404)
})

describe('the backlog of a slow reader', () => {
  const all = async (stream: EventStream) => {
    stream.end()
    return stream.response.text()
  }

  it('holds only the latest overview', async () => {
    const stream = new EventStream('latest', () => {})
    for (let i = 0; i < 5_000; i += 1) stream.send({ event: 'overview', data: String(i) })

    expect(await all(stream)).toBe('event: overview\ndata: 4999\n\n')
  })

  it('holds 1,000 events, and how many were lost after them', async () => {
    const stream = new EventStream('all', () => {})
    for (let i = 0; i < 1_500; i += 1) stream.send({ event: 'job.started', data: String(i) })
    const told = (await all(stream)).trim().split('\n\n')

    expect(told.length).toBe(1_001)
    expect(told.at(-2)).toContain('data: 999')
    expect(told.at(-1)).toMatch(/^event: events\.lost\ndata: .*"count":500/)
  })
})
