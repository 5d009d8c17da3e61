/** The morgue on SQS: dead-letter queues, looked at and emptied. */

import { defineOrderedTask, defineTask, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { freshStores } from './fresh-store.js'

const { service, freshStore } = freshStores('each')

async function freshMill() {
  const { store, api, namespace } = await freshStore()
  const ran: unknown[] = []
  let isWell = false
  const run = (input: unknown) => {
    if (!isWell) throw new UnrecoverableError('it is ill')
    ran.push(input)
  }
  const task = defineTask({ name: 'mend', run })
  const book = defineOrderedTask({
    ...{ name: 'book', queue: 'books', batchSize: 1 },
    run: (all) => {
      for (const payloads of all.values()) payloads.forEach(run)
    },
  })
  const mill = testMillOn(store, { tasks: [task, book] })
  await mill.createQueues()
  const buried = async (count: number, enqueue: () => Promise<unknown>) => {
    const dead = recorded(mill, 'job.buried')
    const all = nextEvent(mill, 'job.buried', () => dead.length === count)
    const worker = mill.worker()
    await enqueue()
    await worker.start()
    await all
    await worker.stop()
  }
  const completed = async (count: number) => {
    isWell = true
    const done = recorded(mill, 'job.completed')
    const all = nextEvent(mill, 'job.completed', () => done.length === count)
    const worker = mill.worker()
    await worker.start()
    await all
    await worker.stop()
    return done
  }
  return { ...{ mill, api, namespace, task, book, ran, buried, completed }, queue: mill.queue('default') }
}

/** What a poll under way has taken already is live too. */
async function counts(queue: { depth(): Promise<{ ready: number; running: number; dead: number }> }) {
  const { ready, running, dead } = await queue.depth()
  return { live: ready + running, dead }
}

describe('the morgue on SQS', { timeout: 30_000 }, () => {
  it('lists dead jobs with reason, error and meta, and shows them again on the next look', async () => {
    const { mill, task, queue, buried } = await freshMill()
    await buried(12, () =>
      mill.enqueueMany(
        task,
        Array.from({ length: 12 }, (_, n) => n),
        (n) => ({ meta: { n } }),
      ),
    )
    for (const by of ['time', 'id'] as const) {
      const { jobs, cursor } = await queue.morgue.list({ by })
      expect(jobs.map(({ input }) => input).sort((a, b) => Number(a) - Number(b))).toEqual([...Array(12).keys()])
      expect(
        jobs.every(({ state, reason, task: name }) => `${state} ${reason} ${name}` === 'dead unrecoverable mend'),
      ).toBe(true)
      expect(jobs.every(({ error, input, meta }) => error?.includes('it is ill') && meta?.['n'] === input)).toBe(true)
      expect(cursor).toBe(undefined)
    }
    const { jobs } = await queue.morgue.list({ limit: 3 })
    expect(jobs).toHaveLength(3)
    expect(await queue.morgue.get(jobs[0]!.id)).toMatchObject({ id: jobs[0]!.id, state: 'dead' })
    expect(await queue.morgue.get('nobody')).toBe(undefined)
    expect(await queue.depth()).toMatchObject({ dead: 12 })
    await expect(queue.morgue.list({ cursor: 'x' })).rejects.toMatchObject({ code: 'argument-invalid' })
    await expect(queue.jobs.list()).rejects.toMatchObject({ code: 'unsupported-by-store' })
  })

  it('revives some by their ids, then all, and each has all its attempts again', async () => {
    const { mill, task, queue, ran, buried, completed } = await freshMill()
    await buried(25, () =>
      mill.enqueueMany(
        task,
        Array.from({ length: 25 }, (_, n) => n),
      ),
    )
    const { jobs } = await queue.morgue.list()
    expect(await queue.morgue.revive([jobs[0]!.id, jobs[1]!.id, 'nobody'])).toBe(2)
    expect(await counts(queue)).toEqual({ live: 2, dead: 23 })
    expect(await queue.morgue.revive('all')).toBe(23)
    expect(await counts(queue)).toEqual({ live: 25, dead: 0 })
    const done = await completed(25)
    expect(ran.sort((a, b) => Number(a) - Number(b))).toEqual([...Array(25).keys()])
    expect(done.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(done.map(({ id }) => id)).toContain(jobs[0]!.id)
  })

  it('deletes some by their ids, then all', async () => {
    const { mill, task, queue, buried } = await freshMill()
    await buried(3, () => mill.enqueueMany(task, [1, 2, 3]))
    const { jobs } = await queue.morgue.list()
    expect(await queue.morgue.delete([jobs[0]!.id])).toBe(1)
    expect((await queue.morgue.list()).jobs.map(({ id }) => id).sort()).toEqual([jobs[1]!.id, jobs[2]!.id].sort())
    expect(await queue.morgue.delete('all')).toBe(2)
    expect(await counts(queue)).toEqual({ live: 0, dead: 0 })
  })

  it('revives the payloads of an ordered id in order, and finds the id by its number', async () => {
    const { mill, book, ran, buried, completed } = await freshMill()
    const books = mill.queue('books')
    await buried(3, async () => {
      for (const n of [1, 2, 3]) await mill.enqueue(book, n, { id: 7 })
    })
    expect((await books.morgue.list()).jobs[0]).toMatchObject({ id: '7', payloads: [{ input: 1 }] })
    expect(await books.morgue.revive('all')).toBe(3)
    await completed(1)
    expect(ran.slice(0, 1)).toEqual([1])
  })

  it('shows a message that is not a job, and revives it unchanged', async () => {
    const { api, namespace, queue, buried } = await freshMill()
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${namespace}-default` })
    await buried(1, () => api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: 'a', MessageBody: 'gAJ9cQAu' }] }))
    const { jobs } = await queue.morgue.list()
    expect(jobs).toMatchObject([
      { state: 'dead', reason: 'bad-payload', error: expect.stringMatching(/^its body is no JSON object\n/) },
    ])
    expect(await queue.morgue.revive('all')).toBe(1)
    await buried(1, async () => {})
    expect((await queue.morgue.list()).jobs).toHaveLength(1)
    expect(await counts(queue)).toEqual({ live: 0, dead: 1 })
  })

  it('loses no job if SQS does not delete it: it then exists twice', async () => {
    const { mill, task, queue, buried } = await freshMill()
    await buried(1, () => mill.enqueue(task, 1))
    await service().inject({ call: 'DeleteMessageBatch', entries: [0], code: 'InternalError', times: 4 })
    await expect(queue.morgue.revive('all')).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await counts(queue)).toEqual({ live: 1, dead: 1 })
  })
})
