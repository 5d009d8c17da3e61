/** A page scene: a mill with the shop at work, and a window on it behind a real server. */

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Mill, type MillOptions, millrace } from 'millrace'
import type { Store } from 'millrace/store'
import { startRedis } from 'millrace/store-testing'
import { type WebHandler, type WebOptions, webHandler } from 'millrace/web'
import { shop } from './shop-tasks.js'

export type PageStore = 'sqlite' | 'redis'

/** Where its jobs live, empty, and how that ends. */
async function emptyStore(kind: PageStore): Promise<{ readonly url: string; remove(): Promise<void> }> {
  if (kind === 'redis') {
    const redis = await startRedis()
    return { url: redis.url, remove: () => redis.stop() }
  }
  const folder = await mkdtemp(join(tmpdir(), 'millrace-page-'))
  return { url: `sqlite:${join(folder, 'jobs.db')}`, remove: () => rm(folder, { recursive: true }) }
}

export class PageScene {
  readonly mill: Mill
  /** The address of its store. */
  readonly url: string
  readonly #remove: () => Promise<void>
  readonly #windows: { readonly handler: WebHandler; readonly server: Server }[] = []

  private constructor(mill: Mill, url: string, remove: () => Promise<void>) {
    this.mill = mill
    this.url = url
    this.#remove = remove
  }

  static async on(kind: PageStore, options: Omit<MillOptions, 'store'> = shop): Promise<PageScene> {
    const { url, remove } = await emptyStore(kind)
    return new PageScene(millrace({ store: url, ...options }), url, remove)
  }

  /** Of the mill, below its own calls: for what only other processes would do. */
  store(): Promise<Store> {
    return (this.mill as unknown as { readonly adminParts: { connect(): Promise<Store> } }).adminParts.connect()
  }

  /** The address of one more window on the mill, with a slash at its end. */
  async window(options: WebOptions = {}): Promise<string> {
    const handler = webHandler(this.mill, options)
    const server = createServer(handler.node)
    this.#windows.push({ handler, server })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.basePath ?? ''}/`
  }

  async close(): Promise<void> {
    for (const { handler, server } of this.#windows) {
      await handler.close()
      server.closeAllConnections()
      server.close()
    }
    await this.mill.close()
    await this.#remove()
  }
}
