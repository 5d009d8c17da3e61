/**
 * The web handler: a window on a mill, as one function from a request to a response, which you can mount in any server.
 */

import type { ServerResponse } from 'node:http'
import { messageOf } from '../core/messages/describe.js'
import { systemClock } from '../core/platform/clock.js'
import type { Mill } from '../mill/mill.js'
import { Access } from './access/access.js'
import { securityHeaders } from './access/security-headers.js'
import { apiOf, apiPath, failureResponse, type RouterParts } from './api/router.js'
import type { Asked } from './asked.js'
import { pageAnswer } from './assets/page-answer.js'
import { pageFiles, pageFolder } from './assets/page-files.js'
import { MillMetrics, metricsPath } from './metrics/mill-metrics.js'
import { type MountedRequest, targetOf, webRequest, writeResponse } from './mounting/node-adapter.js'
import { WebRefusal } from './refusal.js'
import { Streams } from './streams/streams.js'
import { MillWindow } from './window/mill-window.js'
import { checkedWebOptions, type WebOptions } from './window/web-options.js'

/** Who sent a web request, as the server knows it. Whatever else a framework gives in its place is ignored. */
export type Peer = object & { readonly address?: string | undefined }

/** A window on a mill, made by `webHandler()`. */
export interface WebHandler {
  /**
   * Answers a web request: for Hono, Next and every other framework with `Request` and `Response`. A request does not say
   * where it came from: a window without `token` and `authorize` needs the `address` of the peer, as the server knows it.
   */
  readonly fetch: (request: Request, peer?: Peer) => Promise<Response>
  /**
   * Answers a request of node:http: for its server, Express (also behind `express.json()`), Koa and Fastify. A request
   * outside `basePath` goes to `next`, if there is one.
   */
  readonly node: (request: MountedRequest, response: ServerResponse, next?: (error?: unknown) => void) => void
  /** Ends its streams. The mill stays open. Closing twice is harmless. */
  close(): Promise<void>
  /**
   * A path below the window that logs in once, within 10 minutes.
   * @internal
   */
  loginPath(): string
}

const loginPrefix = '/login/'

/**
 * Makes a window on the mill: a page, an API under `api/v1`, streams, and `metrics` for Prometheus. Opens nothing
 * before the first request. Without `token` and `authorize` it answers only its own machine. Throws `ConfigError` with
 * every mistake in the options.
 */
export function webHandler(mill: Mill, options: WebOptions = {}): WebHandler {
  const checked = checkedWebOptions(options)
  const window = new MillWindow(mill, checked)
  const access = new Access(checked, { now: systemClock.now, mono: systemClock.mono })
  const streams = new Streams(window)
  const metrics = new MillMetrics(mill, access)
  const handler = new MountedWindow({ window, access, streams }, metrics)
  return {
    fetch: (request, peer) => handler.fetch(request, peer),
    node: (request, response, next) => void handler.node(request, response, next),
    close: async () => {
      metrics.close()
      streams.close()
    },
    loginPath: () => `${loginPrefix.slice(1)}${access.newLogin()}`,
  }
}

class MountedWindow {
  readonly #parts: RouterParts
  readonly #metrics: MillMetrics
  readonly #api: (asked: Asked) => Promise<Response>
  readonly #files = pageFiles(pageFolder)

  constructor(parts: RouterParts, metrics: MillMetrics) {
    this.#parts = parts
    this.#metrics = metrics
    this.#api = apiOf(parts)
  }

  async fetch(request: Request, peer: Peer = {}): Promise<Response> {
    const { basePath = '' } = this.#parts.window.options
    const url = new URL(request.url)
    const host = request.headers.get('host') ?? url.host
    const address = typeof peer?.address === 'string' ? peer.address : ''
    const from = { request, incoming: undefined, host, address }
    return (await this.#answer(from, url, basePath)) ?? this.#failure(notBelow(basePath))
  }

  async node(request: MountedRequest, response: ServerResponse, next?: (error?: unknown) => void): Promise<void> {
    try {
      const { basePath = request.baseUrl ?? '' } = this.#parts.window.options
      const answer = await this.#nodeAnswer(request, response, basePath)
      if (answer === undefined && next !== undefined) next()
      else await writeResponse(answer ?? this.#failure(notBelow(basePath)), response)
    } catch (error) {
      // The client has gone, or a stream of the response broke off.
      this.#parts.window.mill.logger.debug(`an answer of the window broke off: ${messageOf(error)}`)
      response.destroy()
    }
  }

  async #nodeAnswer(
    request: MountedRequest,
    response: ServerResponse,
    basePath: string,
  ): Promise<Response | undefined> {
    if (pathBelow(basePath, targetOf(request).split('?', 1)[0]!) === undefined) return undefined
    try {
      const { host } = request.headers
      // Before the host becomes part of an address.
      this.#parts.access.checkHost({ host })
      const asked = webRequest(request, response)
      return await this.#answer(
        { request: asked, incoming: request, host, address: request.socket.remoteAddress ?? '' },
        new URL(asked.url),
        basePath,
      )
    } catch (error) {
      return this.#failure(error)
    }
  }

  /** Undefined for a path outside the window. */
  async #answer(
    from: Pick<Asked, 'request' | 'incoming' | 'host' | 'address'>,
    url: URL,
    basePath: string,
  ): Promise<Response | undefined> {
    const path = pathBelow(basePath, url.pathname)
    if (path === undefined) return undefined
    const asked: Asked = { ...from, path, query: url.searchParams, cookiePath: `${basePath}/` }
    const answer = await this.#below(asked, basePath).catch((error: unknown) => this.#failure(error))
    return secured(answer)
  }

  async #below(asked: Asked, basePath: string): Promise<Response> {
    const { access, window } = this.#parts
    const { path, request } = asked
    access.checkHost(asked)
    if (path === '') return redirect(`${basePath.split('/').at(-1)}/`)
    if (path === '/health') return await this.#health()
    if (path === metricsPath) return await this.#metrics.answer(asked)
    if (path === apiPath || path.startsWith(`${apiPath}/`)) return await this.#api(asked)
    if (path.startsWith(loginPrefix) && request.method === 'GET')
      return redirect('../', { 'set-cookie': access.logInOnce(path.slice(loginPrefix.length), asked) })
    // A window with a token shows its page to everybody; they log in there.
    if (window.options.token === undefined) await access.viewer(asked)
    return pageAnswer(asked, this.#files)
  }

  /** Whether the store answers. The answer names nothing. */
  async #health(): Promise<Response> {
    const isWell = await this.#parts.window.mill.depths([]).then(
      () => true,
      () => false,
    )
    return Response.json({ status: isWell ? 'ok' : 'failing' }, { status: isWell ? 200 : 503 })
  }

  #failure(error: unknown): Response {
    return secured(failureResponse(error, this.#parts))
  }
}

function notBelow(basePath: string): WebRefusal {
  return new WebRefusal('not-found', `this window is below '${basePath}/'.`)
}

/** Begins with `/`, or is empty for the window itself without a slash; undefined for a path outside the window. */
function pathBelow(basePath: string, path: string): string | undefined {
  if (path === basePath) return ''
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : undefined
}

function redirect(location: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status: 303, headers: { location, ...headers } })
}

/** Adds all security headers to the answer, and forbids caching unless the answer allows it. */
function secured(answer: Response): Response {
  for (const [name, value] of Object.entries(securityHeaders)) answer.headers.set(name, value)
  if (!answer.headers.has('cache-control')) answer.headers.set('cache-control', 'no-store')
  return answer
}
