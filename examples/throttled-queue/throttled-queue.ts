/** The example script of RedisThrottledQueue, `example_rtq.py`: adds items, then pops them as fast as the throttle lets it, until ^C. */

import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError, millrace } from 'millrace'
import { flagsOf, help } from './flags.js'

/** How often an empty queue is looked at: another process may add to it. */
const lookMs = 20

async function main(args: readonly string[]): Promise<void> {
  const flags = flagsOf(args)
  if (flags === 'help') return console.log(help)
  const { store, queue: name, windowMs, limit, moderate, elastic } = flags
  const mill = millrace({ store })
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  try {
    const queue = mill.throttledQueue<string>(name, {
      limit,
      window: windowMs,
      moderate,
      ...(elastic && { elastic: { buffer: 0 } }),
    })

    const items = Array.from({ length: limit * 2 }, (_, i) => i)
    console.log(`Adding ${items.length} items for testing`)
    await Promise.all(items.map((i) => queue.push(`item-${i}`, i)))

    console.log('Kill when satisfied ^C')
    const startedAt = performance.now()
    while (!interrupted.signal.aborted) {
      const popped = await queue.tryPop()
      if (popped.wait === undefined)
        console.log(`My item ${popped.item} My time: ${((performance.now() - startedAt) / 1_000).toFixed(5)}`)
      // The original asks again and again; here a denial says for how long it holds. With -e it comes late on purpose.
      const denied = popped.wait === undefined ? 0 : popped.wait === 'empty' ? lookMs : (popped.forMs ?? lookMs)
      const forMs = elastic ? Math.random() * 3 * (windowMs / limit) : denied
      if (forMs > 0) await sleep(forMs, undefined, { signal: interrupted.signal }).catch(() => {})
    }
    await queue.clear()
    console.log('Finished')
  } finally {
    await mill.close()
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  // A flag that is none has a code too.
  if (!(error instanceof MillraceError || (error instanceof TypeError && 'code' in error))) throw error
  console.error(error.message)
  process.exitCode = 1
}
