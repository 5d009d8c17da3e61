/** Live events of real processes: several workers, one of which is killed, on a file and on a Redis. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { defineTask, type LiveEvent, type Mill, millrace, type Task } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { nextEvent } from '../next-event.js'
import { storeAddress, workerChild } from './worker-child.js'

const workerProgram = `
import { defineTask, millrace } from 'millrace'
const work = defineTask({
  name: 'work',
  queue: 'video',
  async run(n, ctx) {
    await ctx.progress(0.5, 'half of ' + n)
    await new Promise((resolve) => setTimeout(resolve, n === 'long' ? 60_000 : 20))
  },
})
const mill = millrace({ store: process.env.TEST_STORE, tasks: [work], queues: { video: { lease: '3s' } } })
await mill.worker({ concurrency: 2 }).start()
console.log('ready')
process.stdin.resume()
process.stdin.on('end', async () => {
  await mill.close()
  process.exit()
})
`

const work = defineTask({ name: 'work', queue: 'video' })

it.each(['sqlite', 'redis'] as const)(
  'the events of three processes on %s all arrive once, in order',
  { timeout: 90_000 },
  async (kind) => {
    const store = await storeAddress(kind)
    const mill = millrace({ store, tasks: [work], queues: { video: { lease: '3s' } } })
    onTestFinished(() => mill.close())
    await mill.ready()
    const workers = await Promise.all(Array.from({ length: 3 }, () => workerChild(workerProgram, store)))
    const feed = mill.queue('video').events({ buffer: 10_000 })
    await feed.ready()
    const heard: LiveEvent[] = []
    let look = () => {}
    const reading = (async () => {
      for await (const event of feed) {
        heard.push(event)
        look()
      }
    })()
    const until = async (isThere: () => boolean) => {
      while (!isThere()) await new Promise<void>((resolve) => (look = resolve))
    }
    const of = (type: LiveEvent['type']) => heard.filter((event) => event.type === type)

    // Each of the workers has heard by then that somebody watches, however it had learnt before that nobody does.
    await delay(3_500)
    const before = performance.now()
    const first = await mill.enqueue(work, 'first')
    await until(() => of('job.completed').length === 1)
    const toldMs = performance.now() - before
    console.log(`told on ${kind}: ${toldMs.toFixed(0)} ms after the enqueue, of which the job takes 20`)
    expect(heard.map((event) => event.type)).toEqual(['job.started', 'job.progressed', 'job.completed'])
    expect(heard[1]).toMatchObject({ id: first.id, task: 'work', progress: { fraction: 0.5, note: 'half of first' } })

    const jobs = await mill.enqueueMany(
      work,
      Array.from({ length: 60 }, (_, n) => n),
    )
    await until(() => of('job.completed').length === 61)
    expect(of('events.lost')).toEqual([])
    for (const { id } of jobs) {
      const types = heard.flatMap((event) => ('id' in event && event.id === id ? [event.type] : []))
      expect(types).toEqual(['job.started', 'job.progressed', 'job.completed'])
    }
    expect(new Set(of('job.started').map((event) => (event as { worker: string }).worker)).size).toBe(3)

    // The end of one is told by another.
    await mill.enqueue(work, 'long')
    await until(() => of('job.started').length === 62)
    const dead = (of('job.started').at(-1) as { worker: string }).worker
    workers.find(({ pid }) => dead.includes(`/${pid}/`))!.kill('SIGKILL')
    await until(() => of('job.crashed').length === 1)
    expect(of('job.crashed')).toMatchObject([{ worker: dead, charged: false }])

    await feed.return()
    await reading
  },
)

it('an isolated job reports its progress from its own process', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(root, 'test/end-to-end/live-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'film.mjs')
  const program = `
import { defineTask, millrace } from 'millrace'
const film = defineTask({
  name: 'film',
  queue: 'films',
  isolate: 'process',
  module: import.meta.url,
  async run(_, ctx) {
    ctx.progress(0.25, 'a quarter')
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  },
})
export default millrace({ store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)}, tasks: [film] })
`
  writeFileSync(module, program)
  const { default: mill } = (await import(pathToFileURL(module).href)) as { default: Mill }
  onTestFinished(() => mill.close())
  await mill.ready()
  const feed = mill.queue('films').events()
  await feed.ready()
  await mill.worker().start()
  const handle = await mill.enqueue(mill.tasks.get('film') as Task<'film'>, 1)
  const types: string[] = []
  for await (const event of feed) {
    types.push(event.type)
    if (event.type === 'job.progressed')
      expect(event).toMatchObject({ id: handle.id, progress: { fraction: 0.25, note: 'a quarter' } })
    if (event.type === 'job.completed') break
  }
  expect(types.sort()).toEqual(['job.completed', 'job.progressed', 'job.started'])
})

it('an isolated job without its worker reports its own end, even if it reported nothing before', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(root, 'test/end-to-end/live-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'film.mjs')
  const program = `
import { existsSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
const film = defineTask({
  name: 'film',
  queue: 'films',
  isolate: 'process',
  timeLimit: '1h',
  module: import.meta.url,
  async run(_, ctx) {
    while (!existsSync(${JSON.stringify(join(folder, 'go'))})) await new Promise((resolve) => setTimeout(resolve, 20))
  },
})
export default millrace({ store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)}, tasks: [film] })
`
  writeFileSync(module, program)
  const { default: mill } = (await import(pathToFileURL(module).href)) as { default: Mill }
  onTestFinished(() => mill.close())
  await mill.ready()
  const worker = mill.worker()
  await worker.start()
  const handle = await mill.enqueue(mill.tasks.get('film') as Task<'film'>, 1)
  await nextEvent(mill, 'job.started')
  await worker.stop()
  const feed = mill.queue('films').events()
  await feed.ready()
  // The process has heard by then that somebody watches, if it has asked before.
  await delay(3_100)
  writeFileSync(join(folder, 'go'), '')

  for await (const event of feed) {
    expect(event).toMatchObject({ id: handle.id, attempt: 1 })
    if (event.type === 'job.completed') break
  }
})

it('a feed outlives its Redis: it reports a possible gap, and what follows', {
  timeout: 60_000,
}, async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const done = defineTask({ name: 'done', queue: 'video', run: async () => {} })
  const mill = millrace({ store: redis.url, tasks: [done] })
  onTestFinished(() => mill.close())
  await mill.ready()
  const feed = mill.queue('video').events()
  await feed.ready()
  await redis.kill()
  await redis.restart()
  expect((await feed.next()).value).toMatchObject({ type: 'events.lost', queue: 'video' })
  await mill.worker().start()
  await mill.enqueue(done, 1)
  for await (const event of feed) if (event.type === 'job.completed') break
})
