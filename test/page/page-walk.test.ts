/** A walk through the page in a real browser; `page-actions.drill.ts` has all that can be done there. */

import { expect, it, onTestFinished } from 'vitest'
import { PageBrowser } from './page-browser.js'
import { PageHand } from './page-hand.js'
import { PageScene } from './page-scene.js'
import { shopLife } from './shop-life.js'

// A browser beside a busy machine takes its time; the first start also unpacks one.
it('a queue is found on the overview, and paused', { timeout: 240_000 }, async () => {
  const browser = await PageBrowser.launch()
  onTestFinished(() => browser.close())
  const scene = await PageScene.on('sqlite')
  onTestFinished(() => scene.close())
  const endWork = await shopLife(scene)
  onTestFinished(endWork)
  // Mounted below a path and opened without the slash, as in Next.
  const url = await scene.window({ basePath: '/jobs' })
  const hand = await PageHand.at((await browser.tab()).page, url.slice(0, -1))
  await hand.page.getByRole('link', { name: 'feeds' }).first().click()
  await hand.press('Pause')
  await hand.told('It starts no jobs from now on')
  expect((await scene.mill.queue('feeds' as 'mail').depth()).paused).toBe(true)
  // Nothing went wrong in the page unseen.
  expect(await browser.closeTabs()).toEqual([])
})
