/** The queues of a store: found in SQS when they are opened or first used, and created there only on request. */

import { hasCode, QueueMissingError, UnknownQueueError, UnsupportedByStoreError } from '../../core/errors.js'
import type { Provision, ProvisionedQueue } from '../contract/provision.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { SqsApi } from './client/sqs-api.js'
import { type QueueNames, queueNames, type SqsKind, SqsQueue } from './sqs-queue.js'

export class SqsQueues implements Provision {
  readonly #api: SqsApi
  readonly #namespace: string
  readonly #held: (queue: string) => number
  /** The lookups under way, by kind and name. */
  readonly #found = new Map<string, Promise<SqsQueue | undefined>>()
  /** What was opened, or else found without knowing its kind. */
  readonly #queues = new Map<string, SqsQueue>()

  /** `held`: the number of messages of a queue held here. */
  constructor(api: SqsApi, namespace: string, held: (queue: string) => number) {
    this.#api = api
    this.#namespace = namespace
    this.#held = held
  }

  async create(
    all: readonly QueueSettings[],
    tags: Readonly<Record<string, string>> = {},
  ): Promise<ProvisionedQueue[]> {
    for (const settings of all) refuseUnsupported(settings)
    return Promise.all(
      all.map(async (settings) => {
        const { name: queue } = settings
        const names = this.namesOf(settings)
        const wasMissing = await createQueue(this.#api, names, tags)
        return { queue, name: names.live, deadName: names.dead, wasMissing }
      }),
    )
  }

  /** The names of the queue in SQS. Throws `ConfigError` for a name that SQS does not take. */
  namesOf(settings: QueueSettings): QueueNames {
    return this.#named(settings.name, isFifo(settings))
  }

  /**
   * Throws `QueueMissingError` for a queue that SQS lacks, and `UnsupportedByStoreError` for settings that it cannot
   * keep.
   */
  async open(all: readonly QueueSettings[]): Promise<StoredQueue[]> {
    for (const settings of all) refuseUnsupported(settings)
    const found = await Promise.all(all.map((settings) => this.#find(settings.name, kindOf(settings))))
    for (const queue of found) if (queue !== undefined) this.#queues.set(queue.name, queue)
    const missing = all.filter((_, i) => found[i] === undefined)
    if (missing.length > 0) throw this.#missing(missing)
    return all.map(({ name, kind, order }) => ({
      ...{ name, kind, order, exclusive: 'id' as const, shards: 1, paused: false, draining: false, limits: {} },
    }))
  }

  /** Throws `UnknownQueueError` for a queue that SQS lacks. */
  async get(name: string): Promise<SqsQueue> {
    const known = this.#queues.get(name)
    if (known !== undefined) return known
    const found = (await this.#find(name, 'standard')) ?? (await this.#find(name, 'fifo'))
    // It may have been opened meanwhile.
    const queue = this.#queues.get(name) ?? found
    if (queue === undefined) throw new UnknownQueueError(name, [...this.#queues.keys()])
    this.#queues.set(name, queue)
    return queue
  }

  /** The queues by name, each once. */
  async allOf(names: readonly string[]): Promise<ReadonlyMap<string, SqsQueue>> {
    const unique = [...new Set(names)]
    const queues = await Promise.all(unique.map((name) => this.get(name)))
    return new Map(unique.map((name, i) => [name, queues[i]!]))
  }

  /** The queues found so far. */
  get known(): SqsQueue[] {
    return [...this.#queues.values()]
  }

  /** Looks a queue up as one of this kind; calls that come meanwhile share the lookup. */
  #find(name: string, kind: SqsKind): Promise<SqsQueue | undefined> {
    const known = this.#queues.get(name)
    if (known?.kind === kind) return Promise.resolve(known)
    const key = `${kind} ${name}`
    let found = this.#found.get(key)
    if (found === undefined) {
      found = this.#look(name, kind).finally(() => this.#found.delete(key))
      this.#found.set(key, found)
    }
    return found
  }

  async #look(name: string, kind: SqsKind): Promise<SqsQueue | undefined> {
    const names = this.#named(name, kind !== 'standard')
    const url = await foundUrl(this.#api, names.live)
    if (url === undefined) return undefined
    return new SqsQueue({ name, kind, names, url }, this.#api, () => this.#held(name))
  }

  #named(queue: string, isFifo: boolean): QueueNames {
    return queueNames(this.#namespace, queue, isFifo)
  }

  #missing(queues: readonly QueueSettings[]): QueueMissingError {
    const [which, are, them] = queues.length === 1 ? ['queue', 'is', 'it'] : ['queues', 'are', 'them']
    const names = queues.map((settings) => `'${this.namesOf(settings).live}'`).join(', ')
    return new QueueMissingError(
      `${which} ${queues.map(({ name }) => `'${name}'`).join(', ')} ${are} not in SQS: it has no ${names} (${this.#api.where}). Make ${them} with \`millrace queues create\`, or start with --create-queues.`,
    )
  }
}

function kindOf({ kind, fifo }: QueueSettings): SqsKind {
  return kind === 'ordered' ? 'ordered' : fifo ? 'fifo' : 'standard'
}

function isFifo(settings: QueueSettings): boolean {
  return kindOf(settings) !== 'standard'
}

function refuseUnsupported({ name, order, exclusive, merge }: QueueSettings): void {
  const refuse = (feature: string, remedy: string) => {
    throw new UnsupportedByStoreError('sqs', feature, remedy)
  }
  if (exclusive === 'shard')
    refuse(`\`exclusive: 'shard'\` of queue '${name}'`, 'Leave it out, or use a store with shards.')
  if (merge !== undefined && merge !== 'all')
    refuse(`merging in queue '${name}'`, 'Leave `merge` out, or use a store that merges.')
  if (order === 'lifo')
    refuse(`the order 'lifo' of queue '${name}'`, 'Leave `order` out, or use a store that keeps jobs in order.')
}

/** The longest retention that SQS has. */
const retentionS = '1209600'

/** SQS itself moves a message that was received this often without being settled: its handler kills its worker. */
const mostReceives = 100

/** Every receive of ours says how long it hides a message; this value is for other receivers. */
const visibilityS = '30'

/** Creates the queue and its dead-letter queue, as far as they are missing. Resolves with whether any was. */
async function createQueue(
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
