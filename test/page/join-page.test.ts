/** The graph of joins on the page of a job, in a real browser. */

import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { firstLookMs } from './chromium-program.js'
import { hostileIds, joinScene, runSome } from './join-scene.js'
import { PageBrowser, type TabOptions } from './page-browser.js'
import { PageHand } from './page-hand.js'
import type { PageScene } from './page-scene.js'

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

/** The page of a job, once its graph is drawn. */
async function pageOf(id: string, tab: TabOptions = {}, queue = 'reports'): Promise<Page> {
  const { page } = await browser.tab(tab)
  await PageHand.at(page, `${url}queues/${queue}/jobs/${encodeURIComponent(id)}`)
  await page.getByRole('heading', { name: 'Graph of joins' }).waitFor()
  return page
}

const graphOf = (page: Page) => page.getByRole('region', { name: 'Graph of joins' })
const wider = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')

describe('the graph of a flow', () => {
  it('is drawn from left to right, with the states in words, and leads to each job', async () => {
    const page = await pageOf('year-2026')
    const graph = graphOf(page)
    const left = async (name: string) => (await graph.getByRole('link', { name }).first().boundingBox())!.x

    expect(await left('rates-2026-11-29')).toBeLessThan(await left('report-2026-10'))
    expect(await left('report-2026-10')).toBeLessThan(await left('year-2026'))
    expect(await graph.locator('svg.graph-lines g').count()).toBe(7)
    expect(await graph.getByText('⋯waiting').count()).toBe(3)
    expect(await graph.getByText('○ready').count()).toBeGreaterThan(0)
    expect(await graph.getByRole('link', { name: 'year-2026' }).getAttribute('aria-current')).toBe('page')
    await graph.getByRole('link', { name: 'report-2026-11' }).click()
    await page.getByRole('heading', { level: 1, name: 'report-2026-11' }).waitFor()
    await graph.getByRole('link', { name: 'year-2026' }).waitFor()
  })

  it('is a list at 375 px, which says in words who waits for whom', async () => {
    const page = await pageOf('year-2026', { width: 375 })
    const graph = graphOf(page)

    expect(await graph.locator('svg.graph-lines').isVisible()).toBe(false)
    expect(await graph.getByText('waited for by year-2026').first().isVisible()).toBe(true)
    expect(await wider(page)).toBe(0)
    const boxes = await graph
      .locator('.graph-box')
      .evaluateAll((all) => all.map((box) => box.getBoundingClientRect().x))
    expect(new Set(boxes).size).toBe(1)
  })

  it('follows the jobs as they end', async () => {
    const page = await pageOf('report-of-3')
    const row = graphOf(page).locator('.graph-box', { hasText: 'fetch-rates' })
    await row.getByText('○ready').waitFor()
    await runSome(scene, 'rates', 4)
    await row.getByText('✓completed').waitFor()
  })
})

describe('a set of many', () => {
  it('is a tile for each of 198 members, one stop for the Tab key, with the arrow keys inside', async () => {
    const page = await pageOf('report-of-198')
    const graph = graphOf(page)
    const tiles = graph.locator('.graph-box ul a[aria-label]')

    expect(await tiles.count()).toBe(198)
    expect(
      await tiles.evaluateAll(
        (all) => all.filter((one) => (one as unknown as { tabIndex: number }).tabIndex === 0).length,
      ),
    ).toBe(1)
    await tiles.first().focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    const focused = await page.evaluate<string>('document.activeElement.getAttribute("aria-label")')
    expect(focused).toMatch(/\.2: completed$/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).getByText(focused.split(':')[0]!).waitFor()
  })

  it('is counted by how its members ended if they have no room', async () => {
    const page = await pageOf('report-of-many')
    const graph = graphOf(page)

    await graph.getByText('1,200 not ended').first().waitFor()
    expect(await graph.locator('.graph-box').count()).toBe(3)
  })
})

it('names that would run or load are shown as text', async () => {
  const page = await pageOf('hostile')
  const text = await graphOf(page).evaluate((graph) => graph.textContent ?? '')

  expect(text).toContain('<img src=x')
  for (const id of hostileIds) expect(text).toContain(id.slice(0, 9))
  expect(await graphOf(page).locator('img, script').count()).toBe(0)
})
