/** Bad input for ordered tasks: each wrong thing gives one clear typed error, and nothing is stored. */

import { type AnyTask, defineOrderedTask, defineTask, millrace } from 'millrace'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'

describe('an enqueue for an ordered task', () => {
  const anything = defineTask({ name: 'anything' })
  const task = defineOrderedTask({ name: 'sync', queue: 'orders' })
  const strict = defineOrderedTask({
    name: 'sync',
    queue: 'orders',
    input: z.object({ order: z.string() }),
    id: (input) => input.order.trim(),
    score: (input) => (input.order === 'fails' ? BigInt(1.5) : 1) as number,
  })
  const other = defineOrderedTask({ name: 'other', queue: 'orders', id: () => 1 })
  const plainQueue = defineOrderedTask({ name: 'plain-queue', queue: 'high', id: () => 1 })
  const nowhere = defineOrderedTask({ name: 'nowhere', id: () => 1 })
  const promising = defineOrderedTask({ name: 'sync', queue: 'orders', id: (async () => 'a') as never })
  const mill = millrace({
    store: 'memory:',
    tasks: [task, anything],
    tasksElsewhere: [plainQueue, other, nowhere].map(({ name }) => name),
    queues: { high: {}, unowned: { ordered: true } },
  })
  const id = 'a'

  afterAll(() => mill.close())

  it.each<[string, AnyTask, unknown, unknown, RegExp, code?: string]>([
    ['no id', task, 1, {}, /needs an id, .* Give one when you enqueue, as \{ id \}, or define the task with/],
    ['an expiry', task, 1, { id, expiresIn: '2m' }, /expiresIn is for plain tasks: payloads of an ordered job/],
    ['fields', task, 1, { id, fields: { a: 1 } }, /fields is for plain tasks: those of an ordered id end with each/],
    [
      'ifWaiting',
      task,
      1,
      { id, ifWaiting: 'replace' },
      /ifWaiting is for plain tasks: payloads of an ordered id merge\. With merge: 'latest' of the task/,
    ],
    ['an empty id', task, 1, { id: '' }, /id must be 1 to 256 bytes .*, or a finite number; got ""/],
    ['an id of 257 bytes', task, 1, { id: 'é'.repeat(129) }, /id must be 1 to 256 bytes/],
    ['NaN as id', task, 1, { id: Number.NaN }, /id must be .*, or a finite number; got NaN/],
    ['no id although the task has a function', strict, { order: 'a' }, { id: null }, /id must be .*; got null/],
    ['an empty id by the task', strict, { order: ' ' }, {}, /id must be .*; got ""/],
    ['a promised id', promising, 1, {}, /id must be .*; got \[object Promise\]/],
    ['NaN as score', task, 1, { id, score: Number.NaN }, /score must be a finite number; got NaN/],
    ['an infinite score', task, 1, { id, score: Infinity }, /score must be a finite number; got Infinity/],
    ['a score of text', task, 1, { id, score: '5' }, /score must be a finite number; got "5"\..*Number\(text\)/],
    ['a Date as score', task, 1, { id, score: new Date(0) }, /score must be a finite number; .*date\.getTime\(\)/],
    ['a bigint as score', task, 1, { id, score: 5n }, /score must be a finite number; got 5n\. Give Number\(score\)/],
    ['a function of the task that throws', strict, { order: 'fails' }, {}, /task 'sync': its score\(\) threw: /],
    ['an input of the wrong shape', strict, { order: 1 }, {}, /input of a job of task 'sync' does not match/],
    ['a priority', task, 1, { id, priority: 3 }, /'priority' is not an option of enqueue for an ordered task/],
    ['a group', task, 1, { id, group: 'g' }, /'group' is not an option .*; known are id, score, delay, runAt/],
    ['another queue', task, 1, { id, queue: 'high' }, /'queue' is not an option of enqueue for an ordered/],
    ['an unknown option', task, 1, { id, run_at: 5 }, /'run_at' is not an option/],
    ['a bare number as runAt', task, 1, { id, runAt: 1_536_323_288 }, /runAt must be a valid Date or ISO/],
    ['delay and runAt', task, 1, { id, delay: 1, runAt: new Date() }, /delay or runAt, not both/],
    ['a meta that is a list', task, 1, { id, meta: [] }, /meta must be a plain object/],
    ['options that are no object', task, 1, 5, /options must be an object/],
    ['an input over the limit', task, 'x'.repeat(256_001), { id }, /takes 256003 bytes/, 'payload-too-large'],
    ['a queue that is not ordered', plainQueue, 1, {}, /'high' is not ordered in this mill\. Add the task to/],
    ['a queue of another task', other, 1, {}, /'orders' belongs to the task 'sync'/],
    ['a queue that is not declared', nowhere, 1, {}, /queue 'nowhere' is not declared/, 'queue-unknown'],
    ['a plain job', anything, 1, { queue: 'orders' }, /'orders' is ordered and belongs to the task 'sync'/],
    ['a plain job without a known task', anything, 1, { queue: 'unowned' }, /takes only jobs of an ordered/],
  ])('refuses %s', async (_, of, input, options, message, code = 'job-invalid') => {
    const error = await mill.enqueue(of, input, options as never).catch((thrown) => thrown)

    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it("keeps an error of the task's function as the cause", async () => {
    const error = await mill.enqueue(strict, { order: 'fails' }).catch((thrown) => thrown)

    expect(error.cause).toBeInstanceOf(RangeError)
  })

  it('has stored none of these jobs', async () => {
    const depths = await mill.depths()

    expect(depths.map(({ ready, scheduled, payloads }) => ready + scheduled + payloads)).toEqual([0, 0, 0, 0])
  })
})
