/** What `doctor` finds of queues that stand still, and what the metrics say of jobs that are put back. */

import { webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { standstills } from '#src/cli/commands/queues/queue-findings.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { Scene } from '../../../client/jobs/standstills.js'
import { valuesIn } from '../../../monitoring/exposition-text.js'
import { testMillOn } from '../../../test-mill.js'

const found = async ({ mill }: Scene) => standstills(mill, (await mill.storedQueues())!)

/** A job that a worker has put back, as those do that do not know its task. */
async function putBack(scene: Scene, id: string): Promise<void> {
  await scene.send(id)
  const [claim] = await scene.claim('mail')
  await scene.store.settle([{ ...claim!, kind: 'release', delayMs: 30_000, error: 'no handler here' }])
}

it('the metrics say of a queue that no worker knows the task of jobs that are put back', async () => {
  const scene = await Scene.on('memory')
  await scene.serve({ tasks: ['bill'] })
  await putBack(scene, 'a')
  const window = webHandler(scene.mill)
  onTestFinished(() => window.close())
  const scrape = await window.fetch(new Request('http://localhost/metrics'), { address: '127.0.0.1' })

  expect(valuesIn(await scrape.text()).get('millrace_queue_standstill{queue="mail",reason="no-task"}')).toBe(1)
})

describe.each(['memory', 'sqlite', 'postgres', 'redis'] as const)('doctor on %s', (kind) => {
  it('names the task of jobs that are put back as no worker knows it', async () => {
    const scene = await Scene.on(kind)
    await scene.serve({ tasks: ['bill'] })
    for (const id of ['a', 'b']) await putBack(scene, id)

    expect(await found(scene)).toEqual([
      {
        level: 'warning',
        what: 'queue',
        text: "2 jobs are put back again and again in queue 'mail': the worker of its queue does not know the task 'send'; start one that does.",
      },
    ])
    await scene.serve()
    expect(await found(scene)).toEqual([])
  })
})

/** A queue on a store whose clock the test moves, with a worker that knows only `bill`, and a job that it has put back. */
async function waiting() {
  let now = Date.now()
  const store = new MemoryStore({ now: () => now, mono: () => now })
  const mill = testMillOn(store, { queues: { mail: {} }, tasksElsewhere: ['send', 'bill'] })
  const enqueue = (task: string) => mill.enqueueNamed(task, undefined, { queue: 'mail' })
  await enqueue('send')
  const about = { id: 'w', host: 'elsewhere', boot: 'b', pidns: 'p', pid: 1, ticks: 1, startedAt: now }
  await store.workers.beat({ ...about, queues: ['mail'], concurrency: 2, running: 0, taskNames: ['bill'] }, 60_000)
  const { claims } = await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
  await store.settle([{ ...claims[0]!, kind: 'release', delayMs: 30_000, error: 'no handler here' }])
  const texts = async () => {
    now += 6_000
    return (await standstills(mill, (await mill.storedQueues())!)).map(({ text }) => text)
  }
  return { enqueue, texts }
}

describe('doctor', () => {
  it('names the task of jobs that are put back also if other jobs of the queue have been waiting for long', async () => {
    const { enqueue, texts } = await waiting()
    await enqueue('bill')

    expect(await texts()).toEqual([
      "1 job is put back again and again in queue 'mail': the worker of its queue does not know the task 'send'; start one that does.",
    ])
  })

  it('says once why a queue stands still whose first job has the unknown task', async () => {
    const { enqueue, texts } = await waiting()
    await enqueue('send')

    expect(await texts()).toEqual([
      "1 job waits in queue 'mail', the first for 6s: the worker of its queue does not know the task 'send'; start one that does.",
    ])
  })
})
