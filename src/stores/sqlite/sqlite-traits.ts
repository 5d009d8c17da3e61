/** The traits of the SQLite store, known before one is opened, and before its code is loaded. */

import type { StoreTraits } from '../contract/store.js'
import { fullTraits } from '../rules/full-traits.js'

export const sqliteTraits: StoreTraits = {
  ...fullTraits,
  name: 'sqlite',
  shared: true,
  replicated: false,
  remote: false,
  beatsFromThread: true,
}
