/** The actions of the page: each does in the store what it says, and tells it. */

import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { firstLookMs } from './chromium-program.js'
import { PageBrowser } from './page-browser.js'
import { PageHand } from './page-hand.js'
import { PageScene, type PageStore } from './page-scene.js'
import { shopLife } from './shop-life.js'
import { renderReport, syncStock } from './shop-tasks.js'

let browser: PageBrowser

async function handAt(address: string): Promise<PageHand> {
  return PageHand.at((await browser.tab()).page, address)
}

export function pageActionsOn(store: PageStore): void {
  // A browser beside a busy machine takes its time.
  vi.setConfig({ testTimeout: 120_000 })
  beforeAll(async () => {
    browser = await PageBrowser.launch()
  }, firstLookMs)
  afterAll(() => browser?.close())
  afterEach(async () => {
    expect(await browser.closeTabs()).toEqual([])
  })

  let scene: PageScene
  let url: string
  let endWork: () => Promise<void>
  beforeAll(async () => {
    scene = await PageScene.on(store)
    endWork = await shopLife(scene)
    url = await scene.window()
  }, 60_000)
  afterAll(async () => {
    await endWork?.()
    await scene?.close()
  })

  const at = (place: string) => handAt(url + place)
  const depth = (queue: 'mail') => scene.mill.queue(queue).depth()
  const depthOf = (queue: string) => depth(queue as 'mail')
  const job = (queue: string, id: string) => scene.mill.queue(queue as 'mail').jobs.get(id)
  const state = async (queue: string, id: string) => (await job(queue, id))?.state

  it('a queue is paused, resumed and drained', async () => {
    const hand = await at('queues/feeds')
    await hand.press('Pause')
    await hand.told('It starts no jobs from now on')
    expect((await depthOf('feeds')).paused).toBe(true)
    await hand.press('Resume')
    await hand.told('It starts jobs again.')
    expect((await depthOf('feeds')).paused).toBe(false)
    await hand.pick('More actions', 'Drain …')
    await hand.confirm('Drain')
    await hand.told('It takes no new jobs from now on.')
    expect((await depthOf('feeds')).draining).toBe(true)
  })

  it('a queue is cleared after its name is typed', async () => {
    const hand = await at('queues/newsletter')
    expect((await depthOf('newsletter')).ready).toBe(10)
    await hand.pick('More actions', 'Clear …')
    await hand.confirm('Clear', 'newsletter')
    await hand.told('10 jobs removed.')
    expect((await depthOf('newsletter')).ready).toBe(0)
  })

  it('a job is enqueued from the form, and a mistake is shown at its field', async () => {
    const hand = await at('queues/webhooks')
    await hand.press('Enqueue …')
    // The only task of the queue stands there already, and its jobs have an example of its input.
    await expect.poll(() => hand.page.getByLabel('Task', { exact: true }).inputValue()).toBe('push-webhook')
    await hand.press('Fill in an example')
    expect(await hand.page.getByLabel('Input', { exact: true }).inputValue()).toContain('https://erp.example/orders')
    await hand.fill('Input', '{ "url": "https://erp.example", "order": "A-1" }')
    await hand.fill('Id', 'by-hand')
    await hand.fill('Delay', 'soon')
    await hand.confirm('Enqueue')
    await hand.page.getByRole('dialog').getByRole('alert').first().waitFor()
    await hand.fill('Delay', '2h')
    await hand.fill('Priority', '7')
    await hand.confirm('Enqueue')
    await expect
      .poll(() => job('webhooks', 'by-hand'))
      .toMatchObject({
        ...{ state: 'scheduled', task: 'push-webhook', priority: 7 },
        input: { url: 'https://erp.example', order: 'A-1' },
      })
  })

  it('an ordered queue is resharded, and its jobs are moved to another ordered queue', async () => {
    const hand = await at('queues/orders')
    await hand.pick('More actions', 'Reshard …')
    await hand.fill('Shards', '3')
    await hand.press('Go on …')
    await hand.confirm('Reshard', 'orders')
    await hand.told('It has 3 shards now.')
    const stored = await scene.mill.storedQueues()
    expect(stored?.find(({ name }) => name === 'orders')).toMatchObject({ shards: 3 })
    const before = (await depthOf('stock')).ready
    await hand.pick('More actions', 'Move its jobs …')
    await hand.press('Go on …')
    await hand.confirm('Move', 'orders')
    await hand.told('jobs moved.')
    expect((await depthOf('orders')).ready).toBe(0)
    expect((await depthOf('stock')).ready).toBeGreaterThan(before)
  })

  it('chosen jobs are cancelled, buried and deleted, and no others', async () => {
    const hand = await at('queues/thumbnails/jobs?state=ready')
    const ids = ['product-100.jpg@320', 'product-103.jpg@320', 'product-106.jpg@320', 'product-109.jpg@320'] as const
    const before = (await depthOf('thumbnails')).ready
    for (const [i, [verb, told]] of (
      [
        ['Cancel', '1 job cancelled, or told.'],
        ['Bury', '1 job buried.'],
        ['Delete', '1 job deleted.'],
      ] as const
    ).entries()) {
      await hand.choose(`Select ${ids[i]!}`)
      await hand.press(verb)
      await hand.confirm(verb)
      await hand.told(told)
    }
    expect(await state('thumbnails', ids[0])).toBe('cancelled')
    expect(await state('thumbnails', ids[1])).toBe('dead')
    expect(await state('thumbnails', ids[2])).toBeUndefined()
    expect(await state('thumbnails', ids[3])).toBe('ready')
    expect((await depthOf('thumbnails')).ready).toBe(before - 3)
  })

  it('all scheduled jobs are made due after the name of the queue is typed', async () => {
    const hand = await at('queues/mail/jobs?state=scheduled')
    await hand.pick('Do something to all jobs', 'Run 10 scheduled now')
    await hand.confirm('Run now', 'mail')
    await hand.told('10 jobs due now.')
    expect(await depthOf('mail')).toMatchObject({ scheduled: 0, ready: 10 })
  })

  it('a waiting job is buried, revived and cancelled from its page', async () => {
    const id = 'product-112.jpg@320'
    const hand = await at(`queues/thumbnails/jobs/~?${new URLSearchParams({ id })}`)
    await hand.pick('More actions', 'Bury')
    await hand.confirm('Bury')
    await hand.told('The job is in the morgue.')
    expect(await state('thumbnails', id)).toBe('dead')
    await hand.press('Revive')
    await hand.confirm('Revive')
    await hand.told('The job is back in the queue.')
    expect(await state('thumbnails', id)).toBe('ready')
    await hand.press('Cancel')
    await hand.fill('Reason', 'nobody wants it')
    await hand.confirm('Cancel job')
    await hand.told('The job was cancelled.')
    expect(await job('thumbnails', id)).toMatchObject({ state: 'cancelled', reason: 'nobody wants it' })
  })

  it('a delete that leaves a running job shows the number of the others, and the list anew', async () => {
    const [running] = (await scene.mill.queue('reports').jobs.list({ state: 'running' })).jobs
    await scene.mill.enqueue(renderReport, { pages: 1 }, { id: 'report-later', delay: '1h' })
    const hand = await at('queues/reports/jobs')
    await hand.choose(`Select ${running!.id}`, 'Select report-later')
    await hand.press('Delete')
    await hand.confirm('Delete')
    await hand.told('Others deleted: 1.')
    await hand.press('Close')
    await hand.told('1 job deleted.')
    await hand.page.getByRole('checkbox', { name: 'Select report-later' }).waitFor({ state: 'detached' })
    expect(await hand.page.getByRole('checkbox', { checked: true }).count()).toBe(0)
  })

  it('a waiting job gets another priority and another due time from its page', async () => {
    const id = 'product-115.jpg@320'
    const hand = await at(`queues/thumbnails/jobs/~?${new URLSearchParams({ id })}`)
    await hand.pick('More actions', 'Change its priority or due time')
    await hand.fill('Priority', '12')
    await hand.fill('Due after', '2h')
    await hand.confirm('Change')
    await hand.told('The job has another place.')
    expect(await job('thumbnails', id)).toMatchObject({ state: 'scheduled', priority: 12 })
  })

  it('all jobs that match the filter of a list are acted on, after the page has shown their number', async () => {
    const { jobs } = scene.mill.queue('feeds' as 'mail')
    const ended = (await jobs.list({ group: 'partner.example' })).jobs[0]!.id
    await jobs.bury([ended])
    const hand = await at('queues/feeds/jobs?group=partner.example')
    expect((await depthOf('feeds')).scheduled).toBe(3)
    await hand.pick('Do something to all that match', 'Run all that match now')
    await hand.page.getByRole('dialog').getByText('1 job at this moment.').waitFor()
    await hand.confirm('Run now', 'feeds')
    await hand.told('1 job due now.')
    expect(await depthOf('feeds')).toMatchObject({ scheduled: 2, ready: 1, dead: 1 })
  })

  it('no action on all that match is offered in the order that shows only failed jobs', async () => {
    const hand = await at('queues/feeds/jobs?group=partner.example')
    const menu = hand.page.getByRole('button', { name: 'Do something to all that match' })
    await menu.waitFor()
    await hand.page.getByLabel('Order', { exact: true }).selectOption('failed ones, by attempts')
    await menu.waitFor({ state: 'hidden' })
  })

  it('fields of a job are set and removed', async () => {
    const hand = await at('queues/webhooks/jobs/hook-A-1007')
    await hand.press('Set a field')
    await hand.fill('Name', 'checked')
    await hand.fill('Value', 'by ada')
    await hand.press('Set')
    await hand.told('Field set.')
    expect((await job('webhooks', 'hook-A-1007'))?.fields).toEqual({ checked: 'by ada' })
    const list = await at(`queues/webhooks/jobs?${new URLSearchParams({ field: 'checked=by ada' })}`)
    await list.page.getByRole('cell', { name: 'checked=by ada' }).waitFor()
    expect(await list.page.locator('[data-row]').count()).toBe(1)
    await list.page.getByLabel('Only jobs with this value of a field').fill('checked=by eve')
    await list.page.keyboard.press('Enter')
    await list.told('No job of this page matches the filter.')
    await hand.press('Remove checked')
    await hand.told('Field removed.')
    expect((await job('webhooks', 'hook-A-1007'))?.fields ?? {}).toEqual({})
  })

  it('the run of a job is ended as failed, and after the last attempt the job is in the morgue', async () => {
    const hand = await at('queues/reports/jobs/report-inventory')
    await hand.told('62 %')
    await hand.pick('More actions', 'End this run as failed')
    await hand.fill('Reason', 'the printer burns')
    await hand.page.getByLabel('Then it goes').selectOption('to the morgue')
    await hand.confirm('End run')
    await hand.told('The run was ended as failed.')
    await expect.poll(() => state('reports', 'report-inventory')).toBe('dead')
    // Its page hears of it by itself.
    await hand.told(/^✕dead$/)
  })

  it('a dead job is enqueued again with another input', async () => {
    const hand = await at('queues/payments/jobs/charge-4705')
    await hand.pick('More actions', 'Edit and enqueue again')
    await hand.fill('Input', '{ "order": 1, "cents": 5 }')
    await hand.confirm('Enqueue')
    await hand.told('The job was enqueued again.')
    await expect
      .poll(async () => (await scene.mill.queue('payments').jobs.list({ state: 'ready' })).jobs)
      .toContainEqual(expect.objectContaining({ input: { order: 1, cents: 5 } }))
  })

  it('a dead job is revived with another input', async () => {
    const hand = await at('queues/payments/jobs/charge-4705')
    await hand.pick('More actions', 'Revive with another input')
    await hand.fill('Input', '{ "order": 2')
    await hand.confirm('Revive')
    await hand.page.getByRole('dialog').getByRole('alert').first().waitFor()
    await hand.fill('Input', '{ "order": 2, "cents": 7 }')
    await hand.confirm('Revive')
    await hand.told('The job is back in the queue, with this input.')
    expect((await job('payments', 'charge-4705'))?.input).toEqual({ order: 2, cents: 7 })
  })

  it("dead jobs of one error are revived together, chosen ones deleted, and all deleted after the queue's name is typed", async () => {
    const hand = await at('queues/payments/morgue')
    await hand.pick(/Do something to the jobs with: TypeError/, /^Revive/)
    await hand.confirm('Revive')
    await hand.told('jobs revived.')
    const left = (await depthOf('payments')).dead
    expect(left).toBeLessThan(12)
    await hand.press('All dead jobs')
    await hand.page
      .getByRole('checkbox', { name: /^Select charge-/ })
      .first()
      .check()
    await hand.press('Delete')
    await hand.confirm('Delete')
    await hand.told('1 job deleted.')
    expect((await depthOf('payments')).dead).toBe(left - 1)
    await hand.press('Delete all …')
    await hand.confirm('Delete all', 'payments')
    await hand.told(`${left - 1} jobs deleted.`)
    expect((await depthOf('payments')).dead).toBe(0)
  })

  it('a worker is stopped or recycled, and shows its running jobs', async () => {
    const { workers } = await scene.store()
    const hand = await at('workers')
    for (const [order, verb, pid] of [
      ['stop', 'Stop', '2211'],
      ['recycle', 'Recycle', '2212'],
    ] as const) {
      await hand.page.getByRole('link', { name: `mill-1 · ${pid}` }).click()
      await hand.press(verb)
      await hand.confirm(`${verb} the worker`)
      await hand.told(verb === 'Stop' ? /will stop after its current jobs/ : /will be replaced after its current jobs/)
      await hand.press('Close')
      const record = (await workers!.list()).find((one) => one.pid === Number(pid))!
      expect(await workers!.beat(record, 60_000)).toBe(order)
    }
    await hand.page.getByRole('link', { name: String(process.pid) }).click()
    await hand.page.getByRole('link', { name: 'report-2026-q3' }).click()
    await hand.page.getByRole('heading', { name: 'report-2026-q3' }).waitFor()
  })

  it('a throttle gets other limits, for all queues that share it, and a mistake is shown at its field', async () => {
    const hand = await at('throttles?q=smtp')
    await hand.press('Change the limits')
    await hand.fill('In a window of', 'a while')
    await hand.confirm('Change')
    await hand.page.getByRole('dialog').getByRole('alert').first().waitFor()
    await hand.fill('In a window of', '30s')
    await hand.fill('Starts at most', '25')
    await hand.confirm('Change')
    await hand.told('The throttle has other limits now.')
    for (const queue of ['mail', 'newsletter'] as const)
      expect((await scene.mill.queue(queue).throttle.get())?.rules).toMatchObject([{ limit: 25, windowMs: 30_000 }])
    await hand.told('0 of 25 in 30 s')
  })

  it('one group of a throttle is shown', async () => {
    const hand = await at('throttles?q=feeds')
    await hand.fill('Look into a group', 'partner.example')
    await hand.press('Look')
    await hand.told('0 of 4 in 10 s')
    expect(new URL(hand.page.url()).searchParams.get('group')).toBe('partner.example')
    // Of the groups, those with ready jobs are listed.
    expect(
      await hand.page.getByRole('region', { name: 'Groups that wait in feeds' }).getByRole('link').allTextContents(),
    ).toEqual(['partner.example'])
  })

  it('a schedule is run now, paused and resumed', async () => {
    const hand = await at('schedules')
    await hand.pick('Act on weekly-digest', 'Run now')
    await hand.told(/is enqueued in 'mail'/)
    const { lastId } = (await scene.mill.schedules.get('weekly-digest'))!
    expect(await job('mail', lastId!)).toMatchObject({ task: 'send-mail', input: { to: 'all' } })
    await hand.page.getByRole('link', { name: 'weekly-digest' }).click()
    await hand.page.getByRole('region', { name: 'Latest ticks with their jobs' }).getByText('ready').waitFor()
    await hand.press('Pause')
    await hand.told('ticks no more until it is resumed')
    expect((await scene.mill.schedules.get('weekly-digest'))?.isPaused).toBe(true)
    await hand.press('Resume')
    await hand.told('ticks again')
    expect((await scene.mill.schedules.get('weekly-digest'))?.isPaused).toBe(false)
  })

  it('the events of a queue appear as they happen, and are held back while the list is paused', async () => {
    const hand = await at('queues/stock/events')
    await hand.told('Nothing has happened since you came.')
    await hand.told('Live')
    const worker = scene.mill.worker({ queues: ['stock'] })
    await scene.mill.enqueue(syncStock, { sku: 'seen' })
    await worker.start()
    await hand.page.getByRole('log').getByText('seen').first().waitFor()
    await hand.press('Stop')
    await scene.mill.enqueue(syncStock, { sku: 'held-back' })
    await hand.told(/[1-9]\d* events? since the stop/)
    expect(await hand.page.getByText('held-back').count()).toBe(0)
    await hand.press('Go on')
    await hand.page.getByRole('log').getByText('held-back').first().waitFor()
    await hand.page.getByLabel('Filter events').fill('held-back')
    expect(await hand.page.getByRole('log').getByText('seen').count()).toBe(0)
    await worker.stop()
  })

  it('a read-only page offers no action anywhere', async () => {
    const closed = await scene.window({ readOnly: true })
    const offered = new Set<string>()
    const { page } = await browser.tab()
    for (const place of [
      ...['queues/orders', 'queues/mail/jobs', 'queues/reports/jobs/report-2026-q3', 'queues/thumbnails/morgue'],
      ...['throttles', 'schedules', `workers?worker=${encodeURIComponent('mill-2/901/1-5f2c')}`],
    ]) {
      await PageHand.at(page, closed + place)
      for (const text of await page.getByRole('button').allTextContents()) offered.add(text.trim())
    }
    const actions =
      /^(Enqueue|Pause|Resume|Run now|Cancel|Bury|Delete|Revive|Stop|Recycle|Change|All jobs|⋯|Set a field)/
    expect([...offered].filter((text) => actions.test(text))).toEqual([])
  })

  it('a page that needs a token shows the log-in for any address, and then that address', async () => {
    const token = 'a-token-of-the-tests-42'
    const closed = await scene.window({ token })
    const hand = await handAt(`${closed}schedules`)
    await hand.fill('Token', 'a-wrong-token-of-16')
    await hand.press('Log in')
    await hand.told('the token is wrong')
    await hand.fill('Token', token)
    await hand.press('Log in')
    await hand.page.getByRole('heading', { name: 'Schedules' }).waitFor()
    await hand.pick('Act on refresh-feeds', 'Pause')
    await hand.told('ticks no more until it is resumed')
  })
}
