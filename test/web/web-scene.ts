/** A web scene: a mill with a few queues, a window on it behind a real server, and what asks it. */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { defineOrderedTask, defineTask, type Mill, type MillOptions, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { type Audit, type WebHandler, type WebOptions, webHandler } from 'millrace/web'
import { onTestFinished } from 'vitest'
import { testMill } from '../test-mill.js'
import { type Answered, type Asking, ask } from './ask.js'

export { type Answered, type Asking, ask } from './ask.js'

export const token = 'a-token-of-the-tests-42'

export const mail = defineTask({
  name: 'send-mail',
  queue: 'mail',
  retry: { max: 0 },
  run: async ({ to }: { to: string }) => {
    if (to === 'nobody') throw new Error('no such address')
    return { sentTo: to }
  },
})
export const sync = defineOrderedTask({
  name: 'sync-order',
  queue: 'orders',
  id: ({ order }: { order: string }) => order,
  run: async () => {},
})

export const sceneOptions = {
  queues: {
    mail: { maxPending: 1_500, retention: { results: 'untilDeleted' } },
    orders: { ordered: true, shards: 2 },
    crawl: { throttle: { limit: 10, window: '1m' }, maxRunning: 4 },
  },
  tasks: [mail, sync],
  tasksElsewhere: ['crawl-page'],
  schedules: { nightly: { cron: '0 3 * * *', task: mail, input: { to: 'all' } } },
} satisfies Omit<MillOptions, 'store'>

export type SceneStore = 'sqlite' | 'redis'

export async function sceneMill(store: SceneStore, options: Partial<MillOptions> = {}): Promise<Mill> {
  const given = { ...sceneOptions, ...options } as Omit<MillOptions, 'store'>
  if (store === 'sqlite') return testMill(given, 'sqlite')
  const redis = await startRedis()
  const mill = millrace({ store: redis.url, ...given })
  onTestFinished(async () => {
    await mill.close()
    await redis.stop()
  })
  return mill
}

/** A server on a free port of loopback, closed with the test; its URL. */
export async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export const change = { 'x-millrace': '1' } as const
export const bearer = { authorization: `Bearer ${token}` } as const

export class WebScene {
  readonly mill: Mill
  readonly window: WebHandler
  readonly url: string
  readonly audits: Audit[]

  private constructor(mill: Mill, window: WebHandler, url: string, audits: Audit[]) {
    this.mill = mill
    this.window = window
    this.url = url
    this.audits = audits
  }

  /** With the token, unless `options` say otherwise. */
  static async on(
    store: SceneStore,
    options: WebOptions = { token },
    given: Partial<MillOptions> = {},
  ): Promise<WebScene> {
    const mill = await sceneMill(store, given)
    const audits: Audit[] = []
    const window = webHandler(mill, { onAction: (audit) => void audits.push(audit), ...options })
    onTestFinished(() => window.close())
    return new WebScene(mill, window, await served(window.node), audits)
  }

  /** Below the API, with the token. */
  get(path: string, asking: Asking = {}): Promise<Answered> {
    return ask(`${this.url}/api/v1/${path}`, { ...asking, headers: { ...bearer, ...asking.headers } })
  }

  post(path: string, body: unknown = {}, asking: Asking = {}): Promise<Answered> {
    return this.get(path, { method: 'POST', body, ...asking, headers: { ...change, ...asking.headers } })
  }

  /** Runs what waits, until nothing does. */
  async run(queues: readonly string[] = ['mail', 'orders']): Promise<void> {
    const worker = this.mill.worker({ queues })
    await worker.start()
    for (let left = 1; left > 0; ) {
      left = (await this.mill.depths(queues)).reduce((sum, { ready, running }) => sum + ready + running, 0)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await worker.stop()
  }
}
