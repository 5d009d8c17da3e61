/** The health of the SQS store: its queues as SQS describes them, and the rights that it needs. */

import { messageOf } from '../../../core/values/describe.js'
import type { QueueSettings } from '../../contract/queue-settings.js'
import type { Finding, StoreHealth } from '../../contract/store-health.js'
import type { SqsApi } from '../client/sqs-api.js'
import { foundUrl } from '../queues/queue-creation.js'
import type { SqsQueues } from '../queues/sqs-queues.js'
import { judgeQueue } from './sqs-doctor-rules.js'
import { policyText } from './sqs-rights.js'

export class SqsHealth implements StoreHealth {
  readonly #api: SqsApi
  readonly #queues: SqsQueues
  readonly #namespace: string

  constructor(api: SqsApi, queues: SqsQueues, namespace: string) {
    this.#api = api
    this.#queues = queues
    this.#namespace = namespace
  }

  async examine(declared: readonly QueueSettings[] = []): Promise<Finding[]> {
    let arn: string | undefined
    const findings = await Promise.all(
      declared.map(async (settings): Promise<Finding[]> => {
        const names = this.#queues.namesOf(settings)
        try {
          const [live, dead] = await Promise.all([this.#attributesOf(names.live), this.#attributesOf(names.dead)])
          arn ??= live?.['QueueArn']
          return judgeQueue({ queue: settings.name, names, live, dead })
        } catch (error) {
          return [{ level: 'error', what: `queue ${settings.name}`, text: messageOf(error) }]
        }
      }),
    )
    return [...findings.flat(), { level: 'ok', what: 'rights it needs', text: policyText(this.#namespace, arn, false) }]
  }

  async check(): Promise<Finding[]> {
    return [{ level: 'ok', what: 'content', text: 'SQS lets nobody look at what its queues hold' }]
  }

  /** Undefined if there is no such queue. */
  async #attributesOf(name: string): Promise<Readonly<Record<string, string>> | undefined> {
    const url = await foundUrl(this.#api, name)
    if (url === undefined) return undefined
    return (await this.#api.call('GetQueueAttributes', { QueueUrl: url, AttributeNames: ['All'] })).Attributes ?? {}
  }
}
