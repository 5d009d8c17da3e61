/** The queues of the demo: three of different weight, one that is ordered, one that is throttled, and one for long tasks. */

import type { QueueOptions } from 'millrace'

/** The demo reads all results back at its end. */
const retention = { results: 'untilDeleted' } as const

/** How often a site is asked. */
export const crawlPace = { limit: 20, windowMs: 1_000 }

export const queues = {
  high: { weight: 100, retention },
  default: { weight: 40, retention },
  low: { weight: 5, retention },
} satisfies Record<string, QueueOptions>

/** Those of the other parts. */
export const otherQueues = {
  history: { shards: 8 },
  crawl: { throttle: { limit: crawlPace.limit, window: crawlPace.windowMs, by: 'group', moderate: true } },
  archive: {},
} satisfies Record<string, QueueOptions>

export type QueueName = keyof typeof queues

export const queueNames = Object.keys(queues) as QueueName[]
