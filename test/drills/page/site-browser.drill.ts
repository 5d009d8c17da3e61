/** The built site in a real browser: at three widths no page is wider than the window, and the search finds what people ask first. */

import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type SidebarEntry, sidebar } from '../../../site/sidebar.js'
import { root } from '../../cli/project.js'
import { PageBrowser, type Tab } from '../../page/page-browser.js'

const dist = join(root, 'site/dist')
const buildWithinMs = 300_000
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** The commonest questions, and pages that answer each. */
const questions: readonly (readonly [words: string, ...pages: string[]])[] = [
  ['lost job', '/crashes'],
  ['retry', '/job-lifecycle', '/configuration'],
  ['rate limit', '/throttling'],
  ['cron', '/schedules'],
  ['docker', '/guides/production', '/start/deploy'],
  ['priority', '/job-lifecycle', '/selectors', '/configuration'],
  ['dashboard password', '/dashboard'],
  ['redis cluster', '/stores/redis'],
  ['unique jobs', '/job-lifecycle'],
  ['graceful shutdown', '/graceful-deploys'],
]
const among = 3

const pagesOf = (entries: readonly SidebarEntry[]): string[] =>
  entries.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...pagesOf(items)])
const pages = ['/', ...pagesOf(sidebar).filter((link) => !link.startsWith('/api/'))]
const fileOf = (page: string) => (page.endsWith('/') ? `${page}index.html` : `${page}.html`)

describe('the site in a browser', () => {
  let server: Server
  let browser: PageBrowser
  let origin: string
  beforeAll(async () => {
    const { status, stderr } = spawnSync('npm', ['run', '--silent', 'site'], { cwd: root, encoding: 'utf8' })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    server = createServer(async ({ url = '/' }, answer) => {
      const path = normalize(decodeURIComponent(new URL(url, 'http://site').pathname))
      const body = await readFile(join(dist, path.endsWith('/') ? `${path}index.html` : path)).catch(() => undefined)
      answer
        .writeHead(body === undefined ? 404 : 200, { 'content-type': types[extname(path)] ?? 'text/html' })
        .end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await PageBrowser.launch()
  }, buildWithinMs)
  afterAll(async () => {
    await browser?.close()
    server?.close()
  })

  it.each([375, 768, 1_440])(
    'shows every page at a width of %i px without an error or sideways scrolling',
    { timeout: 240_000 },
    async (width) => {
      const tab = await browser.tab({ width })
      const wide: string[] = []
      for (const page of pages) {
        await tab.page.goto(origin + fileOf(page), { waitUntil: 'load' })
        const scrolls = await tab.page.evaluate(
          'document.documentElement.scrollWidth > document.documentElement.clientWidth',
        )
        if (scrolls) wide.push(page)
      }
      expect({ wide, faults: tab.faults, refused: tab.refused }).toEqual({ wide: [], faults: [], refused: [] })
      await tab.close()
    },
  )

  it(`finds an answer to each of the ten commonest questions among the first ${among} pages`, {
    timeout: 240_000,
  }, async () => {
    const unanswered: unknown[] = []
    for (const [words, ...answers] of questions) {
      // A new one for each: the search shows again what was found last.
      const tab = await browser.tab()
      await tab.page.goto(`${origin}/`, { waitUntil: 'load' })
      const found = (await foundBy(tab, words)).slice(0, among)
      if (!found.some((page) => answers.includes(page))) unanswered.push({ words, found })
      await tab.close()
    }
    expect(unanswered).toEqual([])
  })
})

/** The pages that the search lists, in its order. */
async function foundBy({ page }: Tab, words: string): Promise<string[]> {
  const box = page.locator('.VPLocalSearchBox input')
  // A page that has just come does not hear its keys yet.
  await expect.poll(() => page.keyboard.press('Control+k').then(() => box.count()), { timeout: 30_000 }).toBe(1)
  await box.fill(words)
  await page.locator('.VPLocalSearchBox .result').first().waitFor()
  const links = (await page.evaluate(
    `[...document.querySelectorAll('.VPLocalSearchBox .result')].map((link) => link.pathname)`,
  )) as string[]
  return [...new Set(links.map((link) => link.replace(/\.html$/, '')))]
}
