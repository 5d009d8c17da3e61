/** A store that fails when a test says so: what an application does when its store is away. */

import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

const mail = defineTask({ name: 'mail', run: async ({ to }: { to: string }) => ({ sent: to }) })

/** Closed when the test is over. */
const made: typeof testMill = (options) => {
  const mill = testMill(options)
  onTestFinished(() => mill.close())
  return mill
}

describe('a store that fails on demand', () => {
  it('fails only the next call, with the error of an absent store or a given one', async () => {
    const mill = made({ tasks: [mail] })
    mill.failNext('enqueue')
    await expect(mill.enqueue(mail, { to: 'a' })).rejects.toMatchObject({ code: 'store-unavailable' })
    await mill.enqueue(mail, { to: 'b' })
    mill.failNext('claim', new Error('cut'))

    await expect(mill.drain()).rejects.toThrow('cut')
    expect(await mill.drain()).toMatchObject([{ result: { sent: 'b' } }])
  })

  it('refuses a kind of call that there is not', () => {
    const save = 'save' as 'enqueue'
    expect(() => made({ tasks: [mail] }).failNext(save)).toThrow(
      "failNext() takes the kind of call that fails, which is one of 'open', 'enqueue', 'claim', 'settle', 'extend', 'depth', 'wait', 'records'; got \"save\".",
    )
  })

  it('is back after an outage without further effects', async () => {
    const mill = made({ tasks: [mail] })
    const isOver = mill.outage()
    await expect(mill.enqueue(mail, { to: 'a' })).rejects.toMatchObject({ code: 'store-unavailable' })
    isOver()
    await mill.enqueue(mail, { to: 'b' })

    expect(await mill.drain()).toMatchObject([{ result: { sent: 'b' } }])
  })

  it('fails every call during an outage', async () => {
    const mill = made({ tasks: [mail] })
    await mill.enqueue(mail, { to: 'a' })
    const isOver = mill.outage()

    await expect(mill.enqueue(mail, { to: 'b' })).rejects.toMatchObject({ code: 'store-unavailable', inDoubt: false })
    await expect(mill.drain()).rejects.toMatchObject({ code: 'store-unavailable' })
    await expect(mill.queue('default').jobs.list()).rejects.toMatchObject({ code: 'store-unavailable' })
    isOver()
    isOver()
    expect(await mill.drain()).toMatchObject([{ result: { sent: 'a' } }])
  })

  it('that loses a settle runs the job again when its lease has ended, as a suspect', async () => {
    const mill = made({ tasks: [mail] })
    await mill.enqueue(mail, { to: 'a' })
    mill.failNext('settle')

    await expect(mill.drain()).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await mill.drain()).toEqual([])
    mill.advance('31s')
    expect(await mill.drain()).toMatchObject([{ attempt: 1, state: 'completed' }])
  })
})
