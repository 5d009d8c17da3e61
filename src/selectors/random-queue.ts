/** Random: one queue, each equally likely, whatever its weight and whether it has work. */

import type { Selector } from './selector.js'

export const randomQueue: Selector = (queues, random) => {
  const queue = queues[Math.floor(random() * queues.length)]
  return queue === undefined ? [] : [queue.name]
}
