/** A job enqueued again and revived on the page, in a real browser: with what is stored, whatever of it is shown. */

import { defineTask } from 'millrace'
import { expect, it, onTestFinished, vi } from 'vitest'
import { firstLookMs } from './chromium-program.js'
import { PageBrowser } from './page-browser.js'
import { PageHand } from './page-hand.js'
import { PageScene } from './page-scene.js'

vi.setConfig({ testTimeout: firstLookMs + 120_000 })

const pay = defineTask({ name: 'pay', queue: 'pay', run: async (_: unknown) => {} })
const input = { card: '4242', at: new Date(0), big: 2n ** 60n, bytes: new Uint8Array([1]), tags: new Map([['a', 1]]) }
const meta = { by: 'ada' }

it('a job is enqueued again with its whole input and meta, and with what somebody types', async () => {
  const browser = await PageBrowser.launch()
  onTestFinished(() => browser.close())
  const scene = await PageScene.on('sqlite', { queues: { pay: {} }, tasks: [pay] })
  onTestFinished(() => scene.close())
  const { jobs } = scene.mill.queue('pay')
  const windows = [
    ['whole', {}],
    ['hidden', { hidePayloads: true }],
    ['masked', { redact: (job: object) => ({ ...job, input: { card: '****' } }) as never }],
  ] as const
  await scene.mill.enqueue(pay, input, { id: 'first', meta, delay: '1h' })
  const { page } = await browser.tab()
  /** Enqueues it again; resolves with the new job. */
  const again = async (url: string, text?: string) => {
    const hand = await PageHand.at(page, `${url}queues/pay/jobs/first`)
    await hand.pick('More actions', 'Edit and enqueue again')
    const field = page.getByRole('textbox', { name: 'Input' })
    await field.waitFor()
    const shown = await field.inputValue()
    if (text !== undefined) await hand.fill('Input', text)
    await hand.confirm('Enqueue')
    await expect.poll(async () => (await jobs.list({ state: 'ready' })).jobs).toHaveLength(1)
    const [made] = (await jobs.list({ state: 'ready' })).jobs
    await jobs.delete([made!.id])
    return { shown, made: made! }
  }
  for (const [name, options] of windows) {
    const url = await scene.window(options)
    const { shown, made } = await again(url)
    expect([name, made.input, made.meta]).toEqual([name, input, meta])
    expect([name, shown.includes('1970-01-01')]).toEqual([name, name === 'whole'])
    expect(shown).not.toContain('****')
  }
  const { made } = await again(await scene.window(), '{"id": 1234567890123456789}')
  expect([made.input, made.meta]).toEqual([{ id: 1234567890123456789n }, meta])

  await jobs.bury(['first'])
  const hand = await PageHand.at(page, `${await scene.window(windows[2][1])}queues/pay/jobs/first`)
  await hand.pick('More actions', 'Revive with another input')
  await hand.confirm('Revive')
  await hand.told(/must be another one/)
  await hand.fill('Input', '{"id": 1234567890123456789}')
  await hand.confirm('Revive')
  await hand.told('The job is back in the queue, with this input.')
  expect(await jobs.get('first')).toMatchObject({ state: 'ready', input: { id: 1234567890123456789n }, meta })
})
