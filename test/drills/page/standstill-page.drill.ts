/** Why a job waits, on its page in a real browser: each standstill that can be provoked, by the words of its reason. */

import { webHandler } from 'millrace/web'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { Scene, standstills } from '../../client/jobs/standstills.js'
import { firstLookMs } from '../../page/chromium-program.js'
import { PageBrowser } from '../../page/page-browser.js'
import { PageHand } from '../../page/page-hand.js'
import { served } from '../../web/web-scene.js'

// A browser beside a busy machine takes its time.
vi.setConfig({ testTimeout: 120_000 })

let browser: PageBrowser
beforeAll(async () => {
  browser = await PageBrowser.launch()
}, firstLookMs)
afterAll(() => browser?.close())
afterEach(async () => {
  expect(await browser.closeTabs()).toEqual([])
})

it.each(Object.entries(standstills))('the page of a job explains %s', async (_, row) => {
  const scene = await Scene.on('sqlite', row.queues)
  if (!row.isUnserved) await scene.serve()
  const { queue, id } = await row.provoke(scene)
  const window = webHandler(scene.mill)
  onTestFinished(() => window.close())
  const { page } = await browser.tab()
  await PageHand.at(page, `${await served(window.node)}/queues/${queue}/jobs/${id}`)
  const reason = page.getByRole('region', { name: 'Waits because' }).getByRole('listitem').first()
  // A command stands there as code, and the jobs that keep it behind the words.
  const words = new RegExp(row.text.source.replaceAll('`', '').replace(/\$$/, ''))
  expect(await reason.textContent()).toMatch(words)
})
