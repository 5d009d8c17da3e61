/** The metrics of a mill: exact figures on SQLite and on Redis, who may read them, and what they cost the store. */

import { type Mill, millrace } from 'millrace'
import type { Store, WorkerRecord } from 'millrace/store'
import { startRedis } from 'millrace/store-testing'
import { webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StoreCorruptError } from '#src/core/errors.js'
import { millMetricsIn } from '#src/measures/mill-metrics.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { readMill } from '#src/web/state/mill-reader.js'
import { openMetricsFamilies, valuesIn } from '../monitoring/exposition-text.js'
import { nextEvent } from '../next-event.js'
import { testMillOn } from '../test-mill.js'
import { ask, bearer, mail, type SceneStore, sceneOptions, sync, WebScene } from './web-scene.js'

const open = 'application/openmetrics-text'
const hostileWorker = {
  ...{ id: 'a"b\\c\nd', host: 'h"\n', boot: 'b', pidns: 'n', pid: 1, ticks: 1, queues: ['mail'], concurrency: 3 },
  ...{ running: 2, startedAt: 0, rssBytes: 5_000, loopDelayMs: 250 },
} satisfies WorkerRecord

/** What a scrape of the scene tells, by the line without its value. */
async function scraped({ url }: WebScene, accept?: string): Promise<ReadonlyMap<string, number>> {
  const { text } = await ask(`${url}/metrics`, { headers: { ...bearer, ...(accept && { accept }) } })
  if (accept === open) openMetricsFamilies(text)
  return valuesIn(text)
}

/** A scrape of another reading than that one; on a machine that is busy a reading may take too long. */
function scrapedAfter(scene: WebScene, before?: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
  const duration = 'millrace_scrape_duration_seconds'
  const look = async () => {
    const values = await scraped(scene, open)
    return values.get('millrace_up') === 1 && values.get(duration) !== before?.get(duration) ? values : undefined
  }
  return poll(look, { what: 'another reading', withinMs: 20_000 })
}

const pick = (values: ReadonlyMap<string, number>, pattern: RegExp) =>
  Object.fromEntries([...values].filter(([key]) => pattern.test(key)))

describe.each(['sqlite', 'redis'] as const)('the metrics on %s', (store: SceneStore) => {
  it('are exact after known work, and work recorded by another process increases the counters', async () => {
    const scene = await WebScene.on(store)
    const first = await scrapedAfter(scene)
    const elsewhere = millrace({ store: scene.mill.store.text, ...sceneOptions })
    onTestFinished(() => elsewhere.close())
    let sent = 0
    const ended = Promise.all([
      nextEvent(elsewhere, 'job.completed', () => ++sent === 2),
      nextEvent(elsewhere, 'job.buried', ({ task }) => task === 'send-mail'),
    ])
    await elsewhere.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }, { to: 'nobody' }])
    await elsewhere.enqueue(mail, { to: 'eve' }, { delay: '1h' })
    await elsewhere.enqueue(sync, { order: '7' })
    await elsewhere.worker({ queues: ['mail'] }).start()
    await ended
    // Writes the history, too.
    await elsewhere.close()
    await scene.mill.queue('orders').pause()
    const values = await scrapedAfter(scene, await scraped(scene))

    expect(pick(first, /^millrace_(?:up|queues|jobs\{queue="mail")/)).toEqual({
      ...{ millrace_up: 1, millrace_queues: 3, millrace_queues_left_out: 0 },
      'millrace_jobs{queue="mail",state="ready"}': 0,
      'millrace_jobs{queue="mail",state="scheduled"}': 0,
      'millrace_jobs{queue="mail",state="waiting"}': 0,
      'millrace_jobs{queue="mail",state="running"}': 0,
      'millrace_jobs{queue="mail",state="dead"}': 0,
    })
    expect(pick(values, /^millrace_(?:job_events|jobs|attempts)\w*\{queue="mail"/)).toEqual({
      'millrace_jobs{queue="mail",state="ready"}': 0,
      'millrace_jobs{queue="mail",state="scheduled"}': 1,
      'millrace_jobs{queue="mail",state="waiting"}': 0,
      'millrace_jobs{queue="mail",state="running"}': 0,
      'millrace_jobs{queue="mail",state="dead"}': 1,
      'millrace_jobs_processed_total{queue="mail"}': 2,
      'millrace_jobs_expired_total{queue="mail"}': 0,
      'millrace_attempts_failed_total{queue="mail"}': 1,
      'millrace_attempts_crashed_total{queue="mail"}': 0,
      'millrace_job_events_total{queue="mail",event="enqueued"}': 4,
      'millrace_job_events_total{queue="mail",event="started"}': 3,
      'millrace_job_events_total{queue="mail",event="completed"}': 2,
      'millrace_job_events_total{queue="mail",event="failed"}': 1,
      'millrace_job_events_total{queue="mail",event="dead"}': 1,
      'millrace_job_events_total{queue="mail",event="crashed"}': 0,
      'millrace_job_events_total{queue="mail",event="cancelled"}': 0,
    })
    expect(pick(values, /^millrace_job_duration_seconds_(?:bucket.*Inf|count.*)"mail|.*mail".*Inf/)).toEqual({
      'millrace_job_duration_seconds_bucket{queue="mail",le="+Inf"}': 3,
      'millrace_job_duration_seconds_count{queue="mail"}': 3,
    })
    expect(pick(values, /queue="orders"/)).toMatchObject({
      'millrace_queue_paused{queue="orders"}': 1,
      'millrace_queue_payloads{queue="orders"}': 1,
      'millrace_jobs{queue="orders",state="ready"}': 1,
    })
    expect(values.get('millrace_queue_lag_seconds{queue="orders"}')).toBeGreaterThan(0)
    expect([...values.keys()].filter((key) => key.startsWith('millrace_queue_shard_lag_seconds'))).toHaveLength(2)
  })

  it('include throttles and workers, whatever their names', async () => {
    const scene = await WebScene.on(store)
    await scene.mill.ready()
    const { workers } = await scene.mill.adminParts.connect()
    await workers!.beat(hostileWorker, 60_000)
    const { text } = await ask(`${scene.url}/metrics`, { headers: { ...bearer, accept: open } })
    const samples = openMetricsFamilies(text).flatMap((family) => family.samples)
    const labelled = (name: string) => samples.filter((sample) => sample.name === name)

    const labels = { worker: hostileWorker.id, host: hostileWorker.host }
    expect(labelled('millrace_worker_running')).toEqual([{ name: 'millrace_worker_running', labels, value: 2 }])
    expect(labelled('millrace_worker_loop_delay_seconds')).toMatchObject([{ labels, value: 0.25 }])
    expect(labelled('millrace_throttle_limit')).toMatchObject([
      { labels: { throttle: 'crawl', window: '60' }, value: 10 },
    ])
    expect(labelled('millrace_throttle_hits')).toMatchObject([{ value: 0 }])
    expect(labelled('millrace_queue_running_limit')).toMatchObject([{ labels: { queue: 'crawl' }, value: 4 }])
    expect(labelled('millrace_queue_workers').map(({ labels: { queue }, value }) => [queue, value])).toEqual([
      ['mail', 1],
      ['orders', 0],
      ['crawl', 0],
    ])
  })
})

describe('a reader of the metrics', () => {
  it('needs access to the API, GET, and a known host', async () => {
    const scene = await WebScene.on('sqlite')
    const asked = async (asking: Parameters<typeof ask>[1]) => {
      const { status, headers } = await ask(`${scene.url}/metrics`, asking)
      return [status, headers['content-type']]
    }
    const json = 'application/json; charset=utf-8'

    expect(await asked({ headers: bearer })).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(await asked({ headers: { ...bearer, accept: open } })).toEqual([
      200,
      `${open}; version=1.0.0; charset=utf-8`,
    ])
    expect(await asked({})).toEqual([401, json])
    expect(await asked({ method: 'POST', headers: bearer })).toEqual([405, json])
    expect(await asked({ headers: { ...bearer, host: 'evil.example.org' } })).toEqual([421, json])
    expect(await asked({ headers: { ...bearer, origin: 'https://evil.example.org' } })).toEqual([403, json])
  })

  it('may be a viewer, below the mount path of the web handler', async () => {
    const scene = await WebScene.on('sqlite', {
      basePath: '/jobs',
      authorize: () => ({ name: 'prometheus', role: 'viewer' }),
    })
    expect((await ask(`${scene.url}/jobs/metrics`)).status).toBe(200)
  })
})

/** The store, and the calls that were made of it and of its facets. */
function counted(
  store: Store,
  broken: Readonly<Record<string, () => unknown>> = {},
): { store: Store; calls: string[] } {
  const calls: string[] = []
  const watched = <T extends object>(target: T, path: string): T =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        const at = `${path}${String(name)}`
        if (typeof value === 'object' && value !== null && path === '') return watched(value, `${at}.`)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          calls.push(at)
          return broken[at] === undefined ? value.apply(target, args) : broken[at](...(args as []))
        }
      },
    })
  return { store: watched(store, ''), calls }
}

const many = (count: number, options: object = {}) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`queue-${i}`, options]))

async function textOf(mill: Mill): Promise<string> {
  const window = webHandler(mill)
  onTestFinished(() => window.close())
  return (await window.fetch(new Request('http://localhost/metrics'), { address: '127.0.0.1' })).text()
}

describe('a scrape', () => {
  it('costs the store four calls plus one for each throttle, however many queues there are', async () => {
    const { store, calls } = counted(new MemoryStore())
    const throttle = { limit: 5, window: '1m', scope: 'shared' } as const
    const mill = testMillOn(store, { queues: { ...many(300), one: { throttle }, two: { throttle } } })
    await mill.ready()
    calls.length = 0
    const values = valuesIn(await textOf(mill))

    expect(values.get('millrace_queues')).toBe(302)
    expect(calls.sort()).toEqual(['depth', 'history.read', 'records.queues', 'throttles.state', 'workers.list'])
  })

  it('asks why jobs wait in the 20 queues whose first job has been waiting longest, and in no others', async () => {
    let now = Date.now()
    const { store, calls } = counted(new MemoryStore({ now: () => now, mono: () => now }))
    const names = Object.keys(many(30))
    const mill = testMillOn(store, { queues: many(30), tasksElsewhere: ['away'] })
    for (const queue of names) {
      await mill.enqueueNamed('away', {}, { queue })
      now += 1_000
    }
    calls.length = 0
    const values = valuesIn(await textOf(mill))

    expect(pick(values, /^millrace_queue_standstill/)).toEqual(
      Object.fromEntries(
        names.slice(0, 20).map((queue) => [`millrace_queue_standstill{queue="${queue}",reason="no-worker"}`, 1]),
      ),
    )
    expect(calls.filter((call) => call === 'records.list')).toHaveLength(20)
    expect(calls.length).toBe(4 + 20 * 2)
  })

  it('looks for jobs that are put back in the 20 queues with the most scheduled jobs, and in no others', async () => {
    const { store, calls } = counted(new MemoryStore())
    const mill = testMillOn(store, { queues: many(30), tasksElsewhere: ['away'] })
    for (const [i, queue] of Object.keys(many(30)).entries())
      for (let n = 0; n <= i; n += 1) await mill.enqueueNamed('away', {}, { queue, delay: '1h' })
    calls.length = 0
    await textOf(mill)

    expect(calls.filter((call) => call === 'records.list')).toHaveLength(20)
    expect(calls.length).toBe(4 + 20)
  })

  it('counts a worker of another machine that has not reported for 30 s as silent, and for no queue', async () => {
    let now = Date.now()
    const store = new MemoryStore({ now: () => now, mono: () => now })
    const mill = testMillOn(store, { queues: { mail: {} } })
    await mill.ready()
    await store.workers.beat({ ...hostileWorker, id: 'gone' }, 120_000)
    now += 31_000
    await store.workers.beat({ ...hostileWorker, id: 'here' }, 120_000)

    expect(pick(valuesIn(await textOf(mill)), /^millrace_(?:workers|queue_workers)/)).toEqual({
      'millrace_queue_workers{queue="mail"}': 1,
      'millrace_workers{state="running"}': 1,
      'millrace_workers{state="stopping"}': 0,
      'millrace_workers{state="silent"}': 1,
    })
  })

  it('shares its reading with all in the same second, and with all that arrive while it is under way', async () => {
    const { store, calls } = counted(new MemoryStore())
    const mill = testMillOn(store, { queues: many(1) })
    const window = webHandler(mill)
    onTestFinished(() => window.close())
    const scrape = () => window.fetch(new Request('http://localhost/metrics'), { address: '127.0.0.1' })
    await Promise.all([scrape(), scrape(), scrape()])
    await scrape()
    const depths = () => calls.filter((call) => call === 'depth').length

    expect(depths()).toBe(1)
    const again = async () => {
      await scrape()
      return depths() > 1 ? true : undefined
    }
    await poll(again, { what: 'another reading', withinMs: 3_000 })
    expect(depths()).toBe(2)
  })

  it('reports 1,000 queues and 200 throttles, and how many it leaves out', async () => {
    const mill = testMillOn(new MemoryStore(), { queues: many(1_203, { throttle: { limit: 5, window: '1s' } }) })
    await mill.ready()
    const values = valuesIn(await textOf(mill))
    const reading = await readMill(mill)

    expect(pick(values, /^millrace_(?:queues|throttles_)/)).toEqual({
      ...{ millrace_queues: 1_000, millrace_queues_left_out: 203, millrace_throttles_left_out: 800 },
    })
    // As a line between two processes it must not be too long.
    expect(JSON.stringify(reading).length).toBeLessThan(900_000)
    expect(millMetricsIn(JSON.parse(JSON.stringify(reading)))).toEqual(reading)
  })

  it('reports the rest if a queue is damaged, or a facet of the store fails or is absent', async () => {
    const inner = new MemoryStore()
    const broken = {
      depth: (names: readonly string[] = []) =>
        names.includes('broken') ? Promise.reject(new StoreCorruptError('its keys are not ours')) : inner.depth(names),
      'workers.list': () => Promise.reject(new Error('no')),
      'throttles.state': () => Promise.reject(new Error('no')),
    }
    const { store } = counted(inner, broken)
    const mill = testMillOn(store, { queues: { broken: { throttle: { limit: 5, window: '1s' } }, well: {} } })
    await mill.ready()
    const values = valuesIn(await textOf(mill))

    expect(pick(values, /^millrace_(?:up|queue_damaged|jobs\{.*dead|scrape_errors)/)).toEqual({
      millrace_up: 1,
      'millrace_scrape_errors_total{part="store"}': 0,
      'millrace_scrape_errors_total{part="queue"}': 1,
      'millrace_scrape_errors_total{part="throttle"}': 1,
      'millrace_scrape_errors_total{part="workers"}': 1,
      'millrace_scrape_errors_total{part="history"}': 0,
      'millrace_queue_damaged{queue="broken"}': 1,
      'millrace_queue_damaged{queue="well"}': 0,
      'millrace_jobs{queue="well",state="dead"}': 0,
    })
  })

  it('stops reporting a removed queue', async () => {
    const inner = new MemoryStore()
    await inner.open([{ name: 'old', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    let isRemoved = false
    const queues = async () => (await inner.records.queues()).filter(({ name }) => name !== 'old' || !isRemoved)
    const { store } = counted(inner, { 'records.queues': queues })
    const mill = testMillOn(store, { queues: many(1) })

    expect(await textOf(mill)).toContain('queue="old"')
    isRemoved = true
    expect(await textOf(mill)).not.toContain('queue="old"')
  })

  it('answers within 5 s with up 0 if the store hangs, and does not ask it again meanwhile', async () => {
    const { store, calls } = counted(new MemoryStore(), { depth: () => new Promise(() => {}) })
    const mill = testMillOn(store, { queues: many(1) })
    const window = webHandler(mill)
    onTestFinished(() => window.close())
    const from = performance.now()
    const texts = await Promise.all(
      [1, 2].map(async () =>
        (await window.fetch(new Request('http://localhost/metrics'), { address: '127.0.0.1' })).text(),
      ),
    )

    expect(performance.now() - from).toBeLessThan(5_000)
    expect(texts.map((text) => valuesIn(text).get('millrace_up'))).toEqual([0, 0])
    expect(calls.filter((call) => call === 'depth')).toHaveLength(1)
  })

  it('answers with up 0 while Redis is down, and then reports no queue', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const mill = millrace({ store: redis.url, queues: { mail: {} } })
    onTestFinished(() => mill.close())
    const window = webHandler(mill)
    onTestFinished(() => window.close())
    const scrape = async () =>
      valuesIn(await (await window.fetch(new Request('http://localhost/metrics'), { address: '127.0.0.1' })).text())
    expect((await scrape()).get('millrace_queues')).toBe(1)
    await redis.stop()
    const down = await poll(
      async () => {
        const values = await scrape()
        return values.get('millrace_up') === 0 ? values : undefined
      },
      { what: 'up 0', withinMs: 10_000 },
    )
    expect(pick(down, /queue=/)).toEqual({})
    expect(down.get('millrace_scrape_errors_total{part="store"}')).toBeGreaterThan(0)
  })
})
