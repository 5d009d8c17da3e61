/** Mills for tests: closed by themselves when the test is over. */

import { type Mill, type MillOptions, millrace, type Store } from 'millrace'
import { onTestFinished } from 'vitest'
import { Mill as MillClass } from '#src/config/mill.js'
import { checkOptions } from '#src/config/mill-options.js'

/** A mill in memory. */
export function testMill(options: Partial<MillOptions> = {}): Mill {
  return closedAfterTest(millrace({ store: 'memory:', ...options }))
}

/** A mill on a store that the test holds in its hands: to watch its calls, or to put things into it. */
export function testMillOn(store: Store, options: Omit<MillOptions, 'store'> = {}): Mill {
  const source = { text: 'a store of the test', traits: store.traits, create: async () => store }
  return closedAfterTest(new MillClass(checkOptions({ ...options, store: 'memory:' }, store.traits), source))
}

function closedAfterTest(mill: Mill): Mill {
  onTestFinished(() => mill.close())
  return mill
}
