import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, it } from 'vitest'
import { ClosedError, StoreUnavailableError, UnknownQueueError } from '#src/core/errors.js'
import type { ClaimFrom } from '#src/stores/contract/claim.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { inPlace } from '#src/stores/sqlite/thread/port-thread.js'
import { SqliteThreadClient } from '#src/stores/sqlite/thread/sqlite-thread-client.js'
import type { Reply } from '#src/stores/sqlite/thread/sqlite-thread-messages.js'
import { enqueueCall, job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

it.each([
  ['its imports', 'module', 'does not find a file that it imports'],
  ['its package.json, as by Turbopack', 'commonjs', 'is taken for a CommonJS file'],
])('a thread whose file was copied without %s says that the package was bundled', async (_, type, problem) => {
  const folder = join(scene.file, '..', `copied-${type}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }))
  copyFileSync('dist/stores/sqlite/thread/sqlite-thread.js', join(folder, 'sqlite-thread.js'))
  const startThread = () => new Worker(join(folder, 'sqlite-thread.js'), { execArgv: [] })
  const store = new SqliteStore({ file: scene.file, startThread })

  await expect(store.open([queue])).rejects.toMatchObject({
    code: 'package-bundled',
    message: expect.stringContaining(`'sqlite-thread.js', which runs in a thread or process of its own, ${problem}`),
  })
  await store.close()
})

it('the calls of one tick share one commit', async () => {
  const replies: Reply[] = []
  const thread = new SqliteThreadClient({ file: scene.file, clock: undefined }, (reply) => replies.push(reply))
  await thread.call('open', [queue])
  replies.length = 0
  await Promise.all(Array.from({ length: 500 }, (_, i) => thread.call('enqueue', [enqueueCall(`job-${i}`)])))
  expect(replies.map((reply) => reply.answers.length)).toEqual([500])
  await thread.close()
})

it('one transaction takes at most two thousand jobs; the rest follows in the next', async () => {
  const replies: Reply[] = []
  const thread = new SqliteThreadClient({ file: scene.file, clock: undefined }, (reply) => replies.push(reply))
  await thread.call('open', [queue])
  replies.length = 0
  await Promise.all(Array.from({ length: 3_000 }, (_, i) => thread.call('enqueue', [enqueueCall(`job-${i}`)])))
  expect(replies.map((reply) => reply.answers.length)).toEqual([2_000, 1_000])
  await thread.close()
})

it('one transaction takes claims of at most four mebibytes of payloads, and runs an unlimited claim alone', async () => {
  const replies: Reply[] = []
  const thread = new SqliteThreadClient({ file: scene.file, clock: undefined }, (reply) => replies.push(reply))
  await thread.call('open', [queue])
  const shared = async (from: Omit<ClaimFrom, 'queue'>) => {
    replies.length = 0
    const by = { worker: 'w', leaseMs: 60_000 }
    await Promise.all(Array.from({ length: 10 }, () => thread.call('claim', [{ queue: queue.name, ...from }], by)))
    return replies.map((reply) => reply.answers.length)
  }
  expect(await shared({ limit: 1 })).toEqual([10])
  expect(await shared({ limit: 1, maxPayloads: 1_000 })).toEqual([4, 4, 2])
  expect(await shared({ limit: 0, maxPayloads: 1_000 })).toEqual([10])
  expect(await shared({ limit: 1, maxPayloads: Number.POSITIVE_INFINITY })).toEqual(Array(10).fill(1))
  await thread.close()
})

it('one transaction takes heartbeats of at most four mebibytes of checkpoints and logs', async () => {
  const replies: Reply[] = []
  const thread = new SqliteThreadClient({ file: scene.file, clock: undefined }, (reply) => replies.push(reply))
  await thread.call('open', [queue])
  replies.length = 0
  const half = 'x'.repeat(524_288)
  const item = { queue: queue.name, id: 'a', fence: 1, leaseMs: 60_000 }
  const beat = { checkpoint: { payload: half }, log: half }
  await Promise.all(Array.from({ length: 6 }, () => thread.call('extend', [item, { ...item, beat }])))
  expect(replies.map((reply) => reply.answers.length)).toEqual([4, 2])
  await thread.close()
})

it('a call that fails undoes nothing of the calls that share its commit', async () => {
  const store = await scene.opened()
  const unbindable = { ...enqueueCall('bad'), jobs: [job('good-3'), job('bad', { payload: {} as never })] }
  const uncopyable = { ...enqueueCall('worse'), jobs: [job('worse', { payload: (() => {}) as never })] }
  const results = await Promise.allSettled([
    store.enqueue([enqueueCall('good-1')]),
    store.enqueue([{ ...enqueueCall('lost'), queue: 'nowhere' }]),
    store.enqueue([unbindable]),
    store.enqueue([uncopyable]),
    store.enqueue([enqueueCall('good-2')]),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected', 'fulfilled'])
  expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(UnknownQueueError)
  const { jobs } = await store.records.list(queue.name, { by: 'id', limit: 10 })
  expect(jobs.map(({ id }) => id)).toEqual(['good-1', 'good-2'])
})

it('if its thread dies the call under way is doubtful, and the next one gets a new thread', async () => {
  const poison = join(scene.folder, 'poison')
  const module = join(scene.folder, 'clock.mjs')
  writeFileSync(
    module,
    `import { existsSync } from 'node:fs'
     const now = () => (existsSync(${JSON.stringify(poison)}) ? process.exit(1) : 1000)
     export const clock = { now, mono: now, bootId: () => 'boot' }`,
  )
  const store = await scene.opened(pathToFileURL(module).href)
  await store.enqueue([enqueueCall('before')])
  writeFileSync(poison, '')
  await expect(store.enqueue([enqueueCall('during')])).rejects.toBeInstanceOf(StoreUnavailableError)
  rmSync(poison)
  await store.enqueue([enqueueCall('after')])
  const { jobs } = await store.records.list(queue.name, { by: 'id', limit: 10 })
  expect(jobs.map(({ id }) => id)).toEqual(['after', 'before'])
})

it('close completes sent calls; later calls are refused', async () => {
  const store = await scene.opened()
  const sent = store.enqueue([enqueueCall('a')])
  const closed = store.close()
  await expect(store.enqueue([enqueueCall('b')])).rejects.toBeInstanceOf(ClosedError)
  await expect(store.wait([queue.name], 1_000, new AbortController().signal)).rejects.toBeInstanceOf(ClosedError)
  expect(await sent).toEqual([['added']])
  await closed
  await store.close()
  const { depths } = await (await scene.opened()).depth([queue.name])
  expect(depths[0]!.ready).toBe(1)
})

it('close ends a wait with an empty answer', async () => {
  const store = await scene.opened()
  const waiting = store.wait([queue.name], 60_000, new AbortController().signal)
  await store.depth([queue.name])
  await store.close()
  expect(await waiting).toEqual([])
})

it('a store that was never used closes without creating a file', async () => {
  const store = scene.store(join(scene.folder, 'never.db'))
  await store.close()
  await expect(store.depth([queue.name])).rejects.toBeInstanceOf(ClosedError)
})

it('listing the queues creates no file and no directory', async () => {
  for (const file of [scene.file, join(scene.folder, 'not', 'yet', 'jobs.db')])
    expect(await scene.store(file).records.queues()).toEqual([])
  expect(readdirSync(scene.folder)).toEqual([])
  // Made by somebody else meanwhile, it is found by who asks again.
  const asking = scene.store()
  expect(await asking.records.queues()).toEqual([])
  await scene.opened()
  expect(await asking.records.queues()).toMatchObject([{ name: queue.name }])
})

it('a store that is served in place starts no thread, does the same, and ends when it is closed', async () => {
  let threads = 0
  const count = () => {
    threads += 1
  }
  process.on('worker', count)
  const [own, placed] = [
    new SqliteStore({ file: scene.file }),
    new SqliteStore({ file: scene.file, startThread: inPlace }),
  ]
  await own.open([queue])
  expect(threads).toBe(1)
  await placed.open([queue])
  await placed.enqueue([enqueueCall('a')])
  const answers = await Promise.all([placed.depth([queue.name]), own.depth([queue.name])])
  expect(answers.map(({ depths }) => depths[0]!.ready)).toEqual([1, 1])
  await expect(placed.enqueue([{ ...enqueueCall('b'), queue: 'nowhere' }])).rejects.toBeInstanceOf(UnknownQueueError)
  await placed.close()
  await expect(placed.depth([queue.name])).rejects.toBeInstanceOf(ClosedError)
  expect(threads).toBe(1)
  process.off('worker', count)
  await own.close()
})
