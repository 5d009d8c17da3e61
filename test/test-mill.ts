/** Mills for tests: closed by themselves when the test is over. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Mill, type MillOptions, millrace } from 'millrace'
import type { Store } from 'millrace/store'
import { onTestFinished } from 'vitest'
import type { Clock } from '#src/core/platform/clock.js'
import { Mill as MillClass } from '#src/mill/mill.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { plainAccess } from '#src/mill/store-source.js'

/** Every store that a mill can be tested on without a server. */
export const storeKinds = ['memory', 'sqlite'] as const
export type StoreKind = (typeof storeKinds)[number]

/** A mill on a store of this kind, fresh for this test. */
export function testMill(options: Partial<MillOptions> = {}, kind: StoreKind = 'memory'): Mill {
  return closedAfterTest(millrace({ store: kind === 'memory' ? 'memory:' : freshFile(), ...options }))
}

/** A mill on a store that the test holds in its hands: to watch its calls, or to put things into it. */
export function testMillOn(store: Store, options: Omit<MillOptions, 'store'> = {}, clock?: Clock): Mill {
  const source = { text: 'a store of the test', access: plainAccess, traits: store.traits, create: async () => store }
  return closedAfterTest(new MillClass(checkOptions({ ...options, store: 'memory:' }, store.traits), source, clock))
}

function freshFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return `sqlite:${join(folder, 'jobs.db')}`
}

function closedAfterTest(mill: Mill): Mill {
  onTestFinished(() => mill.close())
  return mill
}
