/** The pages of jobs in a real browser: lists, the job, the morgue and the search, on SQLite and on Redis. */

import { defineOrderedTask, defineTask, type JobContext, type MillOptions } from 'millrace'
import type { WebOptions } from 'millrace/web'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { firstLookMs } from '../../page/chromium-program.js'
import { hostileTexts } from '../../page/hostile-texts.js'
import { PageBrowser, type TabOptions } from '../../page/page-browser.js'
import { PageScene, type PageStore } from '../../page/page-scene.js'

const mail = defineTask({
  name: 'send-mail',
  queue: 'mail',
  retry: { max: 0 },
  run: async ({ to }: { readonly to: string }) => {
    if (to.startsWith('nobody')) throw new Error(`no such address\n    at ${to}`)
    return { sentTo: to }
  },
})
/** Goes on until it is told to end. */
const gates = new Map<string, () => void>()
const long = defineTask({
  name: 'transcode',
  queue: 'video',
  retry: { max: 2 },
  run: async (file: string, ctx: JobContext) => {
    ctx.log(`begun ${file}`)
    ctx.progress(0.5, 'half of it')
    await new Promise<void>((resolve) => {
      gates.set(file, resolve)
      ctx.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    ctx.signal.throwIfAborted()
    ctx.log(`ended ${file}`)
    return file
  },
})
/** Enqueues a letter that arrives and one that does not, and fails. */
const flaky = defineTask({
  name: 'flaky',
  queue: 'mail',
  retry: { max: 3, backoff: () => 0 },
  run: async (_: string, ctx: JobContext) => {
    for (const to of ['ada', 'nobody']) await ctx.enqueue(mail, { to })
    throw new Error(`failure ${ctx.job.attempt}`)
  },
})
const sync = defineOrderedTask({
  name: 'sync-order',
  queue: 'orders',
  id: ({ order }: { readonly order: string; readonly change?: number }) => order,
  run: async () => {},
})
const options = {
  queues: { mail: { retention: { results: 'untilDeleted' } }, video: {}, orders: { ordered: true, shards: 2 } },
  tasks: [mail, long, flaky, sync],
} satisfies Omit<MillOptions, 'store'>

// A browser beside a busy machine takes its time.
vi.setConfig({ testTimeout: 60_000 })

let browser: PageBrowser
beforeAll(async () => {
  browser = await PageBrowser.launch()
}, firstLookMs)
afterAll(() => browser?.close())
afterEach(async () => expect(await browser.closeTabs()).toEqual([]))

interface Opened {
  readonly scene: PageScene
  readonly url: string
  /** A tab at an address of the window. */
  open(path: string, tab?: TabOptions): Promise<Page>
}

async function opened(store: PageStore, web: WebOptions = {}): Promise<Opened> {
  const scene = await PageScene.on(store, options)
  onTestFinished(() => scene.close())
  const url = await scene.window(web)
  const open = async (path: string, tab?: TabOptions) => {
    const { page } = await browser.tab(tab)
    await page.goto(url + path)
    await page.locator('h1').waitFor()
    return page
  }
  return { scene, url, open }
}

async function worked(scene: PageScene, queue: string): Promise<void> {
  const worker = scene.mill.worker({ queues: [queue] })
  await worker.start()
  await expect
    .poll(async () => (await scene.mill.depths([queue])).map(({ ready, running }) => ready + running), {
      timeout: 20_000,
    })
    .toEqual([0])
  await worker.stop()
}

const letters = (count: number) => Array.from({ length: count }, (_, i) => `letter-${String(i).padStart(3, '0')}`)
const rows = (page: Page) => page.locator('[data-row]')
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true })

async function pick(page: Page, menu: string, item: string | RegExp): Promise<void> {
  await button(page, menu).click()
  await page.getByRole('menuitem', { name: item }).click()
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store) => {
  it('a list shows the page of the state in its address, and the back button works', async () => {
    const { scene, open } = await opened(store)
    await scene.mill.enqueueMany(
      mail,
      letters(120).map((to) => ({ to })),
      ({ to }) => ({ id: to }),
    )
    await scene.mill.enqueue(mail, { to: 'later' }, { id: 'later', delay: '1h' })
    const page = await open('queues/mail/jobs?by=id&state=ready')
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))

    await page.getByText('50 jobs on this page').waitFor()
    await button(page, 'Next').click()
    await page.getByRole('link', { name: 'letter-050' }).waitFor()
    await button(page, 'Next').click()
    await page.getByText('20 jobs on this page').waitFor()
    await page.goBack()
    // Where it was left: at its end.
    await page.getByRole('link', { name: 'letter-099' }).waitFor()
    await button(page, /^scheduled/).click()
    await page.getByRole('link', { name: 'later' }).waitFor()

    expect(new URL(page.url()).search).toBe('?by=id&state=scheduled')
    expect(asked.filter((url) => url.includes('/jobs?')).every((url) => !url.includes('limit'))).toBe(true)
  })

  it('the page of a job has its failed attempts as a table, and counts its children by state', async () => {
    const { scene, open } = await opened(store)
    await scene.mill.enqueue(flaky, 'x', { id: 'flaky' })
    await worked(scene, 'mail')
    const page = await open('queues/mail/jobs/flaky')
    const attempts = page.getByRole('table', { name: 'Failed attempts' }).locator('tbody tr')

    await expect.poll(() => attempts.locator('td:first-child').allTextContents()).toEqual(['4', '3', '2', '1'])
    expect(await attempts.last().textContent()).toContain('Error: failure 1')
    await page.getByText('Has enqueued, by 2 calls: 1 completed, 1 dead').waitFor()
  })

  it('rows are chosen with keys and cancelled; all jobs of a queue only after its name is typed', async () => {
    const { scene, open } = await opened(store)
    await scene.mill.enqueueMany(
      mail,
      letters(5).map((to) => ({ to })),
      ({ to }) => ({ id: to, delay: '1h' }),
    )
    const page = await open('queues/mail/jobs?by=id&state=scheduled')
    await page.getByRole('link', { name: 'letter-004' }).waitFor()
    for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key)
    await page.getByText('2 rows selected').waitFor()
    await button(page, 'Cancel').click()
    await inDialog(page, 'Cancel').last().click()
    await page.getByText('2 jobs cancelled, or told.').waitFor()
    await expect.poll(() => rows(page).count()).toBe(3)

    await pick(page, 'Do something to all jobs', 'Bury 3 waiting')
    await expect.poll(() => inDialog(page, 'Bury').isDisabled()).toBe(true)
    await page.keyboard.type('mail')
    await page.keyboard.press('Enter')
    await page.getByText('3 jobs buried.').waitFor()

    expect((await scene.mill.depths(['mail']))[0]).toMatchObject({ scheduled: 0, dead: 3 })
  })

  it('a job is followed to its end: progress, log, and a note that nothing is kept', async () => {
    const { scene, open } = await opened(store)
    await scene.mill.enqueue(long, 'a.mov', { id: 'a' })
    const page = await open('queues/video/jobs/a')
    await page
      .getByText(/no worker takes jobs of queue/)
      .first()
      .waitFor()
    const worker = scene.mill.worker({ queues: ['video'] })
    await worker.start()
    await page.getByText('half of it').waitFor()
    await page.getByText('begun a.mov').waitFor()
    gates.get('a.mov')!()
    await page.getByText('Completed', { exact: true }).or(page.getByText('nothing is kept of it any more')).waitFor()
    await worker.stop()
  })

  it('a running job is ended as failed; a wrong delay is reported at its field', async () => {
    const { scene, open } = await opened(store)
    await scene.mill.enqueue(long, 'b.mov', { id: 'b' })
    const worker = scene.mill.worker({ queues: ['video'] })
    await worker.start()
    const page = await open('queues/video/jobs/b')
    await page.getByText('half of it').waitFor()
    await pick(page, 'More actions', 'End this run as failed')
    await page.getByLabel('Reason').fill('by hand')
    await page.getByLabel('Due again after').fill('soon')
    await inDialog(page, 'End run').click()
    await page.getByRole('alert').getByText('must be a duration').waitFor()
    await page.getByLabel('Due again after').fill('10m')
    await inDialog(page, 'End run').click()
    await page.getByText('Attempt 2 due').waitFor()
    await worker.stop()

    expect(await scene.mill.queue('video').jobs.get('b')).toMatchObject({ state: 'scheduled', error: 'by hand' })
  })

  it("dead jobs are grouped by error, opened, revived by choice, and all deleted after the queue's name is typed", async () => {
    const { scene, open } = await opened(store)
    const ids = letters(30)
    await scene.mill.enqueueMany(
      mail,
      ids.map((id) => ({ to: `nobody-${id}` })),
      (_, i) => ({ id: ids[i]! }),
    )
    await worked(scene, 'mail')
    const page = await open('morgue')
    await page.getByRole('link', { name: 'Error: no such address' }).click()
    await page.getByText('30 jobs of send-mail').waitFor()
    // Not all of them are drawn.
    await page.locator('table[aria-rowcount="26"]').waitFor()
    await button(page, 'Next').click()
    await expect.poll(() => rows(page).count()).toBe(5)
    await rows(page).first().getByRole('checkbox').check()
    await button(page, 'Revive').click()
    await inDialog(page, 'Revive').click()
    await page.getByText('1 job revived.').waitFor()
    await page.getByText('29 jobs of send-mail').waitFor()
    await button(page, 'Delete all …').click()
    // Keys go to the dialog once it is there.
    await expect.poll(() => inDialog(page, 'Delete all').isDisabled()).toBe(true)
    await page.keyboard.type('mail')
    await page.keyboard.press('Enter')
    await page.getByText('29 jobs deleted.').waitFor()

    expect((await scene.mill.depths(['mail']))[0]).toMatchObject({ ready: 1, dead: 0 })
  })
})

it('ids that do not fit into a path can be opened from a list, and changed', async () => {
  const { scene, open } = await opened('sqlite')
  const ids = ['.', '..', '~', '../mail', 'errors', 'a//b?c#d', '\u202eexe.gpj', 'x'.repeat(256)]
  for (const id of ids) await scene.mill.enqueue(mail, { to: id }, { id, delay: '1h' })
  const page = await open('queues/mail/jobs?by=id')
  for (let i = 0; i < ids.length; i += 1) {
    await page.getByText(`${ids.length} jobs on this page`).waitFor()
    for (let step = 0; step <= i; step += 1) await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await button(page, 'Run now').click()
    await inDialog(page, 'Run now').click()
    await page
      .getByText(/no worker takes jobs of queue/)
      .first()
      .waitFor()
    // What the page tells may still stand there from the job before.
    await expect.poll(async () => (await scene.mill.depths(['mail']))[0]?.ready).toBe(i + 1)
    await page.goBack()
  }

  expect((await scene.mill.depths(['mail']))[0]).toMatchObject({ ready: ids.length, scheduled: 0 })
})

it('a job has its fields set, is enqueued again under a new id, and cancelled with a reason', async () => {
  const { scene, open } = await opened('sqlite')
  await scene.mill.enqueue(mail, { to: 'ada' }, { id: 'm', delay: '1h', meta: { trace: 'abc' } })
  const page = await open('queues/mail/jobs/m')
  await button(page, 'Set a field').click()
  await page.getByLabel('Name').fill('region')
  await page.getByLabel('Value', { exact: true }).fill('eu')
  await button(page, 'Set').click()
  await button(page, 'Remove region').waitFor()
  await pick(page, 'More actions', 'Edit and enqueue again')
  await page.getByRole('textbox', { name: 'Input' }).fill('{"to":')
  await inDialog(page, 'Enqueue').click()
  await page.getByRole('alert').first().waitFor()
  await page.getByRole('textbox', { name: 'Input' }).fill('{"to":"grace"}')
  await inDialog(page, 'Enqueue').click()
  await page.getByText('"grace"').waitFor()
  await page.goBack()
  await pick(page, 'More actions', 'Cancel')
  await page.getByLabel('Reason').fill('too late')
  await inDialog(page, 'Cancel job').click()
  await page.getByText('too late').first().waitFor()
  const { jobs } = await scene.mill.queue('mail').jobs.list({ state: 'ready' })

  expect(jobs).toMatchObject([{ input: { to: 'grace' }, meta: { trace: 'abc' } }])
})

it('an ordered queue distinguishes the dead job of an id from the live one', async () => {
  const { scene, open } = await opened('sqlite')
  for (const score of [10, 20]) await scene.mill.enqueue(sync, { order: '7', change: score }, { score })
  await scene.mill.queue('orders').jobs.bury(['7'])
  await scene.mill.enqueue(sync, { order: '7', change: 30 }, { score: 30 })
  const page = await open('queues/orders/jobs')
  await rows(page).filter({ hasText: 'dead' }).getByRole('checkbox').check()
  await page.getByText('Dead ones are revived in the morgue').waitFor()
  expect(await button(page, 'Cancel').isDisabled()).toBe(true)
  await rows(page).filter({ hasText: 'dead' }).getByRole('link').click()
  await page.getByText('2 payloads').waitFor()
  await button(page, 'Revive').click()
  await inDialog(page, 'Revive').click()
  await page.getByText('The job is back in the queue.').waitFor()

  expect(await scene.mill.queue('orders').jobs.get('7')).toMatchObject({ state: 'ready', payloadCount: 3 })
})

it('an id is opened in the queue that has it; a search for a text says what it left out', async () => {
  const { scene, open } = await opened('sqlite')
  await scene.mill.enqueueMany(
    mail,
    letters(250).map((to) => ({ to })),
    ({ to }) => ({ id: to }),
  )
  const page = await open('')
  await page.keyboard.press('/')
  await page.goto(`${page.url()}search?q=letter-007`)
  await page.waitForURL('**/queues/mail/jobs/letter-007')
  await page.goto(new URL('../../../search?q=send-mail', page.url()).href)
  await page.getByText('Not every job was looked at').waitFor()
})

it('a job that is not kept has a page that says why, and where to look', async () => {
  const { open } = await opened('sqlite')
  const page = await open('queues/mail/jobs/none')
  await page.getByText('Nothing is kept of this job').waitFor()
  await page.getByRole('link', { name: 'Look for this id in all queues' }).click()
  await page.getByText('No job that was looked at has this text').waitFor()
})

it('a read-only page offers no changes, and says which data are hidden', async () => {
  const { scene, open, url } = await opened('sqlite', { readOnly: true, hidePayloads: true })
  await scene.mill.enqueue(mail, { to: 'ada@secret' }, { id: 'm', delay: '1h' })
  await scene.mill.enqueue(mail, { to: 'nobody' }, { id: 'd' })
  await worked(scene, 'mail')
  const page = await open('')
  for (const path of ['queues/mail/jobs', 'queues/mail/jobs/m', 'queues/mail/jobs/d', 'queues/mail/morgue', 'morgue']) {
    await page.goto(url + path)
    await page.getByText('send-mail').first().waitFor()
    expect(
      await page
        .getByRole('button', {
          name: /^(Run now|Cancel|Bury|Delete.*|Revive.*|Set a field|More actions|Edit.*|Do something.*)$/,
        })
        .count(),
    ).toBe(0)
    expect(await page.getByRole('checkbox').count()).toBe(0)
    if (path.endsWith('/m')) await page.getByText('hidePayloads').waitFor()
    expect(await page.content()).not.toContain('ada@secret')
  }
})

it('hostile ids, tasks, errors, fields, reasons and logs are text, also on a phone in dark mode', {
  timeout: 120_000,
}, async () => {
  const { scene, open } = await opened('sqlite')
  const { mill } = scene
  const ids = hostileTexts.filter((text) => Buffer.byteLength(text) <= 256 && text !== '')
  await mill.enqueueMany(
    mail,
    ids.map((id) => ({ to: `nobody ${id}`, text: id })),
    (_, i) => ({ id: ids[i]!, meta: { text: ids[i] } }),
  )
  await worked(scene, 'mail')
  const paths = ['queues/mail/jobs?by=id', 'queues/mail/morgue', 'queues/mail/morgue?view=jobs', 'morgue']
  for (const path of paths)
    for (const tab of [{}, { width: 375, height: 812, scheme: 'dark' }] as const) {
      const page = await open(path, tab)
      await rows(page).first().waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
      await page.close()
    }
  const page = await open('queues/mail/jobs')
  // Their names were all in the lists; a page of each would take minutes.
  for (const id of ids.filter((_, i) => i % 8 === 0)) {
    await mill.queue('mail').jobs.setFields(id, { text: id })
    await page.goto(new URL(`jobs/~?${new URLSearchParams({ id })}`, page.url().replace(/jobs.*$/, '')).href)
    await page.getByText('Died of:').waitFor()
    for (const summary of await page.locator('summary').all()) await summary.click()
  }
})
