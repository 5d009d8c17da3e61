/** Sequential: round robin. All queues in the order given, each call beginning one later. */

import type { Selector } from './selector.js'

export function sequential(): Selector {
  let calls = 0
  return (queues) => {
    const first = queues.length === 0 ? 0 : calls % queues.length
    calls += 1
    return [...queues.slice(first), ...queues.slice(0, first)].map((queue) => queue.name)
  }
}
