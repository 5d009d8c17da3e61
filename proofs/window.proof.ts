/**
 * Proof of the dashboard's page with 300 queues and a million jobs in a SQLite file: the time until a page shows its
 * first rows, and the time from a key or a press until its effect is painted. A real Chromium runs it, each time in a
 * tab that has cached nothing. Caveat: server, browser and this program share the processors of one machine.
 */

import { loadavg } from 'node:os'
import { defineTask } from 'millrace'
import type { Page } from 'playwright-core'
import { PageBrowser } from '../test/page/page-browser.js'
import { PageScene } from '../test/page/page-scene.js'
import type { Report, Summary } from './report.js'

export const seed = 0

const queues = Array.from({ length: 300 }, (_, i) => `queue-${String(i).padStart(3, '0')}`)
const jobs = 1_000_000
/** Half of the jobs are in one queue, so that its list is long. */
const crowded = queues[7]!
const batch = 10_000
const rounds = 5
/** The number of keys or presses. The first ones come while the page is still drawing. */
const presses = 11
const [firstViewMs, interactionMs] = [1_000, 100]

const tick = defineTask({ name: 'tick', queue: crowded, run: async (_: number) => {} })

export async function prove(report: Report): Promise<Summary> {
  const scene = await PageScene.on('sqlite', {
    queues: Object.fromEntries(queues.map((name) => [name, {}])),
    tasks: [tick],
  } as never)
  const browser = await PageBrowser.launch()
  try {
    const filledMs = await filled(scene)
    report.say(
      `${jobs.toLocaleString('en')} jobs in ${queues.length} queues, enqueued in ${(filledMs / 1_000).toFixed(0)} s`,
    )
    report.say(`chromium: ${browser.version}; load of the machine before: ${loadavg()[0]?.toFixed(1)}`)
    const url = await scene.window()
    const views = {
      overview: await viewed(browser, url),
      'job list': await viewed(browser, `${url}queues/${crowded}/jobs?state=ready`),
      queue: await viewed(browser, `${url}queues/${crowded}`),
    }
    const acts = {
      'a key typed into the filter': await acted(browser, url, typing),
      'a press that sorts': await acted(browser, url, sorting),
      'the next page of the list': await acted(browser, `${url}queues/${crowded}/jobs?state=ready`, turning),
    }
    for (const [name, times] of Object.entries(views)) tell(report, `first view of the ${name}`, times, firstViewMs)
    for (const [name, times] of Object.entries(acts)) tell(report, name, times, interactionMs)
    return { filledMs: Math.round(filledMs), views, acts }
  } finally {
    await browser.close()
    await scene.close()
  }
}

async function filled({ mill }: PageScene): Promise<number> {
  const startedAt = performance.now()
  const inputs = Array.from({ length: batch }, (_, i) => i)
  for (let at = 0; at < jobs; at += batch)
    await mill.enqueueMany(tick, inputs, (i) => ({
      queue: at < jobs / 2 ? crowded : queues[(at + i) % queues.length]!,
    }))
  return performance.now() - startedAt
}

const median = (times: readonly number[]) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]!

function tell(report: Report, what: string, times: readonly number[], mostMs: number): void {
  report.say(`${what}: ${times.map((ms) => `${ms} ms`).join(', ')}`)
  report.claim(`${what}, the median, takes at most ${mostMs} ms`, median(times) <= mostMs)
}

/** From the start of the navigation until the first rows, or the figures of a queue, are painted. */
async function viewed(browser: PageBrowser, address: string): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < rounds; i += 1) {
    const { page } = await browser.tab()
    await page.addInitScript(noteFirstRows)
    await page.goto(address, { waitUntil: 'commit' })
    times.push(await noted(page))
    await browser.closeTabs()
  }
  return times
}

/**
 * In the page: the instant of the first paint after rows or figures have arrived. The page reports it, because asking
 * takes time, too.
 */
const noteFirstRows = `
  self.noted = new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (document.querySelector('main [data-row], main dd') === null || document.querySelector('main .waiting') !== null) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    }).observe(document, { subtree: true, childList: true })
  })`

async function noted(page: Page): Promise<number> {
  return Math.round((await page.evaluate('self.noted')) as number)
}

/** From the event of the key or the press until the paint of its effect. */
async function acted(browser: PageBrowser, address: string, act: (page: Page) => Promise<number>): Promise<number[]> {
  const { page } = await browser.tab()
  await page.goto(address)
  await page.locator('main [data-row]').first().waitFor()
  const times: number[] = []
  for (let i = 0; i < presses; i += 1) times.push(await act(page))
  await browser.closeTabs()
  return times
}

/**
 * In the page: from the next event of that type until the rows have changed and are painted. `isDone`: a further
 * condition in the page.
 */
async function noteChange(page: Page, type: string, isDone = 'true'): Promise<void> {
  await page.evaluate(`
    self.noted = new Promise((resolve) => {
      const first = () => document.querySelector('main [data-row] .row-link')?.textContent
      const before = first()
      addEventListener('${type}', (event) => {
        new MutationObserver((_, observer) => {
          if (!(${isDone})) return
          observer.disconnect()
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - event.timeStamp)))
        }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true })
      }, { once: true, capture: true })
    })
    undefined`)
}

async function typing(page: Page): Promise<number> {
  const filter = page.locator('main input[type=search]').first()
  await filter.fill('')
  await filter.focus()
  await noteChange(page, 'keydown')
  await page.keyboard.press('1')
  return noted(page)
}

async function sorting(page: Page): Promise<number> {
  await noteChange(page, 'click')
  await page.getByRole('button', { name: /^Ready/ }).click()
  return noted(page)
}

async function turning(page: Page): Promise<number> {
  // The table begins with another job.
  await noteChange(page, 'click', 'first() !== undefined && first() !== before')
  await page.getByRole('button', { name: 'Next', exact: true }).click()
  return noted(page)
}
