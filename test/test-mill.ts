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
import { plainAccess, storeSource } from '#src/mill/store-source.js'
import { sharedThread } from '#src/store-testing/harness/shared-thread.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresTraits } from '#src/stores/postgres/postgres-traits.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { sqliteTraits } from '#src/stores/sqlite/sqlite-traits.js'
import { lentPostgresAddress } from './worker-postgres.js'

/** Every kind of store that a mill is tested on, by its class. */
export const storeClasses = { memory: MemoryStore, sqlite: SqliteStore, postgres: PostgresStore } as const
export type StoreKind = keyof typeof storeClasses
/** Those without a server; a drill asks for another. */
export const storeKinds = (process.env['STORE_KINDS']?.split(' ') ?? ['memory', 'sqlite']) as StoreKind[]

/** A mill on a store of this kind, fresh for this test. */
export function testMill(options: Partial<MillOptions> = {}, kind: StoreKind = 'memory'): Mill {
  if (kind === 'sqlite' && options.store === undefined) return onSharedThread(options)
  if (kind === 'postgres' && options.store === undefined) return onWorkerPostgres(options)
  return closedAfterTest(millrace({ store: 'memory:', ...options }))
}

/** On a fresh file, which one thread serves for all such mills of this process: to start one takes longer than most tests. */
function onSharedThread(options: Omit<Partial<MillOptions>, 'store'>): Mill {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'jobs.db')
  const store = `sqlite:${file}`
  const source = { ...storeSource(store), create: async () => new SqliteStore({ file, startThread: sharedThread }) }
  return closedAfterTest(new MillClass(checkOptions({ ...options, store }, sqliteTraits), source))
}

/** In a schema that nobody else uses. */
function onWorkerPostgres(options: Omit<Partial<MillOptions>, 'store'>): Mill {
  const create = async () => new PostgresStore({ address: postgresAddress(await lentPostgresAddress()) })
  const source = { text: 'a Postgres', access: plainAccess, traits: postgresTraits, create }
  return closedAfterTest(new MillClass(checkOptions({ ...options, store: 'memory:' }, postgresTraits), source))
}

/** A mill on a store that the test holds in its hands: to watch its calls, or to put things into it. */
export function testMillOn(store: Store, options: Omit<MillOptions, 'store'> = {}, clock?: Clock): Mill {
  const source = { text: 'a store of the test', access: plainAccess, traits: store.traits, create: async () => store }
  return closedAfterTest(new MillClass(checkOptions({ ...options, store: 'memory:' }, store.traits), source, clock))
}

function closedAfterTest(mill: Mill): Mill {
  onTestFinished(() => mill.close())
  return mill
}
