/** The form of a queue: the settings that are fixed once it is stored, and the refusal of other values. */

import { ConfigConflictError, InvalidArgumentError } from '../../core/errors.js'
import type { Exclusive } from '../../core/queue/queue.js'
import type { MaxRunning } from '../../core/queue/queue-limits.js'
import type { QueueKind } from '../contract/queue-settings.js'

/** The settings that the first use of a queue fixes. */
export interface QueueForm {
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  readonly exclusive?: Exclusive
}

/** Throws `ConfigConflictError` if a stored queue is opened in another form. */
export function refuseOtherForm(queue: string, stored: QueueForm, asked: QueueForm): void {
  if (stored.kind !== asked.kind) {
    const remedy =
      'A queue keeps its kind for good: give the new one another name, and let workers finish the jobs of the old one.'
    throw new ConfigConflictError(queue, 'kind', stored.kind, asked.kind, remedy)
  }
  if (stored.order !== asked.order) {
    const remedy = 'Use the stored order, or give the queue another name.'
    throw new ConfigConflictError(queue, 'order', stored.order, asked.order, remedy)
  }
  const [exclusive = 'id', askedExclusive = 'id'] = [stored.exclusive, asked.exclusive]
  if (exclusive !== askedExclusive) {
    const remedy = `Use the stored value, or give the new queue another name and bring the jobs there by \`millrace queues move ${queue} <new>\`.`
    throw new ConfigConflictError(queue, 'exclusive', exclusive, askedExclusive, remedy)
  }
}

/** The error for a queue that is already being resharded to another number of shards. */
export function reshardUnderWay(queue: string, towards: number, asked: number): ConfigConflictError {
  const remedy = `It is on its way to ${towards} shards: run \`millrace queues reshard ${queue} ${towards}\` to its end first.`
  return new ConfigConflictError(queue, 'shards', towards, asked, remedy)
}

/**
 * Throws for a plain queue, which is neither resharded nor moved.
 * @internal
 */
export function refusePlain(queue: string, kind: QueueKind): void {
  if (kind === 'ordered') return
  throw new InvalidArgumentError(`queue '${queue}' is not ordered; only ordered queues are resharded and moved.`)
}

/**
 * Throws if the jobs of a queue are to be moved to where they are.
 * @internal
 */
export function refuseSelf(from: string, to: string): void {
  if (from === to) throw new InvalidArgumentError(`queue '${from}' cannot be moved into itself.`)
}

/** Throws if the jobs of an ordered queue are to have another place: its ids have no priority, and wait for their payloads. */
export function refuseNewPlace(queue: string, kind: QueueKind): void {
  if (kind === 'plain') return
  throw new InvalidArgumentError(
    `the jobs of queue '${queue}' have no other place: it is ordered, and their payloads say when they are due. Nothing was changed.`,
  )
}

const oneShard = 'What runs of each group is counted within one shard'

/** Throws if a queue with several shards, or on its way to several, is to limit the running jobs of each group. */
export function refuseGroupBound(queue: string, maxRunning: MaxRunning | 'none' | undefined, shards: number): void {
  if (typeof maxRunning !== 'object' || shards === 1) return
  const remedy = `${oneShard}: run \`millrace queues reshard ${queue} 1\` first, or give \`maxRunning\` a number for all groups together.`
  throw new ConfigConflictError(queue, 'shards', shards, 1, remedy)
}

/** Throws if a queue that limits the running jobs of each group is to be spread over several shards. */
export function refuseSpreading(queue: string, maxRunning: MaxRunning | 'none' | undefined, shards: number): void {
  if (typeof maxRunning !== 'object' || shards === 1) return
  throw new InvalidArgumentError(
    `queue '${queue}' cannot be spread over ${shards} shards. ${oneShard}: give its \`maxRunning\` a number for all groups together first.`,
  )
}
