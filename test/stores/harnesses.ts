/** The harness of every store. A line here puts a store under the contract suite and beside the memory store. */

import { type HarnessMaker, memoryHarness, sqliteHarness } from 'millrace/testing'

export const harnesses: ReadonlyMap<string, HarnessMaker> = new Map<string, HarnessMaker>([
  ['memory', memoryHarness],
  ['sqlite', sqliteHarness],
])
