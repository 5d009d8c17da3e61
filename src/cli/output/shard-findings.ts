/**
 * Shard findings: the queues whose reshard is unfinished, and those whose number of shards differs from the configuration. The
 * stored number counts.
 */

import type { Queue } from '../../core/queue/queue.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Finding } from '../../stores/contract/store-health.js'

export function shardFindings(declared: ReadonlyMap<string, Queue>, stored: readonly StoredQueue[]): Finding[] {
  return stored.flatMap((queue) => {
    if (queue.resharding !== undefined) return [unfinished(queue.name, queue.resharding)]
    const asked = declared.get(queue.name)?.shards
    return asked !== undefined && differs(queue, asked) ? [findingOf(queue, asked)] : []
  })
}

/**
 * Whether the configuration asks for another number of shards than is stored. A plain queue has one shard if its store
 * does not spread queues.
 */
export function differs({ kind, shards }: StoredQueue, asked: number): boolean {
  return asked !== shards && (kind === 'ordered' || shards > 1)
}

function unfinished(name: string, shards: number): Finding {
  const text = `the reshard of queue '${name}' to ${counted(shards)} is unfinished: none of its jobs starts until it ends. If nobody runs it now, \`millrace queues reshard ${name} ${shards}\` goes on with it.`
  return { level: 'warning', what: 'shards', text }
}

function findingOf({ name, kind, shards }: StoredQueue, asked: number): Finding {
  const found = `queue '${name}' has ${counted(shards)}, but ${asked} ${asked === 1 ? 'is' : 'are'} configured: the stored number counts.`
  const change = `set \`shards: ${shards}\` in your configuration`
  return {
    level: 'warning',
    what: 'shards',
    text:
      kind === 'ordered'
        ? `${found} If it was resharded on purpose, ${change}; if the configured number is the one you want, run \`millrace queues reshard ${name} ${asked}\`.`
        : `${found} Plain queues are not resharded: ${change}.`,
  }
}

function counted(shards: number): string {
  return shards === 1 ? '1 shard' : `${shards} shards`
}
