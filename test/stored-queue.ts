/** A stored queue as a store describes it after its first opening: plain, with one shard and without limits. */

import type { StoredQueue } from 'millrace'

export function storedQueue(name: string, more: Partial<StoredQueue> = {}): StoredQueue {
  return {
    ...{ name, kind: 'plain', order: 'fifo', exclusive: 'id', shards: 1, paused: false, draining: false, limits: {} },
    ...more,
  }
}
