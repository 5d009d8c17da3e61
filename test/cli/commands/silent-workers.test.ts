/** What commands say of workers that have fallen silent, and of queues that nobody works. */

import { describe, expect, it } from 'vitest'
import { run, runJson } from '../command-in-process.js'
import { project } from '../project.js'

/** A memory store in which workers of other machines were heard a minute ago, and one just now; no one takes `video`. */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

const worker = (id, queues) => ({
  id, host: id, boot: 'other', pidns: '1', pid: 1, ticks: 1, queues, concurrency: 20, running: 0, startedAt: 0,
})
export default async () => {
  const harness = await memoryHarness({ startAt: Date.now() - 60_000 })
  const store = await harness.open()
  const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }
  await store.open([{ ...plain, name: 'mail' }, { ...plain, name: 'video' }])
  for (const [queue, id] of [['mail', 'm'], ['video', 'v']])
    await store.enqueue([{ callId: id, queue, jobs: [{ id, task: 't', payload: '1', priority: 0, rememberMs: 0 }] }])
  for (const id of ['gone-1', 'gone-2']) await store.workers.beat(worker(id, ['mail', 'video']), 75_000)
  await harness.advance(60_000)
  await store.workers.beat(worker('here', ['mail']), 75_000)
  return store
}
`
const configFile = `
import { millrace } from 'millrace'
export default millrace({ store: { module: './store.js' }, queues: { mail: {}, video: {} }, tasks: [] })
`
const files = { 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile }

describe('a remote worker that has been silent for 30 s', () => {
  it('is not counted by stats, but listed with its last report', async () => {
    const cwd = project(files)
    const { stdout } = await run('stats', { cwd })

    expect(stdout.split('\n')[0]).toMatch(
      /· 1 worker, 0 of 20 slots in use, heard (?:now|.*s ago), 2 silent, heard 1m(?: .*)? ago$/,
    )
    expect(await runJson('stats', { cwd })).toMatchObject({
      workers: { count: 1, slots: 20, silent: { count: 2, seenAt: expect.any(String) } },
      queues: [
        { queue: 'mail', serving: 1 },
        { queue: 'video', serving: 0 },
      ],
    })
  })

  it('is listed as silent, and serves no queue', async () => {
    const cwd = project(files)
    const { workers } = await runJson<{ workers: { host: string; process: string }[] }>('workers', { cwd })

    expect(workers.map(({ host, process }) => `${host} ${process}`)).toEqual([
      'gone-1 silent',
      'gone-2 silent',
      'here unknown',
    ])
    expect((await run('workers', { cwd })).stdout).toMatch(/^1 worker, 0 of 20 slots in use\n/)
    expect(await runJson('queues list', { cwd })).toMatchObject({
      queues: [
        { queue: 'mail', workers: 1 },
        { queue: 'video', workers: 0 },
      ],
    })
  })
})

it('stats marks a queue with waiting jobs and no worker', async () => {
  const { stdout } = await run('stats', { cwd: project(files) })

  expect(stdout).toMatch(/^video .* no worker$/m)
  expect(stdout).not.toMatch(/^mail .* no worker$/m)
})
