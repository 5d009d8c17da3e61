/** Access to the page: for readers, by keyboard alone, on small screens, below a path, in light and in dark, without anything that jumps. */

import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { violations } from '../../page/axe-violations.js'
import { firstLookMs } from '../../page/chromium-program.js'
import { PageBrowser } from '../../page/page-browser.js'
import { PageHand } from '../../page/page-hand.js'
import { places } from '../../page/page-places.js'
import { PageScene } from '../../page/page-scene.js'
import { shopLife } from '../../page/shop-life.js'

// A browser beside a busy machine takes its time.
vi.setConfig({ testTimeout: 120_000 })

let browser: PageBrowser
let scene: PageScene
let url: string
let endWork: () => Promise<void>
beforeAll(async () => {
  browser = await PageBrowser.launch()
  scene = await PageScene.on('sqlite')
  endWork = await shopLife(scene)
  url = await scene.window()
}, firstLookMs)
afterAll(async () => {
  await browser?.close()
  await endWork?.()
  await scene?.close()
})
afterEach(async () => {
  expect(await browser.closeTabs()).toEqual([])
})

const focused = (page: Page) =>
  page.evaluate(
    "document.activeElement.closest('[data-row]')?.querySelector('a')?.textContent ?? document.activeElement.textContent",
  )

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  it.each(Object.entries(places))('axe finds nothing on the page %s', async (_, place) => {
    const { page } = await browser.tab({ scheme })
    await PageHand.at(page, url + place)
    expect(await violations(page)).toEqual([])
  })

  it('axe finds nothing in the dialogs of a job and of an enqueue, nor on the jobs of one error', async () => {
    const { page } = await browser.tab({ scheme })
    const hand = await PageHand.at(page, `${url}queues/webhooks/jobs/hook-A-1007`)
    await hand.pick('More actions', 'Change its priority or due time')
    expect(await violations(page)).toEqual([])
    await hand.press('Leave it')
    await hand.press('Cancel')
    expect(await violations(page)).toEqual([])
    await PageHand.at(page, `${url}queues/webhooks`)
    await hand.press('Enqueue …')
    await hand.press('Fill in an example')
    expect(await violations(page)).toEqual([])
    await PageHand.at(page, `${url}queues/payments/morgue`)
    await page.getByRole('link', { name: /ECONNREFUSED/ }).click()
    await page.getByRole('button', { name: 'Revive these …' }).waitFor()
    expect(await violations(page)).toEqual([])
  })

  it('axe finds nothing in the dialogs of a worker, a schedule and a throttle, nor on the log-in', async () => {
    const { page } = await browser.tab({ scheme })
    for (const place of [
      `workers?worker=${encodeURIComponent('mill-1/2211/1-5f2c')}`,
      'schedules?schedule=weekly-digest',
    ]) {
      await PageHand.at(page, url + place)
      await page.getByRole('dialog').waitFor()
      expect(await violations(page)).toEqual([])
    }
    await PageHand.at(page, `${url}throttles?q=smtp`)
    await page.getByRole('button', { name: 'Change the limits' }).click()
    expect(await violations(page)).toEqual([])
    const closed = await scene.window({ token: 'a-token-of-the-tests-42' })
    await PageHand.at(page, closed)
    expect(await violations(page)).toEqual([])
  })
})

it.each([375, 768, 1_440])(
  'at %i px no page is wider than the window',
  async (width) => {
    const { page } = await browser.tab({ width })
    const wide: string[] = []
    for (const [name, place] of Object.entries(places)) {
      await PageHand.at(page, url + place)
      const over = await page.evaluate<number>(`
      Math.max(...[document.documentElement, ...document.querySelectorAll('table.rows tr')].map(
        (one) => one.scrollWidth - one.clientWidth))`)
      if (over > 0) wide.push(`${name}: ${over} px`)
    }
    expect(wide).toEqual([])
  },
  60_000,
)

it('nothing jumps while the page loads and live data arrive', async () => {
  const jumps: Record<string, number> = {}
  for (const name of ['overview', 'queue', 'job', 'workers', 'throttles', 'schedules', 'events'] as const) {
    const { page } = await browser.tab()
    await page.addInitScript(`
      self.shift = 0
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) self.shift += entry.value
      }).observe({ type: 'layout-shift', buffered: true })`)
    const data = page.waitForResponse((response) => response.url().includes('/api/v1/'))
    await PageHand.at(page, url + places[name])
    await data
    // Two rounds of what is asked for again, or told by a stream.
    await page.waitForResponse((response) => response.url().includes('/api/v1/'), { timeout: 3_000 }).catch(() => {})
    const shift = Number(await page.evaluate('self.shift'))
    if (shift > 0.02) jumps[name] = shift
  }
  expect(jumps).toEqual({})
}, 60_000)

it('keys alone lead past the navigation, through the rows, into one and back', async () => {
  const { page } = await browser.tab()
  await PageHand.at(page, url)
  await page.keyboard.press('Tab')
  expect(await focused(page)).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('main')
  await page.keyboard.press('j')
  expect(await focused(page)).toBe('mail')
  await page.keyboard.press('j')
  expect(await focused(page)).toBe('newsletter')
  await page.keyboard.press('k')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'mail' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('w')
  await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor()
  await page.keyboard.press('/')
  expect(await page.evaluate('document.activeElement.type')).toBe('search')
})

it('dialogs trap the focus and restore it', async () => {
  const { page } = await browser.tab()
  await PageHand.at(page, url)
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  await PageHand.at(page, `${url}throttles?q=smtp`)
  const button = page.getByRole('button', { name: 'Change the limits' })
  await button.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  for (let i = 0; i < 12; i += 1) {
    await page.keyboard.press('Tab')
    const isInside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
    expect(await page.evaluate(isInside)).toBe(true)
  }
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  expect(await focused(page)).toBe('Change the limits')
})

/** Passes on what lies below the prefix, which it takes away. */
async function proxied(target: string, prefix: string): Promise<string> {
  const server = createServer((asked, answer) => {
    const path = asked.url?.startsWith(prefix) ? asked.url.slice(prefix.length - 1) : undefined
    if (path === undefined) return void answer.writeHead(404).end()
    const passed = request(new URL(path, target), { method: asked.method, headers: asked.headers }, (told) => {
      answer.writeHead(told.statusCode ?? 502, told.headers)
      told.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`
}

it('every page is found by a deep link below a path of the application, and behind a proxy that strips one', async () => {
  const below = await scene.window({ basePath: '/jobs' })
  const behind = await proxied(url, '/tools/jobs/')
  for (const root of [below, behind]) {
    const { page, refused } = await browser.tab()
    await PageHand.at(page, `${root}queues/reports/jobs/report-2026-q3`)
    await page.getByText('62 %').first().waitFor()
    await page.getByRole('link', { name: 'Schedules' }).first().click()
    await page.getByRole('heading', { name: 'Schedules' }).waitFor()
    expect(page.url()).toBe(`${root}schedules`)
    await page.getByRole('link', { name: 'Overview' }).first().click()
    await page.getByRole('link', { name: 'thumbnails' }).click()
    await page.getByRole('heading', { level: 1, name: 'thumbnails' }).waitFor()
    expect(page.url()).toBe(`${root}queues/thumbnails`)
    expect(refused).toEqual([])
  }
})
