/**
 * Proof of the API: 10,000 calls, drawn from its own description and around it, on SQLite and on Redis. No call makes
 * an error of ours. Without a token no call reveals or changes anything. Caveat: calls come one after the other, over
 * loopback. The same seed draws the same calls.
 */

import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineOrderedTask, defineTask, type Mill, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { webHandler } from 'millrace/web'
import { openApiOf } from '#src/web/api/openapi.js'
import { endpoints } from '#src/web/api/router.js'
import { fuzz, fuzzCalls, type OpenApi } from '../test/web/api-fuzz.js'
import type { Report, Summary } from './report.js'

export const seed = 20

const calls = 10_000
const callsWithoutToken = 2_000
const token = 'a-token-of-the-proof-42'
const document = JSON.parse(JSON.stringify(openApiOf(endpoints))) as OpenApi

const mail = defineTask({ name: 'send-mail', queue: 'mail', run: async (_: { readonly to: string }) => {} })
const sync = defineOrderedTask({
  ...{ name: 'sync-order', queue: 'orders' },
  id: ({ order }: { readonly order: string }) => order,
  run: async () => {},
})

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-web-fuzz-'))
  const redis = await startRedis()
  try {
    const sqlite = await proveOn(report, `sqlite:${join(folder, 'jobs.db')}`, 'SQLite')
    return { sqlite, redis: await proveOn(report, redis.url, 'Redis') }
  } finally {
    await redis.stop()
    rmSync(folder, { recursive: true })
  }
}

async function proveOn(report: Report, store: string, name: string): Promise<Summary> {
  const mill = millrace({
    ...{ store, tasks: [mail, sync], tasksElsewhere: ['crawl-page'] },
    queues: {
      mail: { maxPending: 1_500 },
      orders: { ordered: true, shards: 2 },
      crawl: { throttle: { limit: 10, window: '1m' } },
    },
    schedules: { nightly: { cron: '0 3 * * *', task: mail, input: { to: 'all' } } },
  })
  let actions = 0
  const window = webHandler(mill, { token, onAction: () => (actions += 1) })
  const server = createServer(window.node).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await mill.schedules.reconcile()
    await mill.enqueueMany(
      mail,
      ['m1', 'm2', 'm3', 'd1'].map((to) => ({ to })),
      ({ to }) => ({ id: to }),
    )
    await mill.enqueue(sync, { order: 'o1' })
    await mill.queue('mail').jobs.bury(['d1'])
    const before = await standing(mill)
    const closed = await fuzz(url, document, fuzzCalls(document, callsWithoutToken, seed + 1), {})
    const isOpen = Object.keys(closed.statuses).some((status) => !['401', '403', '404', '405', '421'].includes(status))
    report.say(`${name}, without a token: ${JSON.stringify(closed.statuses)}`)
    report.claim(
      `${name}: ${callsWithoutToken} calls without a token tell nothing`,
      !isOpen && closed.wrong.length === 0,
    )
    report.claim(`${name}: and change nothing`, (await standing(mill)) === before && actions === 0)
    const { wrong, statuses } = await fuzz(url, document, fuzzCalls(document, calls, seed), {
      authorization: `Bearer ${token}`,
    })
    report.say(`${name}, with the token: ${JSON.stringify(statuses)}, ${actions} actions told to the audit`)
    for (const line of wrong.slice(0, 20)) report.say(`  ${line}`)
    report.claim(
      `${name}: ${calls} calls with it make no error of ours, and each error is told as the document says`,
      wrong.length === 0,
    )
    return { withoutToken: closed.statuses, withToken: statuses, actions, wrong: wrong.length }
  } finally {
    await window.close()
    server.close()
    server.closeAllConnections()
    await mill.close()
  }
}

/** The visible state of the store, without the parts that time alone changes. */
async function standing(mill: Mill): Promise<string> {
  const queues = [...mill.queues.keys()]
  const depths = (await mill.depths(queues)).map(({ lagMs: _, shardLagsMs: _lags, ...counts }) => counts)
  const jobs = await Promise.all(queues.map((queue) => mill.queue(queue).jobs.list({ by: 'id' })))
  return JSON.stringify({ depths, jobs, schedules: await mill.schedules.list(), stored: await mill.storedQueues() })
}
