/** The tasks of a shop: queues of every kind, work that takes long, and work that fails in several ways. */

import { defineOrderedTask, defineTask, type JobContext, type MillOptions } from 'millrace'

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

export const sendMail = defineTask({
  name: 'send-mail',
  queue: 'mail',
  retry: { max: 0 },
  run: async ({ to }: { readonly to: string; readonly subject: string }) => {
    if (to.startsWith('nobody')) throw new Error(`550 5.1.1 <${to}>: mailbox unavailable`)
    return { messageId: `<${to}>` }
  },
})

export const chargeCard = defineTask({
  name: 'charge-card',
  queue: 'payments',
  retry: { max: 0 },
  run: async ({ order }: { readonly order: number; readonly cents: number }) => {
    // The bank answers again.
    if (order >= 5_000) return
    if (order % 2 === 0) throw new TypeError("Cannot read properties of undefined (reading 'brand')")
    throw new Error('connect ECONNREFUSED 10.0.4.17:8443')
  },
})

export const resizeImage = defineTask({
  name: 'resize-image',
  queue: 'thumbnails',
  run: async (_: { readonly file: string; readonly width: number }) => {},
})

export const renderReport = defineTask({
  name: 'render-report',
  timeLimit: '2h',
  queue: 'reports',
  retry: { max: 3 },
  run: async ({ pages, failing }: { readonly pages: number; readonly failing?: string }, ctx: JobContext) => {
    const done = Math.round(0.62 * pages)
    for (let page = Math.max(1, done - 11); page <= done; page += 1)
      ctx.log(`page ${page} of ${pages}: 4 charts, 2 tables`)
    ctx.progress(0.62, `page ${done} of ${pages}`)
    await ctx.checkpoint({ page: done })
    await ctx.fields.set({ region: 'eu-west', customer: 4711 })
    await ctx.enqueue(resizeImage, { file: 'cover.png', width: 640 })
    if (failing !== undefined) throw new Error(failing)
    await untilAborted(ctx.signal)
    throw ctx.signal.reason
  },
})

export const syncOrder = defineOrderedTask({
  name: 'sync-order',
  queue: 'orders',
  id: ({ order }: { readonly order: string }) => order,
  run: async () => {},
})

export const syncStock = defineOrderedTask({
  name: 'sync-stock',
  queue: 'stock',
  id: ({ sku }: { readonly sku: string }) => sku,
  run: async () => {},
})

export const fetchFeed = defineTask({
  name: 'fetch-feed',
  queue: 'feeds',
  run: async (_: { readonly url: string }) => {},
})

export const pushWebhook = defineTask({
  name: 'push-webhook',
  queue: 'webhooks',
  run: async (_: { readonly url: string; readonly order: string }) => {},
})

export const shop = {
  queues: {
    mail: { throttle: { limit: 120, window: '1m', moderate: true, scope: 'smtp' } },
    newsletter: {
      throttle: { limit: 120, window: '1m', moderate: true, scope: 'smtp' },
      maxPending: 50_000,
    },
    payments: {
      weight: 100,
      throttle: [
        { limit: 10, window: '1s' },
        { limit: 300, window: '1m' },
      ],
    },
    thumbnails: { weight: 5 },
    reports: { maxRunning: 2, retention: { results: { age: '1d' } } },
    orders: { ordered: true, shards: 5 },
    stock: { ordered: true, shards: 2 },
    feeds: { throttle: { limit: 4, window: '10s', by: 'group' } },
    webhooks: {},
    imports: {},
  },
  tasks: [sendMail, chargeCard, resizeImage, renderReport, syncOrder, syncStock, fetchFeed, pushWebhook],
  schedules: {
    'nightly-report': { cron: '0 3 * * *', timeZone: 'Europe/Berlin', task: renderReport, input: { pages: 40 } },
    'refresh-feeds': {
      ...{ every: '15m', task: fetchFeed, overlap: 'skip' },
      input: { url: 'https://partner.example/feed.xml' },
    },
    'weekly-digest': {
      cron: '30 8 * * MON',
      timeZone: 'America/New_York',
      task: sendMail,
      input: { to: 'all', subject: 'This week' },
    },
  },
} satisfies Omit<MillOptions, 'store'>
