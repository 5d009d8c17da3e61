/** What the SQLite store can do: known before one is opened, or its code loaded. */

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
