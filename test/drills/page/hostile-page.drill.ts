/** Hostile texts on the page: wherever one stands it is shown as text, and nothing in it is run or loaded, on SQLite and on Redis. */

import { defineTask, type Mill, type MillOptions } from 'millrace'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { safeText } from '../../../dashboard/src/words/safe-text.js'
import { nextEvent } from '../../next-event.js'
import { firstLookMs } from '../../page/chromium-program.js'
import { hostileQueues, hostileTexts } from '../../page/hostile-texts.js'
import { PageBrowser } from '../../page/page-browser.js'
import { PageScene } from '../../page/page-scene.js'

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

const fitsTask = (text: string) => !/\p{Cc}/u.test(text)
const all = hostileTexts.join('\n')

/** One job shows every text at once: in its input, its log, its note, its fields and, when it has failed, its error. */
const speak = defineTask({
  name: hostileTexts[0]!,
  queue: 'loud',
  retry: { max: 0 },
  run: async (_: { readonly texts: readonly string[]; readonly fails?: boolean }, ctx) => {
    for (const text of hostileTexts) ctx.log(text)
    ctx.progress(0.5, hostileTexts[1]!)
    await ctx.fields.set({ [hostileTexts[2]!.slice(0, 60)]: all.slice(0, 500) })
    if (ctx.job.id === 'failing') throw new Error(all.slice(0, 3_000))
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve(), { once: true }))
    throw ctx.signal.reason
  },
})

const named = hostileTexts.filter(fitsTask).map((name) => defineTask({ name, queue: 'named', run: async () => {} }))
const options = {
  queues: { loud: {}, named: {}, ...Object.fromEntries(hostileQueues.map((name) => [name, {}])) },
  tasks: [speak, ...named.filter(({ name }) => name !== speak.name)],
} satisfies Omit<MillOptions, 'store'>

async function loud(mill: Mill): Promise<() => Promise<void>> {
  for (const [i, id] of hostileTexts.entries())
    await mill.enqueue(named[i % named.length]!, { text: id } as never, { id, delay: '1h', group: id })
  const input = { texts: hostileTexts }
  for (const id of ['failing', 'running'])
    await mill.enqueue(speak, input, { id, meta: { [hostileTexts[9]!]: hostileTexts[10] } })
  const over = [nextEvent(mill, 'job.buried'), nextEvent(mill, 'job.progressed', ({ id }) => id === 'running')]
  const worker = mill.worker({ queues: ['loud'], grace: 0 })
  await worker.start()
  await Promise.all(over)
  return () => worker.stop()
}

/** Resolves when no row is still to come: the frame of a table stands before its rows, and far blocks of them are drawn later. */
async function allRows(page: Page): Promise<void> {
  for (const coming of ['.waiting', '.rows-away']) await page.locator(coming).first().waitFor({ state: 'detached' })
}

/** What is folded up too, and what stands in titles. */
async function everyText(page: Page): Promise<string> {
  for (const closed = page.locator('details:not([open])'); (await closed.count()) > 0; )
    await closed.first().evaluate((details) => details.setAttribute('open', ''))
  expect(await page.locator('main :is(script, iframe, object, embed, link, style, base, meta)').count()).toBe(0)
  return page.locator('body').evaluate((body) => {
    const titles = [...body.querySelectorAll('[title]')].map((element) => element.getAttribute('title') ?? '')
    return [body.textContent ?? '', ...titles].join('\n')
  })
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store) => {
  let scene: PageScene
  let url: string
  let endWork: () => Promise<void>
  beforeAll(async () => {
    scene = await PageScene.on(store, options as never)
    endWork = await loud(scene.mill)
    const { workers } = await scene.store()
    for (const [i, host] of hostileTexts.entries())
      await workers!.beat(
        {
          ...{ id: `${host}/${i}`, host, boot: 'b', pidns: 'n', pid: i + 1, ticks: 1, queues: [host] },
          ...{ concurrency: 1, running: 0, startedAt: Date.now(), version: host, selector: host },
        },
        3_600_000,
      )
    url = await scene.window()
  }, 60_000)
  afterAll(async () => {
    await endWork?.()
    await scene?.close()
  })

  /** All that a page shows, hidden parts and titles too. */
  async function textAt(place: string, ready: string): Promise<string> {
    const { page } = await browser.tab({ height: 8_000 })
    await page.goto(url + place)
    await page.getByText(ready).filter({ visible: true }).first().waitFor()
    await allRows(page)
    const texts = [await everyText(page)]
    const next = page.getByRole('navigation', { name: 'Pages' }).getByRole('button', { name: 'Next' })
    while ((await next.count()) > 0 && (await next.isEnabled())) {
      const row = await page.locator('[data-row]').first().elementHandle()
      await next.click()
      await row?.waitForElementState('hidden')
      await allRows(page)
      texts.push(await everyText(page))
    }
    return texts.join('\n')
  }

  const missing = (shown: string, texts: readonly string[]) => texts.filter((text) => !shown.includes(safeText(text)))

  it('ids, tasks and groups of jobs are shown unchanged', async () => {
    expect(hostileTexts.length).toBeGreaterThanOrEqual(64)
    const shown = await textAt('queues/named/jobs', 'scheduled')
    expect(missing(shown, hostileTexts)).toEqual([])
  })

  it('the page of each such job has its id as the heading', async () => {
    const { page } = await browser.tab()
    for (const id of [
      hostileTexts[0]!,
      '__proto__',
      '../../../api/v1/session',
      '%2e%2e%2f%00%0d%0a',
      'exe.\u202egpj',
    ]) {
      await page.goto(`${url}queues/named/jobs/~?${new URLSearchParams({ id })}`)
      await page.getByText('scheduled').filter({ visible: true }).first().waitFor()
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(safeText(id))
    }
  })

  it('the input, log, progress, fields, meta and error of a job are shown unchanged', async () => {
    const running = await textAt('queues/loud/jobs/running', hostileTexts[1]!)
    expect(missing(running, hostileTexts)).toEqual([])
    const failing = await textAt('queues/loud/jobs/failing', 'dead')
    expect(missing(failing, hostileTexts.slice(0, 20))).toEqual([])
  })

  it('the morgue, the search, the events and the overview show them unchanged', async () => {
    const first = hostileTexts[0]!
    expect(await textAt('queues/loud/morgue', first)).toContain(first)
    expect(await textAt('morgue', first)).toContain(first)
    expect(await textAt(`search?${new URLSearchParams({ q: first })}`, first)).toContain(first)
    expect(missing(await textAt('', 'loud'), hostileQueues)).toEqual([])
  })

  it('hosts, versions and queues of workers are shown unchanged', async () => {
    const shown = await textAt('workers', 'Slowest event loop')
    expect(
      missing(
        shown,
        hostileTexts.map((text) => safeText(text).slice(0, 12)),
      ),
    ).toEqual([])
    const id = `${hostileTexts[5]!}/5`
    expect(await textAt(`workers?${new URLSearchParams({ worker: id })}`, 'Selector')).toContain(hostileTexts[5]!)
  })
})
