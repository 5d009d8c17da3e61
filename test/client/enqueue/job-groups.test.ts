/** The groups of jobs: where they come from, what may be one, and what keeps a wrong one out. */
import { defineOrderedTask, defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { InvalidJobError, UnsupportedByStoreError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { nextEvent } from '../../next-event.js'
import { testMill, testMillOn } from '../../test-mill.js'

const crawl = defineTask({ name: 'crawl', group: (url) => new URL(url as string).host })
const tenant = defineTask({ name: 'tenant', group: (id) => id as number })
const free = defineTask({ name: 'free' })
const sync = defineOrderedTask({ name: 'sync', id: (input) => String(input), group: (id) => id.split('-')[0]! })

describe('the group of a job', () => {
  it('comes from the function of its task unless the enqueue sets it', async () => {
    const m = testMill({ tasks: [crawl, free] })
    const made = await m.enqueue(crawl, 'https://example.org/a')
    const said = await m.enqueue(crawl, 'https://example.org/b', { group: 'other' })
    const none = await m.enqueue(free, 1)
    const given = await m.enqueue(free, 1, { group: 'g' })
    const groups = await Promise.all([made, said, none, given].map(async (job) => (await job.record())?.group))

    expect(groups).toEqual(['example.org', 'other', undefined, 'g'])
  })

  it("is none if the enqueue says '', whatever the task's function returns", async () => {
    const m = testMill({ tasks: [crawl] })
    const job = await m.enqueue(crawl, 'https://example.org/a', { group: '' })

    expect(await job.record()).not.toHaveProperty('group')
  })

  it('may be a finite number, which becomes its text', async () => {
    const m = testMill({ tasks: [tenant] })
    const jobs = [await m.enqueue(tenant, 42), await m.enqueue(tenant, 1, { group: 0 })]

    expect(await Promise.all(jobs.map(async (job) => (await job.record())?.group))).toEqual(['42', '0'])
  })

  it('of an ordered job is derived from its id', async () => {
    const m = testMill({ tasks: [sync] })
    const jobs = [await m.enqueue(sync, 'acme-1'), await m.enqueue(sync, 'x', { id: 'other-2' })]

    expect(await Promise.all(jobs.map(async (job) => (await job.record())?.group))).toEqual(['acme', 'other'])
  })

  it('is passed to the handler, also with each job of a batch, and absent without a group', async () => {
    const seen: unknown[] = []
    const plain = defineTask({
      name: 'plain',
      run: (_, { job }) => void seen.push('group' in job ? job.group : 'none'),
    })
    const batch = defineOrderedTask({
      name: 'batch',
      group: (id) => (id === 'b' ? '' : `of ${id}`),
      batchSize: 2,
      run: (_, { jobs }) => void seen.push([...jobs.values()].map((job) => ('group' in job ? job.group : 'none'))),
    })
    const m = testMill({ tasks: [plain, batch], queues: { batch: { shards: 1 } } })
    await m.enqueue(plain, 1, { group: 'g', priority: 1 })
    await m.enqueue(plain, 1)
    await m.enqueueMany(batch, [1, 2], (_, i) => ({ id: ['a', 'b'][i]! }))
    const completed: string[] = []
    const done = nextEvent(m, 'job.completed', ({ id }) => completed.push(id) === 4)
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(seen).toHaveLength(3)
    expect(seen).toEqual(expect.arrayContaining(['g', 'none', ['of a', 'none']]))
  })
})

describe('a wrong group', () => {
  const table: [string, unknown, RegExp][] = [
    ['is not text', () => undefined, /^job of task 'wrong': group must be at most 256 bytes .*; got undefined/],
    ['has a NUL', () => 'a\0b', /group must be .* without NUL.*; got/],
    ['is too long', () => 'é'.repeat(129), /group must be at most 256 bytes/],
    ['is a promise', async () => 'g', /group must be .*; got/],
    ['is NaN', () => Number.NaN, /group must be .* a finite number.*; got NaN/],
    [
      'is an error',
      () => {
        throw new Error('no host')
      },
      /^job of task 'wrong': its group\(\) threw: no host/,
    ],
  ]

  it.each(table)(
    "is refused if the task's function returns one that %s, and nothing is stored",
    async (_, group, message) => {
      const plain = defineTask({ name: 'wrong', group: group as () => string })
      const ordered = defineOrderedTask({ name: 'wrong', queue: 'orders', group: group as () => string })
      for (const [task, options] of [
        [plain, {}],
        [ordered, { id: 'a' }],
      ] as const) {
        const m = testMill({ tasks: [task] })
        const refused = await m.enqueue(task as typeof plain, 1, options).catch((error: unknown) => error)

        expect(refused).toBeInstanceOf(InvalidJobError)
        expect((refused as Error).message).toMatch(message)
        expect((await m.depths()).map(({ ready }) => ready)).toEqual([0])
      }
    },
  )
})

describe('a store without groups', () => {
  function without() {
    const store = new MemoryStore()
    return Object.defineProperty(store, 'traits', { value: { ...memoryTraits, name: 'tiny', groups: false } })
  }

  it.each([crawl, sync])('refuses a mill with a task that has groups: $kind', (task) => {
    expect(() => testMillOn(without(), { tasks: [task] })).toThrow(UnsupportedByStoreError)
    expect(() => testMillOn(without(), { tasks: [task] })).toThrow(
      `the tiny store cannot do this: the groups of task '${task.name}'. Leave \`group\` out, or use a store with groups.`,
    )
  })

  it('refuses a job with a group, even of an undeclared task, and accepts one without', async () => {
    const m = testMillOn(without(), { tasks: [free], tasksElsewhere: ['crawl'], queues: { crawl: {} } })
    const refused = 'the tiny store cannot do this: groups. Leave `group` out, or use a store with groups.'

    await expect(m.enqueue(free, 1, { group: 'g' })).rejects.toThrow(refused)
    await expect(m.enqueue(crawl, 'https://example.org')).rejects.toThrow(refused)
    expect(await (await m.enqueue(free, 1, { group: '' })).status()).toBe('ready')
  })
})
