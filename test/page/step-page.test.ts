/** Steps and signals on the page of a job, in a real browser. */

import { defineSignal, defineTask, type JobState } from 'millrace'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { violations } from './axe-violations.js'
import { firstLookMs } from './chromium-program.js'
import { hostileTexts } from './hostile-texts.js'
import { PageBrowser, type TabOptions } from './page-browser.js'
import { PageHand } from './page-hand.js'
import { PageScene } from './page-scene.js'

// A browser beside a busy machine takes its time.
vi.setConfig({ testTimeout: 120_000 })

const approved = defineSignal({ name: 'approved', data: z.object({ yes: z.boolean() }) })
const hostile = hostileTexts.find((text) => text.startsWith('<img') && text.length < 60)!
const order = defineTask({
  name: 'order',
  queue: 'orders',
  signals: [approved, defineSignal({ name: 'stopped' })],
  async run(_: { id: string }, ctx) {
    await ctx.step('charge', () => ({ receipt: 'R-1', by: hostile }))
    await ctx.step(hostile, () => undefined)
    await ctx.waitFor(approved, { timeout: '7d' })
  },
})

let browser: PageBrowser
let scene: PageScene
let url: string
beforeAll(async () => {
  browser = await PageBrowser.launch()
  scene = await PageScene.on('sqlite', {
    queues: { orders: { retention: { results: 'untilDeleted' } } },
    tasks: [order],
  })
  url = await scene.window()
  await scene.mill.worker().start()
}, firstLookMs)
afterAll(async () => {
  await browser?.close()
  await scene?.close()
})
afterEach(async () => {
  expect(await browser.closeTabs()).toEqual([])
})

/** The page of an order that waits for its approval. */
async function pageOf(id: string, tab: TabOptions = {}): Promise<{ page: Page; hand: PageHand }> {
  const job = await scene.mill.enqueue(order, { id }, { id })
  await vi.waitFor(async () => expect(await job.status()).toBe('waiting' satisfies JobState), 10_000)
  const { page } = await browser.tab(tab)
  const hand = await PageHand.at(page, `${url}queues/orders/jobs/${id}`)
  return { page, hand }
}

it('shows the steps with their results, and the signal that the job waits for', async () => {
  const { page } = await pageOf('shown')
  const steps = page.getByRole('region', { name: 'Steps and signals' })
  const waits = page.getByRole('region', { name: 'Waits for a signal' })

  expect(await steps.getByRole('listitem').count()).toBe(2)
  expect(await steps.textContent()).toContain('R-1')
  expect(await steps.textContent()).toContain('<img')
  expect(await steps.locator('img').count()).toBe(0)
  expect(await waits.textContent()).toMatch(/approved.*since.*at most until/)
  expect(await violations(page)).toEqual([])
})

it('is read at 375 px without scrolling to the side', async () => {
  const { page } = await pageOf('narrow', { width: 375, scheme: 'dark' })

  await page.getByRole('region', { name: 'Steps and signals' }).waitFor()
  expect(
    await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBe(0)
})

it('sends a signal, whose schema says what is wrong with its data', async () => {
  const { page, hand } = await pageOf('sent')
  await hand.fill('Data', '{"yes":')
  await hand.press('Send the signal')
  await hand.told(/is not JSON/)
  await hand.fill('Data', '{"yes":"of course"}')
  await hand.press('Send the signal')
  await hand.told(/the data of signal 'approved'/)
  await hand.fill('Data', '{"yes":true}')
  await hand.press('Send the signal')
  await hand.told('The job waited for it, and goes on.')
  await page.getByRole('main').getByText('completed').first().waitFor()

  expect(await scene.mill.queue('orders').jobs.get('sent')).toMatchObject({ state: 'completed' })
})

it('forgets a signal, once that is confirmed', async () => {
  const { page, hand } = await pageOf('resent')
  await scene.mill.signal(scene.mill.job(order, 'resent'), defineSignal({ name: 'stopped' }))
  await page.reload()
  await hand.press('Forget stopped')
  await hand.confirm('Forget')
  await hand.told('It is forgotten: the next run waits for it anew, and it may be sent again.')

  const steps = (await scene.mill.queue('orders').jobs.get('resent'))?.steps
  expect(steps?.map(({ kind }) => kind)).toEqual(['step', 'step'])
})

it('forgets a step, once that is confirmed', async () => {
  const { hand } = await pageOf('forgotten')
  await hand.press('Forget charge')
  await hand.confirm('Forget')
  await hand.told('It is forgotten: the next run makes it again.')

  expect((await scene.mill.queue('orders').jobs.get('forgotten'))?.steps).toMatchObject([{ name: hostile }])
})
