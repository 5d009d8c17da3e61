/** Stores for tests of what lies in them: mills on one store, whose bytes can be searched. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Mill, type MillOptions, millrace, type Payload } from 'millrace'
import type { Store } from 'millrace/store'
import { startRedis } from 'millrace/store-testing'
import { onTestFinished } from 'vitest'
import { storeSource } from '#src/mill/store-source.js'
import { RespClient } from '#src/store-testing/servers/resp-client.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../test-mill.js'

export interface PackedStore {
  /** Another mill on the same store. */
  mill(options: Omit<MillOptions, 'store'>): Mill
  /** The store itself, to read what it holds and to put things into it. */
  store(): Promise<Store>
  /** All it has written; undefined where it writes nothing. */
  written(): Promise<Buffer | undefined>
}

const closing = <T extends { close(): unknown }>(one: T): T => {
  onTestFinished(async () => void (await one.close()))
  return one
}

function urlStore(url: string, written: () => Promise<Buffer>): PackedStore {
  return {
    mill: (options) => closing(millrace({ store: url, ...options })),
    store: async () => closing(await storeSource(url).create()),
    written,
  }
}

export const packedStores = {
  async memory(): Promise<PackedStore> {
    const store = new MemoryStore()
    return { mill: (options) => testMillOn(store, options), store: async () => store, written: async () => undefined }
  },

  async sqlite(): Promise<PackedStore> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const files = () => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
    return urlStore(`sqlite:${join(folder, 'jobs.db')}`, async () =>
      Buffer.concat(files().map(({ parentPath, name }) => readFileSync(join(parentPath, name)))),
    )
  },

  async redis(): Promise<PackedStore> {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    return urlStore(server.url, async () => {
      const client = new RespClient(Number(new URL(server.url).port))
      try {
        await client.call('CONFIG', 'SET', 'rdbcompression', 'no')
        await client.call('SAVE')
        const [, folder] = (await client.call('CONFIG', 'GET', 'dir')) as string[]
        const [, file] = (await client.call('CONFIG', 'GET', 'dbfilename')) as string[]
        return readFileSync(join(folder!, file!))
      } finally {
        client.close()
      }
    })
  },
}

export const packedKinds = Object.keys(packedStores) as (keyof typeof packedStores)[]

/** What the store has of the input of a job. */
export async function storedInput(
  store: Store,
  queue: string,
  id: string,
): Promise<{ payload: Payload; codec?: string }> {
  const { payload, payloads, codec } = (await store.records!.get(queue, id))!
  return payloads?.[0] ?? { payload, ...(codec === undefined ? {} : { codec }) }
}
