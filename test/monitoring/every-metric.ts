/** Every metric: samples of each one, of queues of every kind. */

import { MetricSamples } from '#src/measures/exposition.js'
import { addQueues, addThrottles, addWorkers, type MillMetrics } from '#src/measures/mill-metrics.js'
import { addCounters, addVitals } from '#src/measures/process-metrics.js'

const depth = {
  ...{ ready: 3, waiting: 21, scheduled: 1, running: 2, dead: 4, fresh: 3, retries: 1, suspects: 0, payloads: 5 },
  ...{ processed: 10, failed: 2, crashed: 1, expired: 0, lagMs: 1_500, shardLagsMs: [1_500, 0] },
}
const queue = { paused: false, draining: false, workers: 1, standstill: [], hours: [] }

export const everyMillMetrics: MillMetrics = {
  ...{ store: 'sqlite', isExact: true, hasHistory: true, queuesLeftOut: 0, throttlesLeftOut: 0, unread: [] },
  queues: [
    { ...queue, name: 'mail', isOrdered: false, depth, runningLimit: 4, standstill: ['held', 'max-running'] },
    { ...queue, name: 'orders', isOrdered: true, depth },
    { ...queue, name: 'broken', isOrdered: false },
  ],
  throttles: [
    { name: 'crawl', rules: [{ limit: 10, windowMs: 60_000 }], hits: [7], waitMs: 250 },
    { name: 'sites', rules: [{ limit: 1, windowMs: 500 }], hits: [], waitMs: 0, groups: 12 },
  ],
  workers: {
    ...{ running: 1, stopping: 0, silent: 0 },
    each: [{ id: 'w', host: 'h', slots: 10, running: 2, rssBytes: 90_000_000, loopDelayMs: 12 }],
  },
}

export function everySample(): MetricSamples {
  const samples = new MetricSamples()
  const counts = { enqueued: 9, started: 8, completed: 6, failed: 2, dead: 1, crashed: 0, cancelled: 0 }
  addQueues(samples, everyMillMetrics, () => ({ ...counts, runMs: 1_234, runTimes: [1, 2, 3, 0, 1, 0, 1] }))
  addThrottles(samples, everyMillMetrics)
  addWorkers(samples, everyMillMetrics)
  addVitals(samples, 17, { rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1 })
  const tasks = [
    { queue: 'mail', task: 'send', completed: 5, failed: 2, dead: 1, runMs: 1_234, runTimes: [1, 2, 3, 0, 1, 0, 0] },
  ]
  addCounters(samples, { failures: [['mail', 'error', 2]], events: { 'store.failed': 1 }, tasks })
  // Those that the page itself and `millrace work` add.
  samples.add('millrace_up', {}, 1)
  samples.add('millrace_build_info', { version: '1.2.3', store: 'sqlite' }, 1)
  samples.add('millrace_scrape_duration_seconds', {}, 0.01)
  samples.add('millrace_scrape_errors_total', { part: 'store' }, 0)
  samples.add('millrace_work_processes', { state: 'running' }, 2)
  samples.add('millrace_work_deaths_total', {}, 0)
  return samples
}
