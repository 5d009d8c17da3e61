/** The queues of the demo: three of different weight. */

import type { QueueOptions } from 'millrace'

/** The demo reads all results back at its end. */
const retention = { results: 'untilDeleted' } as const

export const queues = {
  high: { weight: 100, retention },
  default: { weight: 40, retention },
  low: { weight: 5, retention },
} satisfies Record<string, QueueOptions>

export type QueueName = keyof typeof queues

export const queueNames = Object.keys(queues) as QueueName[]
