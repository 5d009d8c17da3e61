/** Handlers that a test gives to tasks, in the place of those that they have. */

import { defineOrderedTask, defineTask } from 'millrace'
import { testMill } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const mail = defineTask({ name: 'mail', input: z.object({ to: z.string() }), run: async ({ to }) => ({ sent: to }) })

describe('a handler given by a test', () => {
  const bill = defineTask({ name: 'bill', input: z.object({ of: z.string() }) }).returns<{ paid: boolean }>()
  bill.handle(async () => {
    throw new Error('a test charged a real card')
  })
  const paid = async (answer: boolean) => {
    const mill = testMill({ tasks: [bill, mail], handlers: { bill: async () => ({ paid: answer }) } })
    await mill.enqueue(bill, { of: 'ada' })
    await mill.enqueue(mail, { to: 'ada' })
    return (await mill.drain()).map(({ result }) => result)
  }

  it('replaces the attached one, and can differ in each test', async () => {
    expect(await paid(true)).toEqual([{ paid: true }, { sent: 'ada' }])
    expect(await paid(false)).toEqual([{ paid: false }, { sent: 'ada' }])
    const mill = testMill({ tasks: [bill] })
    await mill.enqueue(bill, { of: 'ada' })
    expect((await mill.drain()).map(({ error }) => String(error))).toEqual(['Error: a test charged a real card'])
  })

  it('runs a task that has none, also an ordered, a batch and an isolated one', async () => {
    const none = defineTask({ name: 'none' }).returns<number>()
    const sync = defineOrderedTask({ name: 'sync', id: (n: number) => n })
    const many = defineTask({ name: 'many', queue: 'many', batch: { size: 2 } }).returns<number>()
    const alone = defineTask({ name: 'alone', queue: 'alone', isolate: 'process' }).returns<number>()
    const seen: unknown[] = []
    const mill = testMill({
      tasks: [none, sync, many, alone],
      handlers: {
        none: () => 1,
        sync: (byId) => void seen.push([...byId]),
        many: async (inputs) => inputs.map((_, i) => i),
        alone: async () => 5,
      },
    })
    await mill.enqueueMany([
      [none, 0],
      [sync, 7],
      [many, 0],
      [many, 0],
      [alone, 0],
    ])

    const ran = await mill.drain()
    expect(ran.map(({ task, result }) => [task, result]).sort()).toEqual([
      ['alone', 5],
      ['many', 0],
      ['many', 1],
      ['none', 1],
      ['sync', undefined],
    ])
    expect(seen).toEqual([[['7', [7]]]])
  })

  it('is refused for an unknown task, and if it is not a function', () => {
    const handlers = { bil: () => {}, mail: 7 } as object
    expect(() => testMill({ tasks: [bill, mail], handlers })).toThrow(
      /handlers\.bil: is no task of this mill; its tasks are bill, mail[\s\S]*handlers\.mail: must be a function/,
    )
  })
})
