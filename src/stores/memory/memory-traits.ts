/** The traits of the memory store, known before one is opened or its code loaded. */

import type { StoreTraits } from '../contract/store.js'
import { fullTraits } from '../rules/full-traits.js'

export const memoryTraits: StoreTraits = {
  ...fullTraits,
  name: 'memory',
  shared: false,
  replicated: false,
  remote: false,
  beatsFromThread: false,
}
