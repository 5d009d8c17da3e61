/** A throttled project: a user's folder whose store, in memory, has counted the same starts for every command anew. */

import { project } from './project.js'

/**
 * `mail` and `sms` share the scope `api`: 2 have started, of 3 in an hour and 20 in a day; `crawl` counts by group, one of
 * `a.example` and one of `b.example`; `video` runs as many as may, `tenants` is bounded by group, `plain` by nothing.
 * With `BOTH` in the environment `hosts` has rules for all and for each group, and two have started. With `RATED` in the environment `slow.example` has a rate of its own; with `RESTARTED` the store has been started anew since.
 */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

const make = async () => {
  const harness = await memoryHarness({ startAt: Date.now() })
  const store = await harness.open()
  const rule = (limit, windowMs, more) => ({ limit, windowMs, spreadMs: 1_000, moderate: false, ...more })
  const queue = (name, more) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...more })
  const api = { scope: 'api', by: 'queue', rules: [rule(3, 3_600_000), rule(20, 86_400_000)] }
  const even = rule(10, 60_000, { moderate: true, elasticBuffer: 2 })
  await store.open([
    queue('mail', { throttle: api }),
    queue('sms', { throttle: api }),
    queue('crawl', { throttle: { scope: 'crawl', by: 'group', rules: [even] } }),
    ...(process.env.BOTH ? [queue('hosts', { throttle: { scope: 'hosts', by: 'queue', rules: [rule(100, 3_600_000)], eachGroup: [rule(1, 7_200_000)] } })] : []),
    queue('video', { maxRunning: 2 }),
    queue('tenants', { maxRunning: { perGroup: 1 } }),
  ])
  let calls = 0
  const run = async (queue, groups) => {
    const jobs = groups.map((group, i) => ({ id: 'job-' + calls + '-' + i, task: 'it', payload: '1', priority: 0, rememberMs: 0, group }))
    await store.enqueue([{ callId: 'call-' + calls++, queue, jobs }])
    await store.claim([{ queue, limit: 10 }], { worker: 'w', leaseMs: 600_000 })
  }
  await run('mail', ['', ''])
  await run('crawl', ['a.example', 'b.example'])
  await run('video', ['', '', ''])
  if (process.env.BOTH) await run('hosts', ['a.example', 'b.example'])
  if (process.env.RATED) await store.throttles.setRate('crawl', 'slow.example', [rule(1, 600_000)])
  if (process.env.RESTARTED) {
    await harness.restart()
    await run('crawl', ['c.example'])
  }
  return harness
}
export default async () => (await (globalThis.harness ??= make())).open()
`

const configFile = `
import { millrace } from 'millrace'
import open from './store.js'
const api = [{ limit: 3, window: '1h', scope: 'api' }, { limit: Number(process.env['DAILY'] ?? 20), window: '1d', scope: 'api' }]
const crawl = { limit: 10, window: '60s', by: 'group', moderate: true, elastic: { buffer: 2 } }
const mill = millrace({
  store: { module: './store.js' },
  queues: {
    mail: { throttle: api },
    sms: { throttle: api },
    crawl: { throttle: crawl },
    video: { maxRunning: 2 },
    tenants: { maxRunning: { perGroup: 1 } },
    plain: {},
    ...(process.env['BOTH'] ? { hosts: {} } : {}),
  },
  tasks: [],
})
const queue = mill.queue.bind(mill)
mill.queue = (name) => {
  const admin = queue(name)
  if ('throttle' in admin) return admin
  const throttle = {
    get: async (group) => {
      const state = await (await open()).throttles.state(name, group)
      if (state === undefined) return undefined
      const { throttle, ...counted } = state
      return { ...throttle, ...counted }
    },
    set: async (windows) => {
      const rules = windows.map(({ limit, window, moderate = false, elastic }) => ({
        limit, windowMs: window, spreadMs: 1_000, moderate, ...(elastic && { elasticBuffer: elastic.buffer }),
      }))
      await (await open()).throttles.set(name, rules)
    },
  }
  return Object.assign(admin, { throttle })
}
export default mill
`

export function throttledProject(): string {
  return project({ 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile })
}
