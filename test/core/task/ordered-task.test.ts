/** Ordered tasks: their defaults, their queues, and that every mistake in a definition is told at once with its place. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Registry } from '#src/core/registry.js'
import { isTask } from '#src/core/task/any-task.js'
import { defineOrderedTask } from '#src/core/task/ordered-task.js'
import { defineTask } from '#src/core/task/task.js'
import { issuesOf } from '../../issues-of.js'

/** The issues of a definition that is refused, as `path: message`. */
const mistakes = (options: unknown) => issuesOf(() => defineOrderedTask(options as { name: string }))

describe('an ordered task with a name alone', () => {
  it('has the documented defaults, and a queue of its name', () => {
    const task = defineOrderedTask({ name: 'sync-order' })

    expect(task).toMatchObject({
      kind: 'ordered',
      name: 'sync-order',
      queue: 'sync-order',
      batchSize: 1,
      merge: 'all',
      maxPayloads: 1_000,
      timeLimitMs: 60_000,
      aliases: [],
      retry: { max: 25 },
    })
    // Lowkiq's: 4⁴ + 15 + 29 · 5 seconds.
    expect(task.retry.backoff(5, () => 1 - 2 ** -53)).toBe(416_000)
    expect(task.retry.when(new Error())).toBe(true)
    expect([task.input, task.run, task.id, task.score, task.onExhausted]).toEqual(new Array(5).fill(undefined))
    expect(isTask(task)).toBe(true)
  })
})

describe('an ordered task with everything', () => {
  it('keeps what it was given', () => {
    const given = {
      name: 'sync order',
      queue: 'orders',
      input: z.object({ orderId: z.number(), rev: z.number() }),
      run: async () => {},
      id: (order: { orderId: number }) => order.orderId,
      score: (order: { rev: number }) => order.rev,
      batchSize: 10,
      merge: 'latest',
      maxPayloads: Number.POSITIVE_INFINITY,
      timeLimit: '5m',
      slowAfter: '1m',
      retry: { max: 0, backoff: () => 7, when: () => false },
      onExhausted: () => {},
      aliases: ['old'],
    } as const
    const { queue, input, run, id, score, batchSize, merge, maxPayloads, retry, onExhausted } = given
    const task = defineOrderedTask(given)

    expect(task).toMatchObject({ queue, batchSize, merge, maxPayloads, timeLimitMs: 300_000, slowAfterMs: 60_000 })
    expect(task.retry).toEqual(retry)
    expect(task.aliases).toEqual(['old'])
    expect([task.input, task.run, task.id, task.score, task.onExhausted]).toEqual([input, run, id, score, onExhausted])
  })

  it('gets its handler once, also later', () => {
    const task = defineOrderedTask({ name: 'later' })
    const run = () => {}

    expect(task.handle(run)).toBe(task)
    expect(task.run).toBe(run)
    expect(() => task.handle(run)).toThrow(/task 'later' is not valid:\n {2}handle: the task has a handler already/)
  })
})

describe('a wrong definition', () => {
  const name = 'x'
  const queueForm = '1 to 80 characters of A-Z a-z 0-9 . _ -, the first a letter or digit'
  const noQueue = `queue: must be given if the name of the task is not a valid queue name, which is ${queueForm}`
  const table: [unknown, string][] = [
    [{}, 'name: is missing'],
    [{ name: 'sync order' }, noQueue],
    [{ name: 'x'.repeat(81) }, noQueue],
    [{ name, queue: 'a/b' }, `queue: must be ${queueForm}; got "a/b"`],
    [{ name, id: 'orderId' }, 'id: must be a function; got "orderId"'],
    [{ name, score: 5 }, 'score: must be a function; got 5'],
    [{ name, batchSize: 0 }, 'batchSize: must be a whole number from 1 to 1000; got 0'],
    [{ name, batchSize: 1_001 }, 'batchSize: must be a whole number from 1 to 1000; got 1001'],
    [{ name, merge: 'newest' }, "merge: must be 'all', 'distinct' or 'latest'; got \"newest\""],
    [{ name, maxPayloads: 0 }, 'maxPayloads: must be a whole number of at least 1, or Infinity; got 0'],
    [{ name, maxPayloads: '5' }, 'maxPayloads: must be a whole number of at least 1, or Infinity; got "5"'],
    [{ name, onExhausted: true }, 'onExhausted: must be a function; got true'],
    [{ name, group: 'g' }, 'group: must be a function; got "g"'],
    [
      { name, shouldRun: () => true },
      'shouldRun: is not an option; check its spelling: there are name, queue, input, timeLimit, slowAfter, aliases, run, id, score, group, batchSize, merge, maxPayloads, retry, onExhausted. It is an option of a plain task',
    ],
    [undefined, '(options): must be an object; got undefined'],
  ]

  it.each(table)('%o is refused with its path', (options, message) => {
    expect(mistakes(options)).toEqual([message])
  })

  it('reports every mistake at once, with the name of the task', () => {
    expect(mistakes({ name, id: 1, batchSize: 0, foo: 1 }).map((line) => line.split(':')[0])).toEqual([
      'id',
      'batchSize',
      'foo',
    ])
    expect(() => defineOrderedTask({ name: 'sync', batchSize: 0 })).toThrow(/^ordered task 'sync' is not valid:\n/)
    expect(() => defineOrderedTask({ name: 'a b' })).toThrow(
      /^ordered task 'a b' is not valid:\n {2}queue: must be given/,
    )
  })
})

describe('the registry', () => {
  it('finds the task of an ordered queue, whatever its jobs are named', () => {
    const sync = defineOrderedTask({ name: 'sync', queue: 'orders', aliases: ['sync-order'] })
    const registry = new Registry([sync, defineTask({ name: 'email' })], [])

    expect(registry.orderedTask('orders')).toBe(sync)
    expect(registry.find('sync-order')).toBe(sync)
    expect(registry.orderedTask('default')).toBeUndefined()
    expect(registry.orderedTask('sync')).toBeUndefined()
  })
})
