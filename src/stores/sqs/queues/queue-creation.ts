/** The creation of a queue in SQS together with its dead-letter queue. */

import { hasCode } from '../../../core/error-codes.js'
import type { SqsApi } from '../client/sqs-api.js'
import type { QueueNames } from '../messages/queue-names.js'

/** The longest retention that SQS has. */
const retentionS = '1209600'
/** SQS itself moves a message that was received this often without being settled: its handler kills its worker. */
const mostReceives = 100
/** Every receive of ours says how long it hides a message; this value is for other receivers. */
const visibilityS = '30'

/** Creates the missing queues. Resolves with whether any was missing. */
export async function createQueue(
  api: SqsApi,
  { live, dead }: QueueNames,
  tags: Readonly<Record<string, string>>,
): Promise<boolean> {
  // Tags need a right of their own, even an empty set.
  const tagged = Object.keys(tags).length === 0 ? {} : { tags }
  const [liveUrl, oldDeadUrl] = await Promise.all([foundUrl(api, live), foundUrl(api, dead)])
  const kept = { MessageRetentionPeriod: retentionS, ...(live.endsWith('.fifo') ? { FifoQueue: 'true' } : {}) }
  const deadUrl =
    oldDeadUrl ?? (await api.call('CreateQueue', { QueueName: dead, Attributes: kept, ...tagged })).QueueUrl ?? ''
  if (liveUrl !== undefined) return oldDeadUrl === undefined
  const asked = { QueueUrl: deadUrl, AttributeNames: ['QueueArn'] }
  const { Attributes = {} } = await api.call('GetQueueAttributes', asked)
  const redrive = { deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: mostReceives }
  await api.call('CreateQueue', {
    QueueName: live,
    Attributes: { ...kept, VisibilityTimeout: visibilityS, RedrivePolicy: JSON.stringify(redrive) },
    ...tagged,
  })
  return true
}

/** Undefined if there is no such queue. */
export async function foundUrl(api: SqsApi, name: string): Promise<string | undefined> {
  try {
    return (await api.call('GetQueueUrl', { QueueName: name })).QueueUrl
  } catch (error) {
    if (hasCode(error, 'queue-missing')) return undefined
    throw error
  }
}
