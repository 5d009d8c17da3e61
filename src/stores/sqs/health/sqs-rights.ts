/** The rights that the store needs for its calls, as an IAM policy. Pure. */

import type { SqsCall } from '../client/sqs-api.js'

interface Right {
  readonly action: string
  /** The queues concerned: those of jobs, their dead-letter queues, or both. */
  readonly of: 'live' | 'dead' | 'both'
  /** Needed only to create queues. */
  readonly creates?: true
}

/** Every call of the API: a new call needs its right here. IAM knows no batch actions. */
const rights: Readonly<Record<SqsCall, Right>> = {
  GetQueueUrl: { action: 'sqs:GetQueueUrl', of: 'both' },
  GetQueueAttributes: { action: 'sqs:GetQueueAttributes', of: 'both' },
  SendMessageBatch: { action: 'sqs:SendMessage', of: 'both' },
  ReceiveMessage: { action: 'sqs:ReceiveMessage', of: 'live' },
  DeleteMessageBatch: { action: 'sqs:DeleteMessage', of: 'live' },
  ChangeMessageVisibilityBatch: { action: 'sqs:ChangeMessageVisibility', of: 'live' },
  CreateQueue: { action: 'sqs:CreateQueue', of: 'both', creates: true },
}

/**
 * The policy of a process that enqueues and works, for all queues of a namespace. `creates`: whether it also creates
 * queues. `arn`: of one of them, for the region and account; undefined if none is known.
 */
export function policyText(namespace: string, arn: string | undefined, creates: boolean): string {
  const [, partition = 'aws', , region = '*', account = '*'] = arn?.split(':') ?? []
  const prefix = namespace === '' ? '' : `${namespace}-`
  const named = (name: string) => `arn:${partition}:sqs:${region}:${account}:${name}${prefix}*`
  const statement = (of: Right['of'], resources: readonly string[]) => ({
    Effect: 'Allow',
    Action: Object.values(rights)
      .filter((right) => right.of === of && (creates || right.creates === undefined))
      .map(({ action }) => action),
    Resource: resources,
  })
  const [live, dead] = [named(''), named('dlq-')]
  return JSON.stringify({
    Version: '2012-10-17',
    Statement: [statement('live', [live]), statement('both', [live, dead])],
  })
}
