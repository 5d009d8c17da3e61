/** What other processes have counted and say of themselves, as the window tells it, on SQLite and on Redis. */

import { defineTask, type Mill, millrace } from 'millrace'
import type { Store, WorkerRecord } from 'millrace/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keptSparks, type SparkReader } from '#src/web/state/sparks.js'
import { nextEvent } from '../next-event.js'
import { mail, type SceneStore, sceneOptions, WebScene } from './web-scene.js'

type Count = 'enqueued' | 'started' | 'completed' | 'failed' | 'dead'
type Points = readonly ({ readonly at: string } & Readonly<Record<Count, number>>)[]

const hourMs = 3_600_000
const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0)

/** A mill as another process has it, on the store of the scene. */
function elsewhere({ mill }: WebScene): Mill {
  const other = millrace({ store: mill.store.text, ...sceneOptions })
  onTestFinished(() => other.close())
  return other
}

/** Two mails that are sent, and one that fails for good. */
async function sendThree(mill: Mill): Promise<void> {
  let sent = 0
  const ended = Promise.all([
    nextEvent(mill, 'job.completed', () => ++sent === 2),
    nextEvent(mill, 'job.buried', ({ task }) => task === 'send-mail'),
  ])
  await mill.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }, { to: 'nobody' }])
  await mill.worker({ queues: ['mail'] }).start()
  await ended
  await mill.close()
}

const worker = {
  ...{ id: 'mill-1/4711/1-5f2c', host: 'mill-1', boot: 'b', pidns: 'n', pid: 4711, ticks: 1 },
  ...{ queues: ['mail'], concurrency: 4, running: 1, startedAt: Date.parse('2026-11-25T10:00:00Z') },
  ...{ state: 'running', version: '1.2.3', selector: 'lottery', tasks: 3, rssBytes: 90_000_000, loopDelayMs: 12 },
} satisfies WorkerRecord

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('the history of a queue, and its spark, include the counts of another process', async () => {
    const scene = await WebScene.on(store)
    const from = new Date(Date.now() - 2 * hourMs).toISOString()
    await sendThree(elsewhere(scene))
    const to = new Date(Date.now() + 1).toISOString()
    const minutes = await scene.get('queues/mail/history')
    const hours = await scene.get(`queues/mail/history?step=hour&from=${from}&to=${to}`)
    const overview = await scene.get('overview?minutes=5')

    const { points } = minutes.json as { points: Points }
    const counted = (name: Count) => sum(points.map((point) => point[name]))
    expect(minutes.json).toMatchObject({ queue: 'mail', step: 'minute' })
    expect(points).toHaveLength(60)
    expect([counted('enqueued'), counted('started'), counted('completed'), counted('failed'), counted('dead')]).toEqual(
      [3, 3, 2, 1, 1],
    )
    const own = await scene.mill.queue('mail').history({ step: 'hour', from, to })
    expect(hours.json).toEqual(JSON.parse(JSON.stringify(own)))
    const [{ name, spark }] = (overview.json as { queues: [{ name: string; spark: Record<string, number[]> }] }).queues
    expect(name).toBe('mail')
    expect(Object.entries(spark).map(([line, numbers]) => [line, numbers.length, sum(numbers)])).toEqual([
      ['enqueued', 5, 3],
      ['done', 5, 2],
      ['failed', 5, 1],
    ])
  })

  it('a history over an empty span, with another step or from no instant is refused', async () => {
    const scene = await WebScene.on(store)
    for (const span of ['from=2026-11-25T12:00:00Z&to=2026-11-25T10:00:00Z', 'step=day', 'from=yesterday'])
      expect(await scene.get(`queues/mail/history?${span}`)).toMatchObject({
        status: 400,
        json: { error: { code: 'argument-invalid' } },
      })
    expect((await scene.get('queues/none/history')).status).toBe(404)
  })

  it('a worker is shown as it reports itself, and learns at its next heartbeat to stop or to recycle', async () => {
    const scene = await WebScene.on(store)
    const { workers } = await (
      scene.mill as unknown as { adminParts: { connect(): Promise<Store> } }
    ).adminParts.connect()
    await workers!.beat(worker, hourMs)
    const { concurrency, ...rest } = worker
    const row = { ...rest, slots: concurrency, process: 'unknown', startedAt: '2026-11-25T10:00:00.000Z' }
    const seenAt = expect.stringMatching(/^20.*Z$/)

    expect((await scene.get('workers')).json).toEqual({ items: [{ ...row, seenAt }] })
    expect((await scene.get('queues/mail')).json).toMatchObject({ workers: [{ ...row, seenAt }] })
    for (const signal of ['recycle', 'stop'] as const) {
      expect((await scene.post(`workers/${encodeURIComponent(worker.id)}/${signal}`)).json).toEqual({
        changed: 1,
        more: false,
      })
      expect(await workers!.beat(worker, hourMs)).toBe(signal)
    }
    expect(await scene.post('workers/nobody/stop')).toMatchObject({
      status: 404,
      json: { error: { code: 'not-found' } },
    })
    expect(scene.audits.map(({ action, changed, error }) => [action, changed ?? error])).toEqual([
      ['worker.recycle', 1],
      ['worker.stop', 1],
      ['worker.stop', 'not-found'],
    ])
  })

  it('the running jobs of a worker are listed, oldest first, with their progress', async () => {
    const scene = await WebScene.on(store)
    const render = defineTask({
      name: 'render',
      queue: 'mail',
      run: async (_: unknown, ctx) => {
        ctx.progress(0.4, 'frame 40 of 100')
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      },
    })
    const other = millrace({ store: scene.mill.store.text, ...sceneOptions, tasks: [mail, render] })
    onTestFinished(() => other.close())
    const started = nextEvent(other, 'job.started', ({ id }) => id === 'b/2')
    for (const id of ['a 1', 'b/2']) await other.enqueue(render, {}, { id })
    const working = other.worker({ queues: ['mail'], grace: 0 })
    await working.start()
    const { worker: name } = await started
    const path = `workers/${encodeURIComponent(name)}/jobs`

    const job = (id: string) => ({ queue: 'mail', id, task: 'render', startedAt: expect.stringMatching(/^20.*Z$/) })
    const progress = { fraction: 0.4, note: 'frame 40 of 100' }
    await expect
      .poll(async () => (await scene.get(path)).json, { timeout: 10_000 })
      .toMatchObject({
        items: [
          { ...job('a 1'), progress },
          { ...job('b/2'), progress },
        ],
        more: false,
      })
    expect((await scene.get(`${path}?limit=1`)).json).toMatchObject({ items: [job('a 1')], more: true })
    expect((await scene.get('workers/nobody/jobs')).json).toEqual({ items: [], more: false })
  })
})

const store = {} as Store

it('cached sparks are read again after their time, and for other queues', async () => {
  let mono = 0
  const reads: string[] = []
  const read: SparkReader = async (_, queues) => {
    reads.push(`${mono}: ${queues.join()}`)
    return queues.map(() => ({ enqueued: [mono], done: [], failed: [] }))
  }
  const kept = keptSparks(read, 5_000, () => mono)
  for (const [at, queues] of [
    [0, ['a', 'b']],
    [4_999, ['a', 'b']],
    [5_000, ['a', 'b']],
    [6_000, ['a']],
  ] as const) {
    mono = at
    await kept(store, queues, 0)
  }

  expect(reads).toEqual(['0: a,b', '5000: a,b', '6000: a'])
  expect(await kept(store, ['a'], 0)).toEqual([{ enqueued: [6_000], done: [], failed: [] }])
})

it('a failed reading is repeated on the next look', async () => {
  let calls = 0
  const kept = keptSparks(
    async () => {
      calls += 1
      if (calls === 1) throw new Error('away')
      return []
    },
    5_000,
    () => 0,
  )

  await expect(kept(store, [], 0)).rejects.toThrow('away')
  expect(await kept(store, [], 0)).toEqual([])
})
