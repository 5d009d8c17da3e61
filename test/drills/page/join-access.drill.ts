/** Access to the graph of joins: axe finds nothing in it, and it is never wider than the window. */

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { violations } from '../../page/axe-violations.js'
import { firstLookMs } from '../../page/chromium-program.js'
import { joinScene, runSome } from '../../page/join-scene.js'
import { PageBrowser } from '../../page/page-browser.js'
import { PageHand } from '../../page/page-hand.js'
import type { PageScene } from '../../page/page-scene.js'

// A browser beside a busy machine takes its time.
vi.setConfig({ testTimeout: 120_000 })

let browser: PageBrowser
let scene: PageScene
let url: string
beforeAll(async () => {
  browser = await PageBrowser.launch()
  scene = await joinScene(1_200)
  await runSome(scene, 'sums', 100)
  url = await scene.window()
}, firstLookMs)
afterAll(async () => {
  await browser?.close()
  await scene?.close()
})
afterEach(async () => {
  expect(await browser.closeTabs()).toEqual([])
})

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  it.each([375, 1_440])('axe finds nothing at %i px, and no graph is wider than the window', async (width) => {
    for (const id of ['year-2026', 'report-of-198', 'report-of-many', 'hostile']) {
      const { page } = await browser.tab({ width, scheme })
      await PageHand.at(page, `${url}queues/reports/jobs/${id}`)
      await page.getByRole('heading', { name: 'Graph of joins' }).waitFor()
      expect(await violations(page), id).toEqual([])
      expect(
        await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
        id,
      ).toBe(0)
    }
  })
})
