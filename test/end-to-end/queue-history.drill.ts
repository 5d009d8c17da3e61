/** The history of queues over real processes: several workers, and the process of an isolated job. */

import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defineTask, type Mill, millrace, type Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { nextEvent } from '../next-event.js'
import { storeAddress, workerChild } from './worker-child.js'

const workerProgram = `
import { defineTask, millrace } from 'millrace'
const work = defineTask({ name: 'work', queue: 'video', run: () => new Promise((resolve) => setTimeout(resolve, 20)) })
const queues = { video: { retention: { results: { count: 100 } } } }
const mill = millrace({ store: process.env.TEST_STORE, tasks: [work], queues })
await mill.worker({ concurrency: 2 }).start()
console.log('ready')
process.stdin.resume()
process.stdin.on('end', () => mill.close())
`

/** All that was counted of the queue in the last hours: a minute may end while the test runs. */
async function totals(mill: Mill, queue: string): Promise<Record<string, number>> {
  const { points } = await mill.queue(queue).history({ step: 'hour' })
  const names = ['enqueued', 'started', 'completed', 'failed', 'runMs'] as const
  return Object.fromEntries(names.map((name) => [name, points.reduce((sum, point) => sum + point[name], 0)]))
}

it.each(['sqlite', 'redis'] as const)(
  'the counts of a producer and two workers on %s add up once they have ended',
  { timeout: 60_000 },
  async (kind) => {
    const store = await storeAddress(kind)
    const work = defineTask({ name: 'work', queue: 'video' })
    const queues = { video: { retention: { results: { count: 100 } } } }
    const producer = millrace({ store, tasks: [work], queues })
    onTestFinished(() => producer.close())
    await producer.ready()
    const workers = await Promise.all([workerChild(workerProgram, store), workerChild(workerProgram, store)])
    const handles = await producer.enqueueMany(
      work,
      Array.from({ length: 40 }, (_, i) => i),
    )
    await producer.results(handles, { timeout: '30s' })
    await producer.close()
    for (const worker of workers) {
      worker.stdin!.end()
      await once(worker, 'exit')
    }
    const mill = millrace({ store, tasks: [work], queues })
    onTestFinished(() => mill.close())
    const { runMs, ...counts } = await totals(mill, 'video')
    expect(counts).toEqual({ enqueued: 40, started: 40, completed: 40, failed: 0 })
    expect(runMs).toBeGreaterThan(40 * 15)
  },
)

/** A module with the isolated task `film`, which enqueues three jobs of `cut`, once there is the file `go` if it `waits`. */
async function filmModule(waits = false) {
  const folder = mkdtempSync(join(root, 'test/end-to-end/history-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [module, go] = [join(folder, 'film.mjs'), join(folder, 'go')]
  const program = `
import { existsSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
const cut = defineTask({ name: 'cut', queue: 'cuts' })
export const film = defineTask({
  name: 'film',
  queue: 'films',
  isolate: 'process',
  timeLimit: '1h',
  module: import.meta.url,
  async run(_, ctx) {
    while (${waits} && !existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 20))
    await ctx.enqueueMany(cut, [1, 2, 3])
  },
})
export const connect = () => millrace({ store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)}, tasks: [film, cut] })
export default connect()
`
  writeFileSync(module, program)
  const { film, connect } = (await import(pathToFileURL(module).href)) as { film: Task<'film'>; connect: () => Mill }
  const opened = () => {
    const mill = connect()
    onTestFinished(() => mill.close())
    return mill
  }
  return { film, opened, go: () => writeFileSync(go, '') }
}

it('an isolated job is counted by its worker, and so are the jobs that its handler enqueues', {
  timeout: 60_000,
}, async () => {
  const { film, opened } = await filmModule()
  const mill = opened()
  await mill.worker({ queues: ['films'] }).start()
  const completed = nextEvent(mill, 'job.completed')
  await mill.enqueue(film, 1)
  await completed
  await mill.close()
  const after = opened()
  expect(await totals(after, 'films')).toMatchObject({ enqueued: 1, started: 1, completed: 1 })
  expect(await totals(after, 'cuts')).toMatchObject({ enqueued: 3, started: 0 })
})

it('an isolated job without its worker is counted by its own process', { timeout: 60_000 }, async () => {
  const { film, opened, go } = await filmModule(true)
  const mill = opened()
  const worker = mill.worker({ queues: ['films'] })
  await worker.start()
  const started = nextEvent(mill, 'job.started')
  await mill.enqueue(film, 1)
  await started
  await worker.stop()
  await mill.close()
  const after = opened()
  expect(await totals(after, 'films')).toMatchObject({ enqueued: 1, started: 1, completed: 0 })
  go()
  await expect
    .poll(() => totals(after, 'films'), { timeout: 30_000 })
    .toMatchObject({ enqueued: 1, started: 1, completed: 1 })
  expect(await totals(after, 'cuts')).toMatchObject({ enqueued: 3, started: 0 })
})
