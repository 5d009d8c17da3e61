/** What doctor says of deaths that wait to be reported: how many, of which task, since when, and why no worker reports them. */

import { type Death, defineTask, type Mill, type MillOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { deathFindings, judgeDeaths } from '#src/cli/commands/queues/death-findings.js'
import type { DeathBacklog } from '#src/stores/contract/job-records.js'
import { nextEvent } from '../../../next-event.js'
import { testMill } from '../../../test-mill.js'
import { lentPostgresAddress } from '../../../worker-postgres.js'
import { workerRedis } from '../../../worker-redis.js'
import { run } from '../../command-in-process.js'
import { project } from '../../project.js'

const now = 1_000_000_000
const send: DeathBacklog = { queue: 'mail', task: 'send', count: 3, since: now - 90_000_000 }
const of = (name: string, ...taskNames: string[]) => ({ queues: [name], taskNames })
const judged = (
  workers: Parameters<typeof judgeDeaths>[0]['workers'],
  hasOnDead: boolean | undefined = true,
  backlogs = [send],
) => judgeDeaths({ backlogs, now, workers, hasOnDead: () => hasOnDead }).map(({ text }) => text)
const waits = "3 deaths of jobs of task 'send' in queue 'mail' wait to be reported, the first for 1d 1h: "

describe('the finding about deaths', () => {
  it('says that no worker serves the queue', () => {
    const text = 'no worker serves the queue. Start one that has the task with `onDead`: `millrace work --queues mail`.'
    expect(judgeDeaths({ backlogs: [send], now, workers: [], hasOnDead: () => true })).toEqual([
      { level: 'warning', what: 'deaths', text: `${waits}${text}` },
    ])
    expect(judged([of('other', 'send'), { ...of('mail', 'send'), state: 'stopping' }])).toEqual([`${waits}${text}`])
  })

  it('says that no worker knows the task, or no configuration if the store does not know its workers', () => {
    const text = 'Define it with `onDead`, or give its name to another task with `onDead` as one of its `aliases`.'
    expect(judged([of('mail', 'other')])).toEqual([`${waits}none of its workers knows the task. ${text}`])
    expect(judgeDeaths({ backlogs: [send], now, workers: undefined, hasOnDead: () => undefined })[0]!.text).toBe(
      `${waits}this configuration has no such task. ${text}`,
    )
  })

  it('says that the task has no onDead any more', () => {
    expect(judged([of('mail', 'send')], false)).toEqual([
      `${waits}the task has no \`onDead\` in this configuration. Give it one again; a task that does nothing will do.`,
    ])
  })

  it('says otherwise where the refusals of a worker stand', () => {
    const text = "its workers may know the task. If the number does not fall, their event 'hook.failed' says why."
    for (const workers of [[of('mail', 'send')], [{ queues: ['mail'] }], undefined])
      expect(judged(workers)).toEqual([`${waits}${text}`])
  })

  it('names the five tasks whose deaths have waited longest, and counts at most 10,000 deaths of each', () => {
    const backlogs = Array.from({ length: 7 }, (_, i) => ({ ...send, task: `t${i}`, since: now - 1_000 * (i + 1) }))
    const texts = judged([], true, backlogs)
    expect(texts.map((text) => /task '(\w+)'/.exec(text)?.[1])).toEqual(['t6', 't5', 't4', 't3', 't2', undefined])
    expect(texts.at(-1)).toBe('deaths of jobs of 2 more tasks wait too.')
    expect(judged([], true, backlogs.slice(1)).at(-1)).toBe('deaths of jobs of 1 more task wait too.')
    expect(judged([], true, [{ ...send, count: 10_000 }])[0]).toMatch(/^at least 10000 deaths of jobs/)
    expect(judged([], true, [{ ...send, count: 1 }])[0]).toMatch(
      /^1 death of jobs of task 'send' in queue 'mail' waits to/,
    )
  })
})

const obituary = defineTask({ name: 'obituary', queue: 'obituaries', run: async (_: Death) => {} })
const mailing = defineTask({ name: 'send', queue: 'mail', onDead: obituary, run: async (_: string) => {} })
const other = defineTask({ name: 'other', queue: 'mail', run: async () => {} })

/** Where a store of each kind is, if the mill of the test does not say. */
const stores = {
  memory: async () => ({}),
  sqlite: async () => ({}),
  redis: async () => ({ store: (await workerRedis()).url, namespace: `deaths_${Math.random().toString(36).slice(2)}` }),
  postgres: async () => ({ store: await lentPostgresAddress() }),
}

describe.each(Object.entries(stores))('on %s', (kind, storeOf) => {
  it('deaths are named until a worker that knows their task reports them', async () => {
    const options: Partial<MillOptions> = { ...(await storeOf()), tasks: [mailing, other, obituary] }
    const mill = testMill(options, kind === 'sqlite' ? 'sqlite' : 'memory')
    const found = async (leastMs?: number) =>
      (await deathFindings(mill, (await mill.storedQueues())!, leastMs)).map(({ text }) => text)
    expect(await found(0)).toEqual([])
    await mill.enqueueMany(mailing, ['a', 'b', 'c'])
    await mill.enqueue(other)
    await mill.queue('mail').jobs.bury('all')

    expect(await found(0)).toEqual([
      expect.stringMatching(/^3 deaths of jobs of task 'send' in queue 'mail' wait .*: no worker serves the queue\./),
    ])
    expect(await found()).toEqual([])

    const reported = nextEvent(mill as Mill, 'job.enqueued', ({ queue }) => queue === 'obituaries')
    const worker = mill.worker({ queues: ['mail'] })
    await worker.start()
    await reported
    await worker.stop()
    expect((await mill.queue('obituaries').depth()).ready).toBe(3)
    expect(await found(0)).toEqual([])
  })
})

/** A memory store in which two jobs have died 3 minutes ago. A worker of another machine serves their queue without their task. */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

export default async () => {
  const harness = await memoryHarness({ startAt: Date.now() - 180_000 })
  const store = await harness.open()
  await store.open([{ kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, name: 'mail' }])
  const job = { task: 'send', payload: '1', priority: 0, rememberMs: 0, reportsDeath: true }
  await store.enqueue([{ callId: 'c', queue: 'mail', jobs: [{ ...job, id: 'a' }, { ...job, id: 'b' }] }])
  await store.records.bury('mail', 'all')
  await harness.advance(180_000)
  const of = { id: 'w', host: 'far', boot: 'other', pidns: '1', pid: 1, ticks: 1, queues: ['mail'], taskNames: ['other'] }
  await store.workers.beat({ ...of, concurrency: 1, running: 0, startedAt: 0 }, 75_000)
  return store
}
`
const configFile = `
import { defineTask, millrace } from 'millrace'
export default millrace({ store: { module: './store.js' }, tasks: [defineTask({ name: 'other', queue: 'mail' })] })
`

it('the command names deaths that have waited for two minutes, as a warning', async () => {
  const files = { 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile }

  expect(await run('doctor', { cwd: project(files) })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^warning {2}deaths {2}2 deaths of jobs of task 'send' in queue 'mail' wait to be reported, the first for 3m: none of its workers knows the task\./m,
    ),
  })
})
