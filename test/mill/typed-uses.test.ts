/** What the types promise, when it runs: jobs without input, listings by task, results said ahead, and what ends with its block. */

import { type AnyTask, type Duration, defineTask, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../test-mill.js'

const tidy = defineTask({ name: 'tidy', run: async (input) => String(input) })
const resize = defineTask({ name: 'resize', aliases: ['shrink'], run: async (input: { file: string }) => input.file })
const shrink = defineTask({ name: 'shrink', run: async (input: { file: string }) => input.file })

describe.each(storeKinds)('on %s', (kind) => {
  it('a job enqueued without input runs with undefined', async () => {
    const mill = testMill({ tasks: [tidy] }, kind)
    await mill.worker().start()

    expect(await (await mill.enqueue(tidy)).result({ timeout: '5s' })).toBe('undefined')
  })

  it('a list by task has only its jobs, with those under its former names', async () => {
    const before = testMill({ tasks: [tidy, shrink] }, kind)
    expect((await before.queue('default').jobs.list({ task: tidy })).jobs).toEqual([])

    await before.enqueue(tidy)
    await before.enqueue(shrink, { file: 'a.png' }, { id: 'a' })
    const { jobs } = await before.queue('default').jobs.list({ task: resize })

    expect(jobs.map(({ id, input }) => [id, input?.file])).toEqual([['a', 'a.png']])
  })

  it('a page by task examines `limit` jobs, and may be empty and still have a cursor', async () => {
    const mill = testMill({ tasks: [tidy, resize] }, kind)
    await mill.enqueue(tidy)
    await mill.enqueue(resize, { file: 'a.png' })
    const { list } = mill.queue('default').jobs
    const first = await list({ task: resize, limit: 1 })

    expect(first).toEqual({ jobs: [], cursor: expect.any(String) })
    expect((await list({ task: resize, limit: 1, cursor: first.cursor! })).jobs).toMatchObject([{ task: 'resize' }])
  })

  it('the morgue can be listed by task as well', async () => {
    const mill = testMill({ tasks: [tidy, resize] }, kind)
    await mill.enqueue(tidy)
    await mill.enqueue(resize, { file: 'a.png' })
    await mill.queue('default').jobs.bury('all')

    expect((await mill.queue('default').morgue.list({ task: resize })).jobs).toMatchObject([{ task: 'resize' }])
  })
})

it('a list by something that is not a task is refused', async () => {
  const { jobs, morgue } = testMill({ tasks: [tidy] }).queue('default')
  const task = 'tidy' as unknown as AnyTask

  await expect(jobs.list({ task })).rejects.toThrow('list({ task }) expects a task made by defineTask() or')
  await expect(morgue.list({ task })).rejects.toMatchObject({ code: 'argument-invalid' })
})

it('a task with a declared result type is the same task', () => {
  const task = defineTask({ name: 'encode' })

  expect(task.returns<{ seconds: number }>()).toBe(task)
})

it('text that was cast to a duration is refused on use', async () => {
  const mill = testMill({ tasks: [tidy] })
  const soon: string = 'soon'

  await expect(mill.enqueue(tidy, undefined, { delay: soon as Duration })).rejects.toThrow('delay must be a duration')
})

describe('a resource declared by `await using`', () => {
  it('is a mill that closes when its block ends, in any way', async () => {
    const made = millrace({ store: 'memory:', tasks: [tidy] })
    const block = async () => {
      await using mill = made
      await mill.enqueue(tidy)
      throw new Error('the block failed')
    }

    await expect(block()).rejects.toThrow('the block failed')
    await expect(made.enqueue(tidy)).rejects.toMatchObject({ code: 'closed' })
  })

  it('is a worker that stops, a listener or a throttled queue that closes', async () => {
    const mill = testMill({ tasks: [tidy] })
    const made = {
      worker: mill.worker(),
      listener: mill.listener('default'),
      pages: mill.throttledQueue<string>('pages', { limit: 1, window: '1s' }),
    }
    {
      await using worker = made.worker
      await using _listener = made.listener
      await using _pages = made.pages
      await worker.start()
    }

    expect(made.worker.status().state).toBe('stopped')
    await expect(made.listener.next()).rejects.toMatchObject({ code: 'closed' })
    await expect(made.pages.pop()).rejects.toMatchObject({ code: 'closed' })
  })
})
