/** The health of the SQS store: its queues as SQS describes them, and the rights that it needs. */

import { messageOf } from '../../core/messages/describe.js'
import { formatDuration } from '../../core/values/duration.js'
import type { QueueSettings } from '../contract/queue-settings.js'
import type { FsckFinding, StoreHealth } from '../contract/store-health.js'
import { error, ok, warning } from '../rules/findings.js'
import { mostBatchBytes, type SqsApi, type SqsCall } from './client/sqs-api.js'
import type { QueueNames } from './sqs-queue.js'
import { foundUrl, type SqsQueues } from './sqs-queues.js'

export class SqsHealth implements StoreHealth {
  readonly #api: SqsApi
  readonly #queues: SqsQueues
  readonly #namespace: string

  constructor(api: SqsApi, queues: SqsQueues, namespace: string) {
    this.#api = api
    this.#queues = queues
    this.#namespace = namespace
  }

  async examine(declared: readonly QueueSettings[] = []): Promise<FsckFinding[]> {
    let arn: string | undefined
    const findings = await Promise.all(
      declared.map(async (settings): Promise<FsckFinding[]> => {
        const names = this.#queues.namesOf(settings)
        try {
          const [live, dead] = await Promise.all([this.#attributesOf(names.live), this.#attributesOf(names.dead)])
          arn ??= live?.['QueueArn']
          return judgeQueue({ queue: settings.name, names, live, dead })
        } catch (failure) {
          return [error(`queue ${settings.name}`, messageOf(failure))]
        }
      }),
    )
    return [...findings.flat(), ok('rights it needs', policyText(this.#namespace, arn, false))]
  }

  async check(): Promise<FsckFinding[]> {
    return [ok('content', 'SQS lets nobody look at what its queues hold')]
  }

  /** Undefined if there is no such queue. */
  async #attributesOf(name: string): Promise<Readonly<Record<string, string>> | undefined> {
    const url = await foundUrl(this.#api, name)
    if (url === undefined) return undefined
    return (await this.#api.call('GetQueueAttributes', { QueueUrl: url, AttributeNames: ['All'] })).Attributes ?? {}
  }
}

type Attributes = Readonly<Record<string, string>>

interface QueueFacts {
  readonly queue: string
  readonly names: QueueNames
  /** Undefined if there is no such queue. */
  readonly live: Attributes | undefined
  readonly dead: Attributes | undefined
}

/** A job may wait this long for its workers: a weekend with holidays. */
const leastRetentionMs = 4 * 86_400_000

/** A task has four retries by default, and a deploy or a crash is a receive too. */
const leastReceives = 10

/** SQS gives no more messages of a standard queue once 120,000 are in flight. */
const manyInFlight = 100_000

/** The findings on the attributes of a queue and those of its dead-letter queue. */
export function judgeQueue({ queue, names, live, dead }: QueueFacts): FsckFinding[] {
  const what = `queue ${queue}`
  const create = 'make it with `millrace queues create`'
  if (live === undefined) return [error(what, `SQS has no '${names.live}': ${create}`)]
  const findings = [
    ...(dead === undefined ? [error(what, `SQS has no '${names.dead}', and no job could be buried: ${create}`)] : []),
    ...warnings(names, live, dead).map((text) => warning(what, text)),
  ]
  return findings.length > 0 ? findings : [ok(what, `'${names.live}', with '${names.dead}'`)]
}

function warnings(
  { live: name, dead: deadName }: QueueNames,
  live: Attributes,
  dead: Attributes | undefined,
): string[] {
  const [retentionMs, deadRetentionMs] = [live, dead].map((one) => Number(one?.['MessageRetentionPeriod'] ?? 0) * 1_000)
  const { deadLetterTargetArn, maxReceiveCount } = redriveIn(live)
  const told: (readonly [isWrong: boolean, text: string])[] = [
    [
      retentionMs! > 0 && retentionMs! < leastRetentionMs,
      `SQS deletes a job that has waited for ${formatDuration(retentionMs!)}: raise MessageRetentionPeriod of '${name}', up to 1209600`,
    ],
    [
      deadRetentionMs! > 0 && deadRetentionMs! < retentionMs!,
      `dead jobs are kept for a shorter time than waiting ones: raise MessageRetentionPeriod of '${deadName}', up to 1209600`,
    ],
    [
      deadLetterTargetArn === undefined,
      `it has no redrive policy: a job that takes its worker with it comes back for ever. Set RedrivePolicy of '${name}' to '${deadName}' with a maxReceiveCount of 100`,
    ],
    [
      deadLetterTargetArn !== undefined && !deadLetterTargetArn.endsWith(`:${deadName}`),
      `its redrive policy moves jobs to '${deadLetterTargetArn?.split(':').at(-1)}' and not to '${deadName}'`,
    ],
    [
      maxReceiveCount !== undefined && maxReceiveCount < leastReceives,
      `SQS itself buries a job that was received ${maxReceiveCount} times, whatever its retries; a deploy is a receive too: raise maxReceiveCount in RedrivePolicy to 100`,
    ],
    [
      Number(live['DelaySeconds'] ?? 0) > 0,
      `it delays every job by ${live['DelaySeconds']} s: set DelaySeconds of '${name}' to 0`,
    ],
    [
      Number(live['MaximumMessageSize'] ?? mostBatchBytes) < mostBatchBytes,
      `it takes messages of ${live['MaximumMessageSize']} bytes: raise MaximumMessageSize of '${name}' to ${mostBatchBytes}, or set maxPayloadBytes`,
    ],
    [
      Number(live['ApproximateNumberOfMessagesNotVisible'] ?? 0) > manyInFlight,
      `${live['ApproximateNumberOfMessagesNotVisible']} messages are in flight, and from 120000 on SQS gives none: retries that wait for long count among them`,
    ],
  ]
  return told.filter(([isWrong]) => isWrong).map(([, text]) => text)
}

function redriveIn(live: Attributes): { deadLetterTargetArn?: string; maxReceiveCount?: number } {
  const given = live['RedrivePolicy']
  if (given === undefined || given === '') return {}
  const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(given) as Record<string, unknown>
  return {
    ...(typeof deadLetterTargetArn === 'string' ? { deadLetterTargetArn } : {}),
    ...(maxReceiveCount === undefined ? {} : { maxReceiveCount: Number(maxReceiveCount) }),
  }
}

interface Right {
  readonly action: string
  /** The queues concerned: those of jobs, or their dead-letter queues too. */
  readonly of: 'live' | 'both'
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
 * The rights that a process which enqueues and works needs for all queues of a namespace, as an IAM policy. `creates`: whether it
 * also creates queues. `arn`: of one of them, for the region and account; undefined if none is known.
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
