/** A page browser: one real Chromium for a file of tests; each of its tabs notes whatever a page must not do. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { chromiumProgram } from './chromium-program.js'

export interface TabOptions {
  /** Default 1440. */
  readonly width?: number
  /** Default 900. */
  readonly height?: number
  /** Default light. */
  readonly scheme?: 'light' | 'dark'
}

/** What no text that a page shows may reach: it is called by every hostile text that is run. */
export const tripwire = 'tripwire'

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--force-color-profile=srgb',
]

/** In the page, before anything of its own runs. */
function watch(wire: string): void {
  const report = (globalThis as unknown as Record<string, (what: string) => void>)['reportFault']!
  Object.defineProperty(globalThis, wire, { value: () => report('a hostile text was run') })
  // By its name: the page's own types do not belong to the tests.
  const page = globalThis as unknown as { addEventListener(type: string, hear: (event: never) => void): void }
  page.addEventListener('securitypolicyviolation', (event: { violatedDirective: string; blockedURI: string }) =>
    report(`the policy forbids ${event.violatedDirective} of ${event.blockedURI}`),
  )
}

/** A tab, and what was wrong in it. */
export class Tab {
  readonly page: Page
  /** Errors and warnings of the console, exceptions, breaches of the policy, dialogs, failures of the server. */
  readonly faults: string[] = []
  /** Statuses of answers that refuse something, which some tests want. */
  readonly refused: number[] = []
  readonly #close: () => Promise<void>

  private constructor(page: Page, close: () => Promise<void>) {
    this.page = page
    this.#close = close
  }

  static async in(context: BrowserContext): Promise<Tab> {
    const page = await context.newPage()
    const tab = new Tab(page, () => context.close())
    await page.exposeFunction('reportFault', (what: string) => void tab.faults.push(what))
    await page.addInitScript(watch, tripwire)
    page.on('pageerror', (error) => tab.faults.push(`an exception: ${error.message}`))
    page.on('dialog', (dialog) => {
      tab.faults.push(`a dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('console', (message) => {
      const isRefusal = message.text().startsWith('Failed to load resource')
      if (!isRefusal && ['error', 'warning'].includes(message.type()))
        tab.faults.push(`${message.type()}: ${message.text()}`)
    })
    page.on('response', (response) => {
      if (response.status() >= 500) tab.faults.push(`${response.status()} from ${response.url()}`)
      else if (response.status() >= 400) tab.refused.push(response.status())
    })
    return tab
  }

  close(): Promise<void> {
    return this.#close()
  }
}

export class PageBrowser {
  readonly #browser: Awaited<ReturnType<typeof chromium.launch>>
  readonly #home: string
  readonly #tabs = new Set<Tab>()

  private constructor(browser: Awaited<ReturnType<typeof chromium.launch>>, home: string) {
    this.#browser = browser
    this.#home = home
  }

  /** The first time on a machine takes as long as `firstLookMs`. */
  static async launch(): Promise<PageBrowser> {
    const { path, env } = await chromiumProgram()
    const home = await mkdtemp(join(tmpdir(), 'millrace-browser-'))
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    const browser = await chromium.launch({
      ...{ executablePath: path, args: flags, headless: true },
      env: { ...inherited, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home, ...env },
    })
    return new PageBrowser(browser, home)
  }

  get version(): string {
    return this.#browser.version()
  }

  /** A tab with nothing of the others: no cookie, nothing stored. */
  async tab({ width = 1440, height = 900, scheme = 'light' }: TabOptions = {}): Promise<Tab> {
    const context = await this.#browser.newContext({
      ...{ viewport: { width, height }, colorScheme: scheme, locale: 'en-GB', timezoneId: 'Europe/Berlin' },
      reducedMotion: 'reduce',
    })
    context.setDefaultTimeout(30_000)
    const tab = await Tab.in(context)
    this.#tabs.add(tab)
    return tab
  }

  /** Closes all tabs; answers with what was wrong in them. */
  async closeTabs(): Promise<string[]> {
    const tabs = [...this.#tabs]
    this.#tabs.clear()
    await Promise.all(tabs.map((tab) => tab.close()))
    return tabs.flatMap(({ faults }) => faults)
  }

  async close(): Promise<void> {
    await this.#browser.close()
    await rm(this.#home, { recursive: true, force: true })
  }
}
