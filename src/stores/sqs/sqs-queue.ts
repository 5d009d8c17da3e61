/**
 * A queue in SQS with its dead-letter queue: their names there, and the batches that collect and send their entries.
 */

import { ConfigError, hasCode, StoreRefusedError, StoreUnavailableError } from '../../core/errors.js'
import { keptCall } from '../../core/values/kept-call.js'
import { type CallRoom, EntryBatch } from './client/entry-batch.js'
import { type EntryFailure, mostBatchBytes, type SendEntry, type SqsApi } from './client/sqs-api.js'

/** How long a settle or a beat waits for others to share its call, in ms. */
const lingerMs = 100

/** A dead-letter queue: its URL, and the batches of messages to send, to delete and to make visible. */
export interface DeadLetters {
  readonly url: string
  readonly sends: EntryBatch<'SendMessageBatch'>
  readonly deletes: EntryBatch<'DeleteMessageBatch'>
  readonly visibilities: EntryBatch<'ChangeMessageVisibilityBatch'>
}

/** A FIFO queue of SQS keeps order in each message group; an ordered queue is one, with a group for each id. */
export type SqsKind = 'standard' | 'fifo' | 'ordered'

export class SqsQueue {
  readonly name: string
  readonly kind: SqsKind
  /** Whether it is a FIFO queue of SQS. */
  readonly isFifo: boolean
  /** Whether it holds the jobs of an ordered task: the messages of an id are claimed together. */
  readonly isOrdered: boolean
  readonly names: QueueNames
  readonly url: string
  readonly sends: EntryBatch<'SendMessageBatch'>
  readonly deletes: EntryBatch<'DeleteMessageBatch'>
  readonly visibilities: EntryBatch<'ChangeMessageVisibilityBatch'>
  readonly #api: SqsApi
  readonly #room: CallRoom = { mostBytes: mostBatchBytes }
  /** The dead-letter queue, which is looked up once. */
  readonly dead = keptCall(() => this.#findDead())

  /** `held`: the number of messages of the queue held here; as many settles can be expected. */
  constructor(
    { name, kind, names, url }: Pick<SqsQueue, 'name' | 'kind' | 'names' | 'url'>,
    api: SqsApi,
    held: () => number,
  ) {
    this.name = name
    this.kind = kind
    this.isFifo = kind !== 'standard'
    this.isOrdered = kind === 'ordered'
    this.names = names
    this.url = url
    this.#api = api
    const expectsMore = () => held() > this.deletes.size + this.visibilities.size
    const entries = { queueUrl: url, api, room: this.#room }
    this.sends = new EntryBatch({ ...entries, kind: 'SendMessageBatch', lingerMs: 0, inOrder: this.isFifo })
    this.deletes = new EntryBatch({ ...entries, kind: 'DeleteMessageBatch', lingerMs, expectsMore })
    this.visibilities = new EntryBatch({ ...entries, kind: 'ChangeMessageVisibilityBatch', lingerMs, expectsMore })
  }

  /** Sends a message to the queue, in the first of its forms that is not refused. Throws if none was taken. */
  async send(...forms: readonly SendEntry[]): Promise<void> {
    await sendFirst(this.sends, forms, this.names.live)
  }

  /** Like `send`, to the dead-letter queue. Throws `QueueMissingError` if there is none. */
  async sendDead(...forms: readonly SendEntry[]): Promise<void> {
    const { sends } = await this.dead()
    await sendFirst(sends, forms, this.names.dead)
  }

  /** Sends all waiting entries. */
  flush(): void {
    for (const batch of [this.sends, this.deletes, this.visibilities]) batch.flush()
  }

  async #findDead(): Promise<DeadLetters> {
    const { QueueUrl: url = '' } = await this.#api.call('GetQueueUrl', { QueueName: this.names.dead })
    const entries = { queueUrl: url, api: this.#api, lingerMs: 0, room: this.#room }
    return {
      url,
      sends: new EntryBatch({ ...entries, kind: 'SendMessageBatch' }),
      deletes: new EntryBatch({ ...entries, kind: 'DeleteMessageBatch' }),
      visibilities: new EntryBatch({ ...entries, kind: 'ChangeMessageVisibilityBatch' }),
    }
  }
}

async function sendFirst(
  sends: EntryBatch<'SendMessageBatch'>,
  forms: readonly SendEntry[],
  queue: string,
): Promise<void> {
  for (const [i, form] of forms.entries()) {
    try {
      throwFailure(await sends.add(form, bytesOf(form)), queue)
      return
    } catch (error) {
      if (!isMessageRefused(error) || i === forms.length - 1) throw error
    }
  }
}

/** SQS takes other messages, but not this one. */
class MessageRefusedError extends StoreRefusedError {
  override get name(): string {
    return StoreRefusedError.name
  }
}

/** Whether it is about one message: SQS would refuse it again, and takes others. */
export function isMessageRefused(error: unknown): boolean {
  return error instanceof MessageRefusedError || hasCode(error, 'payload-too-large')
}

/** The bytes that a message adds to a call. */
function bytesOf({ MessageBody, MessageAttributes = {} }: SendEntry): number {
  const attributes = Object.entries(MessageAttributes)
  const sizes = attributes.map(([name, { DataType, StringValue }]) => Buffer.byteLength(name + DataType + StringValue))
  return sizes.reduce((sum, size) => sum + size, Buffer.byteLength(MessageBody))
}

function throwFailure(failure: EntryFailure | undefined, queue: string): void {
  if (failure === undefined) return
  const said = `${failure.Code ?? 'no code'}: ${failure.Message ?? 'no reason given'}`
  if (failure.SenderFault) throw new MessageRefusedError(`SQS does not take a message into '${queue}' (${said}).`)
  throw new StoreUnavailableError(`SQS took no message into '${queue}' now (${said}).`, { inDoubt: false })
}

/** The names of a queue and of its dead-letter queue in SQS. */
export interface QueueNames {
  readonly live: string
  readonly dead: string
}

const fifoEnd = '.fifo'

const longestName = 80

/** Throws `ConfigError` for a name that SQS does not take. An empty namespace adds no prefix. */
export function queueNames(namespace: string, queue: string, isFifo: boolean): QueueNames {
  const name = `${namespace === '' ? '' : `${namespace}-`}${queue}`
  const [live, dead] = [name, `dlq-${name}`].map((one) => (isFifo ? one + fifoEnd : one)) as [string, string]
  const refuse = (problem: string): never => {
    throw new ConfigError('the store', [
      { path: `queues.${queue}`, message: `would be '${live}' and '${dead}' in SQS, ${problem}` },
    ])
  }
  if (!/^[\w-]+$/.test(name))
    refuse("which takes letters of ASCII, digits, '-' and '_' only. Choose another name or namespace")
  if (dead.length > longestName)
    refuse(
      `which takes at most ${longestName} characters; the second has ${dead.length}. Choose a shorter name or namespace`,
    )
  return { live, dead }
}
