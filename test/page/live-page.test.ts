/** Pages in a real browser while things change around what they show. */

import { defineTask } from 'millrace'
import { expect, it, onTestFinished, vi } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { firstLookMs } from './chromium-program.js'
import { PageBrowser } from './page-browser.js'
import { PageHand } from './page-hand.js'
import { PageScene } from './page-scene.js'

vi.setConfig({ testTimeout: firstLookMs + 120_000 })

const later = defineTask({ name: 'later', queue: 'later', run: async () => {} })
const pay = defineTask({
  name: 'pay',
  queue: 'pay',
  retry: { max: 0 },
  run: async (order: number) => {
    throw new Error(`order ${order} is gone`)
  },
})

it('an open group of errors stays open when another of its kind dies, and when the newest is revived', async () => {
  const browser = await PageBrowser.launch()
  onTestFinished(() => browser.close())
  const scene = await PageScene.on('sqlite', { queues: { pay: {} }, tasks: [pay] })
  onTestFinished(() => scene.close())
  const { jobs, morgue } = scene.mill.queue('pay')
  const worker = scene.mill.worker()
  const dies = async (order: number) => {
    await scene.mill.enqueue(pay, order, { id: `pay-${order}` })
    await expect.poll(async () => (await jobs.get(`pay-${order}`))?.state).toBe('dead')
  }
  await worker.start()
  await dies(4711)
  const { page } = await browser.tab()
  const hand = await PageHand.at(page, `${await scene.window()}queues/pay/morgue`)
  await page.getByRole('link', { name: 'Error: order 4711 is gone' }).click()
  await hand.told(/^1 job of/)

  await dies(4712)
  await page.reload()
  await hand.told(/^2 jobs of/)
  await hand.told('Error: order 4712 is gone')

  await worker.stop()
  await morgue.revive(['pay-4712'])
  await page.reload()
  await hand.told(/^1 job of/)
})

it('a live page says that the store is away, and no longer than it is', async () => {
  const browser = await PageBrowser.launch()
  onTestFinished(() => browser.close())
  const scene = await PageScene.on('sqlite', { queues: { later: {} }, tasks: [later] })
  onTestFinished(() => scene.close())
  await scene.mill.enqueue(later, undefined, { id: 'j', delay: '1h' })
  const store = await scene.store()
  const records = store.records!
  const [get, depth] = [records.get.bind(records), store.depth.bind(store)]
  let isAway = false
  const unlessAway = <T>(read: () => Promise<T>): Promise<T> =>
    isAway ? Promise.reject(new StoreUnavailableError('the store is away.')) : read()
  Object.assign(records, { get: (...asked: Parameters<typeof get>) => unlessAway(() => get(...asked)) })
  Object.assign(store, { depth: (...asked: Parameters<typeof depth>) => unlessAway(() => depth(...asked)) })
  const url = await scene.window()
  const { page } = await browser.tab()
  const standing = page.locator('output', { hasText: /Live|Store away|Connecting|Reconnecting/ })

  await PageHand.at(page, `${url}queues/later/jobs/j`)
  await standing.getByText('Live').waitFor()
  isAway = true
  await standing.getByText('Store away').waitFor()
  isAway = false
  await standing.getByText('Live').waitFor()

  await PageHand.at(page, url)
  await standing.getByText('Live').waitFor()
  isAway = true
  await standing.getByText('Store away').waitFor()
  await page.getByRole('link', { name: 'Workers' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor()
  expect(await page.getByText('Store away').count()).toBe(0)
})
