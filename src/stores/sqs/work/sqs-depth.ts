/** The depth of a queue, as accurate as SQS reports it. */

import { hasCode } from '../../../core/error-codes.js'
import type { Depth } from '../../contract/queue-depth.js'
import type { SqsApi } from '../client/sqs-api.js'
import type { SqsQueue } from '../queues/sqs-queue.js'

const [visible, hidden, delayed] = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const

export async function depthOf(api: SqsApi, queue: SqsQueue): Promise<Depth> {
  const [live, dead] = await Promise.all([
    countsOf(api, queue.url),
    queue.dead().then(
      ({ url }) => countsOf(api, url),
      (error: unknown) => {
        if (hasCode(error, 'queue-missing')) return () => 0
        throw error
      },
    ),
  ])
  const waiting = live(visible) + live(delayed)
  return {
    ...{ queue: queue.name, ready: live(visible), scheduled: live(delayed), running: live(hidden) },
    ...{ dead: dead(visible) + dead(hidden), payloads: waiting, fresh: waiting },
    ...{
      suspects: 0,
      retries: 0,
      lagMs: 0,
      processed: 0,
      failed: 0,
      crashed: 0,
      expired: 0,
      paused: false,
      draining: false,
    },
  }
}

async function countsOf(api: SqsApi, url: string): Promise<(name: string) => number> {
  const input = { QueueUrl: url, AttributeNames: [visible, hidden, delayed] }
  const { Attributes = {} } = await api.call('GetQueueAttributes', input)
  return (name) => Number(Attributes[name] ?? 0)
}
