/** What the types promise, when it runs: jobs without input, listings by task, results said ahead, and what ends with its block. */

import { type AnyTask, type Duration, defineTask, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../test-mill.js'

const tidy = defineTask({ name: 'tidy', run: async (input) => String(input) })
const resize = defineTask({ name: 'resize', aliases: ['shrink'], run: async (input: { file: string }) => input.file })
const shrink = defineTask({ name: 'shrink', run: async (input: { file: string }) => input.file })

describe.each(storeKinds)('on %s', (kind) => {
  it('a job that is enqueued without input is run with undefined', async () => {
    const mill = testMill({ tasks: [tidy] }, kind)
    await mill.worker().start()

    expect(await (await mill.enqueue(tidy)).result({ timeout: '5s' })).toBe('undefined')
  })

  it('a listing by task holds its jobs only, those under its former names too', async () => {
    const before = testMill({ tasks: [tidy, shrink] }, kind)
    expect((await before.queue('default').jobs.list({ task: tidy })).jobs).toEqual([])

    await before.enqueue(tidy)
    await before.enqueue(shrink, { file: 'a.png' }, { id: 'a' })
    const { jobs } = await before.queue('default').jobs.list({ task: resize })

    expect(jobs.map(({ id, input }) => [id, input?.file])).toEqual([['a', 'a.png']])
  })

  it('a page by task looks at `limit` jobs, and may hold none and yet lead on', async () => {
    const mill = testMill({ tasks: [tidy, resize] }, kind)
    await mill.enqueue(tidy)
    await mill.enqueue(resize, { file: 'a.png' })
    const { list } = mill.queue('default').jobs
    const first = await list({ task: resize, limit: 1 })

    expect(first).toEqual({ jobs: [], cursor: expect.any(String) })
    expect((await list({ task: resize, limit: 1, cursor: first.cursor! })).jobs).toMatchObject([{ task: 'resize' }])
  })

  it('the morgue lists by task as well', async () => {
    const mill = testMill({ tasks: [tidy, resize] }, kind)
    await mill.enqueue(tidy)
    await mill.enqueue(resize, { file: 'a.png' })
    await mill.queue('default').jobs.bury('all')

    expect((await mill.queue('default').morgue.list({ task: resize })).jobs).toMatchObject([{ task: 'resize' }])
  })
})

it('a listing by what is no task is refused', async () => {
  const { jobs, morgue } = testMill({ tasks: [tidy] }).queue('default')
  const task = 'tidy' as unknown as AnyTask

  await expect(jobs.list({ task })).rejects.toThrow('list({ task }) expects a task made by defineTask() or')
  await expect(morgue.list({ task })).rejects.toMatchObject({ code: 'argument-invalid' })
})

it('a task whose result is said ahead is the same task', () => {
  const task = defineTask({ name: 'encode' })

  expect(task.returns<{ seconds: number }>()).toBe(task)
})

it('text that was asserted to be a duration is refused where it is used', async () => {
  const mill = testMill({ tasks: [tidy] })
  const soon: string = 'soon'

  await expect(mill.enqueue(tidy, undefined, { delay: soon as Duration })).rejects.toThrow('delay must be a duration')
})

describe('what `await using` declares', () => {
  it('is a mill that is closed when its block ends, however it ends', async () => {
    const made = millrace({ store: 'memory:', tasks: [tidy] })
    const block = async () => {
      await using mill = made
      await mill.enqueue(tidy)
      throw new Error('the block failed')
    }

    await expect(block()).rejects.toThrow('the block failed')
    await expect(made.enqueue(tidy)).rejects.toMatchObject({ code: 'closed' })
  })

  it('is a worker that is stopped, a listener and a throttled queue that are closed', async () => {
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
