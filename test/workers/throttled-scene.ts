/** The scene of the tests of throttled queues: a memory store whose calls are noted, and a clock that stands until it is moved. */

import type { MillOptions, ThrottledQueue } from 'millrace'
import { ManualClock } from 'millrace/store-testing'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../test-mill.js'

/** A store that stands still in time until it is told otherwise, and the calls it is sent. */
export function throttledScene(options: Omit<MillOptions, 'store'> = {}) {
  const clock = new ManualClock(1_700_000_000_000)
  const store = new MemoryStore(clock)
  const calls: string[] = []
  const [claim, settle] = [store.claim.bind(store), store.settle.bind(store)]
  store.claim = (...asked) => {
    calls.push('claim')
    return claim(...asked)
  }
  store.settle = (...asked) => {
    calls.push('settle')
    return settle(...asked)
  }
  return { clock, store, calls, claim, settle, mill: testMillOn(store, options, clock) }
}

/** What pops give until one gives nothing. */
export async function popped<Item>(queue: ThrottledQueue<Item>): Promise<Item[]> {
  const items: Item[] = []
  for (let item = await queue.pop(); item !== null; item = await queue.pop()) items.push(item)
  return items
}

export async function pushed(queue: ThrottledQueue<string>, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await queue.push(`item-${i}`, i)
}

export const tenPerTen = { limit: 10, window: '10s' } as const
