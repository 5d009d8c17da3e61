/** A mill on SQS: what its workers do there, and what it costs. */

import { defineTask, UnrecoverableError } from 'millrace'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiCalls } from '#src/stores/sqs/client/api-calls.js'
import { openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { type StrictSqs, strictSqs } from './strict-sqs.js'

let sqs: StrictSqs
beforeAll(async () => {
  sqs = await strictSqs()
})
afterAll(() => sqs.close())

let namespaces = 0
async function freshStore() {
  const calls = new ApiCalls()
  const api = await openSqs({ region: 'eu-central-1', endpoint: sqs.endpoint, poll: 'first' }, calls)
  return { store: new SqsStore({ api, namespace: `mill${++namespaces}` }), calls }
}

describe('a mill on SQS', () => {
  it('runs every job, one that fails again, and buries one that cannot be mended', async () => {
    const { store } = await freshStore()
    const ran: string[] = []
    const task = defineTask({
      name: 'greet',
      retry: { max: 3, backoff: () => 1 },
      async run(name, ctx) {
        ran.push(`${name} ${ctx.job.attempt}`)
        if (name === 'late' && ctx.job.attempt === 1) throw new Error('not yet')
        if (name === 'broken') throw new UnrecoverableError('never')
      },
    })
    const mill = testMillOn(store, { tasks: [task] })
    const names = ['late', 'broken', ...Array.from({ length: 30 }, (_, i) => `job-${i}`)]
    const completed = recorded(mill, 'job.completed')
    const ended = Promise.all([
      nextEvent(mill, 'job.buried'),
      nextEvent(mill, 'job.completed', () => completed.length === names.length - 1),
    ])
    await mill.createQueues()
    await mill.enqueueMany(task, names)
    const worker = mill.worker({ concurrency: 4 })
    await worker.start()
    await ended
    await worker.stop()

    expect(ran.sort()).toEqual([...names.map((name) => `${name} 1`), 'late 2'].sort())
    expect(await mill.queue('default').depth()).toMatchObject({ ready: 0, running: 0, scheduled: 0, dead: 1 })
  })

  it('costs at most 0.31 calls a job where there is enough to do', async () => {
    const { store, calls } = await freshStore()
    const task = defineTask({ name: 'work', run: async () => {} })
    const mill = testMillOn(store, { tasks: [task] })
    const count = 2_000
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === count)
    await mill.createQueues()
    await mill.enqueueMany(
      task,
      Array.from({ length: count }, (_, i) => i),
    )
    const worker = mill.worker({ concurrency: 10 })
    await worker.start()
    await ended
    await worker.stop()

    console.log(calls.byKind)
    expect(calls.total / count).toBeLessThanOrEqual(0.31)
  })
})
