/** The doctor's rules for a queue in SQS: findings on its attributes and those of its dead-letter queue. Pure. */

import { formatDuration } from '../../../core/values/duration.js'
import type { Finding } from '../../contract/store-health.js'
import { mostBatchBytes } from '../client/sqs-api.js'
import type { QueueNames } from '../messages/queue-names.js'

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

export function judgeQueue({ queue, names, live, dead }: QueueFacts): Finding[] {
  const what = `queue ${queue}`
  const error = (text: string): Finding => ({ level: 'error', what, text })
  const create = 'make it with `millrace queues create`'
  if (live === undefined) return [error(`SQS has no '${names.live}': ${create}`)]
  const findings = [
    ...(dead === undefined ? [error(`SQS has no '${names.dead}', and no job could be buried: ${create}`)] : []),
    ...warnings(names, live, dead).map((text): Finding => ({ level: 'warning', what, text })),
  ]
  return findings.length > 0 ? findings : [{ level: 'ok', what, text: `'${names.live}', with '${names.dead}'` }]
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
