/**
 * The life of a shop: jobs in every state, two reports that run, dead ones of several errors, and a past of a day. The shop at
 * work is the same some minutes later: what waited is done, and what comes is done at once.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Mill } from 'millrace'
import type { HistoryEntry, WorkerRecord } from 'millrace/store'
import { nextEvent } from '../next-event.js'
import type { PageScene } from './page-scene.js'
import {
  chargeCard,
  fetchFeed,
  pushWebhook,
  renderReport,
  resizeImage,
  sendMail,
  syncOrder,
  syncStock,
} from './shop-tasks.js'

const people = ['ada', 'grace', 'linus', 'margaret', 'edsger', 'barbara', 'ken', 'frances', 'alan', 'radia']
const [minuteMs, hourMs] = [60_000, 3_600_000]

/** Waits for what the mill tells of so many jobs. */
async function until(mill: Mill, name: 'job.completed' | 'job.buried', count: number): Promise<void> {
  let seen = 0
  await nextEvent(mill, name, () => ++seen === count)
}

/** Jobs that end: results that are kept, and the dead. */
async function ended({ mill }: PageScene): Promise<void> {
  const worker = mill.worker({ queues: ['mail', 'payments', 'feeds'] })
  const over = Promise.all([until(mill, 'job.completed', 6), until(mill, 'job.buried', 14)])
  await mill.enqueueMany(
    sendMail,
    people.slice(0, 6).map((name) => ({ to: `${name}@example.org`, subject: 'Your order is on its way' })),
    ({ to }) => ({ id: `mail-${to.split('@')[0]}` }),
  )
  await mill.enqueueMany(
    sendMail,
    ['nobody@example.org', 'nobody@example.net'].map((to) => ({ to, subject: 'Welcome' })),
    ({ to }) => ({ id: `welcome-${to.split('.').at(-1)}` }),
  )
  await mill.enqueueMany(
    chargeCard,
    Array.from({ length: 12 }, (_, i) => ({ order: 4_711 + (i % 5) * i, cents: 1_990 })),
    (_, i) => ({ id: `charge-${4_700 + i}` }),
  )
  await worker.start()
  await over
  await worker.stop()
}

async function waiting({ mill }: PageScene): Promise<void> {
  await mill.enqueueMany(
    resizeImage,
    Array.from({ length: 48 }, (_, i) => ({ file: `product-${100 + i}.jpg`, width: 320 * (1 + (i % 3)) })),
    ({ file, width }) => ({ id: `${file}@${width}`, priority: width === 960 ? 10 : 0 }),
  )
  await mill.enqueueMany(
    sendMail,
    people.map((name) => ({ to: `${name}@example.com`, subject: 'What you left in your basket' })),
    ({ to }, i) => ({ id: `basket-${to.split('@')[0]}`, delay: `${5 + 7 * i}m` as const }),
  )
  for (const name of people)
    await mill.enqueue(
      sendMail,
      { to: `${name}@example.org`, subject: 'News of the week' },
      { queue: 'newsletter', id: `news-${name}` },
    )
  for (const [i, order] of ['A-1007', 'A-1012', 'A-1013', 'A-1020', 'A-1021', 'A-1033'].entries())
    for (let score = 0; score <= i % 3; score += 1) await mill.enqueue(syncOrder, { order }, { score })
  for (const sku of ['mug-blue', 'mug-red', 'shirt-m', 'shirt-l']) await mill.enqueue(syncStock, { sku })
  for (const [i, host] of ['partner.example', 'depot.example', 'partner.example', 'mills.example'].entries())
    await mill.enqueue(
      fetchFeed,
      { url: `https://${host}/feed.xml` },
      { id: `feed-${i + 1}`, group: host, delay: '20m' },
    )
  for (const order of ['A-1007', 'A-1012'])
    await mill.enqueue(pushWebhook, { url: 'https://erp.example/orders', order }, { id: `hook-${order}` })
  await mill.queue('webhooks').pause()
  const begun = new AbortController()
  await mill
    .queue('imports')
    .drain({ signal: begun.signal, onProgress: () => begun.abort() })
    .catch(() => {})
}

/** Two reports that run until the worker is stopped, one that has failed once, one that waits. */
async function atWork({ mill }: PageScene): Promise<() => Promise<void>> {
  const worker = mill.worker({ queues: ['reports'], concurrency: 4, grace: 0 })
  for (const [id, pages] of [
    ['report-2026-q3', 120],
    ['report-inventory', 48],
    ['report-vat', 16],
  ] as const)
    await mill.enqueue(renderReport, { pages }, { id, meta: { by: 'ada@example.org' } })
  let begun = 0
  const running = nextEvent(mill, 'job.progressed', () => ++begun === 2)
  await worker.start()
  await running
  return () => worker.stop()
}

const others: readonly Omit<WorkerRecord, 'startedAt'>[] = [
  ['mill-1', 2_211, 20, 17, 212, 4],
  ['mill-1', 2_212, 20, 20, 236, 9],
  ['mill-2', 901, 40, 6, 187, 2],
  ['mill-2', 902, 40, 0, 148, 340],
].map(([host, pid, concurrency, running, mebibytes, loopDelayMs]) => ({
  id: `${host}/${pid}/1-5f2c`,
  ...{ host: String(host), boot: 'b', pidns: 'n', pid: Number(pid), ticks: 1 },
  queues: host === 'mill-1' ? ['mail', 'newsletter', 'payments'] : ['orders', 'stock', 'thumbnails', 'feeds'],
  ...{
    concurrency: Number(concurrency),
    running: Number(running),
    state: pid === 902 ? ('stopping' as const) : ('running' as const),
  },
  ...{
    version: '0.1.0',
    selector: 'lottery',
    tasks: 7,
    rssBytes: Number(mebibytes) * 2 ** 20,
    loopDelayMs: Number(loopDelayMs),
  },
}))

/** The workers of other machines report; who does not for 30 s is silent. */
export async function otherWorkers(scene: PageScene): Promise<void> {
  const { workers } = await scene.store()
  for (const [i, worker] of others.entries())
    await workers!.beat({ ...worker, startedAt: Date.now() - (3 + 5 * i) * hourMs }, hourMs)
}

/** Jobs in a minute, by queue: a day has its waves, and the payments had a bad half hour. */
const tempo: Readonly<Record<string, number>> = {
  ...{
    mail: 42,
    newsletter: 18,
    payments: 26,
    thumbnails: 64,
    reports: 0.4,
    orders: 33,
    stock: 21,
    feeds: 4,
    webhooks: 9,
  },
}

function minuteOf(queue: string, agoMinutes: number): HistoryEntry['counts'] {
  const wave = 1 + 0.45 * Math.sin(agoMinutes / 230) + 0.2 * Math.sin(agoMinutes / 7 + queue.length)
  const enqueued = Math.max(0, Math.round((tempo[queue] ?? 1) * wave))
  const isBad = queue === 'payments' && agoMinutes > 12 && agoMinutes < 40
  const failed = isBad ? Math.round(enqueued * 0.4) : agoMinutes % 17 === 0 ? 1 : 0
  const completed = Math.max(0, enqueued - failed)
  return {
    ...{ enqueued, started: enqueued, completed, failed, dead: isBad ? 1 : 0, crashed: 0, cancelled: 0 },
    ...{ runMs: completed * 180, runTimes: [0, completed, 0, 0, 0, 0, 0] },
  }
}

/** The last minutes before now. */
async function past(scene: PageScene, length: number): Promise<void> {
  const { history } = await scene.store()
  const minutes = Array.from({ length }, (_, i) => i + 1)
  for (const queue of Object.keys(tempo))
    await history!.add(
      minutes.map((ago) => ({
        ...{ queue, agoMs: ago * minuteMs, counts: minuteOf(queue, ago) },
        gauges: {
          lagMs: Math.round(900 * (1 + Math.sin(ago / 40))),
          waiting: Math.round(30 * (1 + Math.sin(ago / 55))),
          running: 4,
        },
      })),
    )
}

/** `hasPast`: a day of history too, which takes a few seconds. Ends with what is returned. */
export async function shopLife(scene: PageScene, { hasPast = false } = {}): Promise<() => Promise<void>> {
  await scene.mill.ready()
  await ended(scene)
  await waiting(scene)
  await otherWorkers(scene)
  if (hasPast) await past(scene, 24 * 60)
  return atWork(scene)
}

/** Of each queue that is served, a job as it comes in the course of a day. */
const incoming: Readonly<Record<string, (mill: Mill, n: number) => Promise<unknown>>> = {
  mail: (mill, n) => mill.enqueue(sendMail, { to: `customer-${n}@example.org`, subject: 'Your order is on its way' }),
  newsletter: (mill, n) =>
    mill.enqueue(sendMail, { to: `reader-${n}@example.org`, subject: 'News of the week' }, { queue: 'newsletter' }),
  payments: (mill, n) => mill.enqueue(chargeCard, { order: 5_000 + n, cents: 1_990 }),
  thumbnails: (mill, n) => mill.enqueue(resizeImage, { file: `product-${200 + n}.jpg`, width: 640 }),
  orders: (mill, n) => mill.enqueue(syncOrder, { order: `A-${2_000 + n}` }),
  stock: (mill, n) => mill.enqueue(syncStock, { sku: `mug-${n}` }),
  feeds: (mill, n) => mill.enqueue(fetchFeed, { url: `https://host-${n}.example/feed.xml` }, { group: `host-${n}` }),
}

/**
 * Works at the tempo of the past for so many minutes, and goes on. Ends with what is returned. `stoodMs`: how long ago the past ended;
 * the minutes since then are filled in.
 */
export async function shopAtWork(
  scene: PageScene,
  { minutes, stoodMs }: { readonly minutes: number; readonly stoodMs: number },
): Promise<() => Promise<void>> {
  const { mill } = scene
  const { workers } = await scene.store()
  for (const { id } of others) await workers!.remove(id)
  await past(scene, Math.ceil(stoodMs / minuteMs))
  const worker = mill.worker({ queues: Object.keys(incoming), concurrency: 20 })
  await worker.start()
  let n = 0
  const timers = Object.entries(incoming).map(([queue, enqueue]) =>
    setInterval(() => void enqueue(mill, ++n), minuteMs / tempo[queue]!),
  )
  await delay(minutes * minuteMs)
  return async () => {
    for (const timer of timers) clearInterval(timer)
    await worker.stop()
  }
}
