/**
 * The web handler: a window on a mill, as one function from a request to a response, which you can mount in any server.
 */

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { hasCode } from '../core/errors.js'
import { messageOf } from '../core/messages/describe.js'
import { systemClock } from '../core/platform/clock.js'
import { acceptedFormat, expositionTypes, type MetricSamples } from '../measures/exposition.js'
import { addCounters, addVitals, TroubleCounters } from '../measures/process-metrics.js'
import { TaskCounters } from '../measures/task-counters.js'
import type { Mill } from '../mill/mill.js'
import { Access } from './access.js'
import { MetricsPage, ProcessVitals } from './api/metrics-page.js'
import { apiOf, apiPath, failureResponse } from './api/router.js'
import type { ApiRequest } from './api-request.js'
import { WebRefusal } from './failure.js'
import { MillWindow } from './mill-window.js'
import { pageAnswer, pageFiles, pageFolder } from './page-answer.js'
import { readMill } from './state/mill-reader.js'
import { Streams } from './streams.js'
import { checkedWebOptions, type WebOptions } from './web-options.js'

/** The path of the metrics below the window. */
const metricsPath = '/metrics'

/** Scrapes within this time share one reading of the store. */
const keptMs = 1_000
/** Questions about the health of a store that charges for calls share one answer within this time. */
const paidMs = 10_000

/** The endpoint of the metrics for Prometheus: those of the store, and those of this process. */
class MetricsEndpoint {
  readonly #mill: Mill
  readonly #access: Access
  #page: MetricsPage | undefined
  #counters: TroubleCounters | undefined
  #vitals: ProcessVitals | undefined

  /** Nothing is counted or watched before the first scrape. */
  constructor(mill: Mill, access: Access) {
    this.#mill = mill
    this.#access = access
  }

  /** The host is checked before. Throws a refusal for a viewer who may not look. */
  async answer(asked: ApiRequest): Promise<Response> {
    if (asked.request.method !== 'GET')
      throw new WebRefusal('method-not-allowed', 'this address takes GET.', { allow: 'GET' })
    this.#access.checkOrigin(asked)
    await this.#access.viewer(asked)
    this.#page ??= this.#begun()
    const format = acceptedFormat(asked.request.headers.get('accept'))
    return new Response(await this.#page.text(format), { headers: { 'content-type': expositionTypes[format] } })
  }

  close(): void {
    this.#counters?.close()
    this.#vitals?.stop()
  }

  #begun(): MetricsPage {
    const counters = new TroubleCounters(this.#mill)
    const tasks = TaskCounters.of(this.#mill)
    const vitals = new ProcessVitals(systemClock.mono)
    this.#counters = counters
    this.#vitals = vitals
    const addOwn = (samples: MetricSamples) => {
      addVitals(samples, process.pid, vitals.read())
      addCounters(samples, { ...counters.counts, tasks: tasks.rows })
    }
    return new MetricsPage(() => readMill(this.#mill), addOwn, keptMs)
  }
}

/** Who sent a web request, as the server knows it. Whatever else a framework gives in its place is ignored. */
export type Peer = object & { readonly address?: string | undefined }

/** The dashboard of a mill, made by `webHandler()`. */
export interface WebHandler {
  /**
   * Answers a web request: for Hono, Next and every other framework with `Request` and `Response`. A request does not say
   * where it came from: a dashboard without `token` and `authorize` needs the `address` of the peer, as the server knows it.
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
 * Makes the dashboard of the mill: a page, an API under `api/v1`, streams, and `metrics` for Prometheus. Opens nothing
 * before the first request. Without `token` and `authorize` it answers only its own machine. Throws `ConfigError` with
 * every mistake in the options.
 */
export function webHandler(mill: Mill, options: WebOptions = {}): WebHandler {
  const checked = checkedWebOptions(options)
  const window = new MillWindow(mill, checked)
  const access = new Access(checked, { now: systemClock.now, mono: systemClock.mono })
  const streams = new Streams(window)
  const metrics = new MetricsEndpoint(mill, access)
  const handler = new MountedWindow(window, access, metrics, apiOf(window, access, streams))
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
  readonly #window: MillWindow
  readonly #access: Access
  readonly #metrics: MetricsEndpoint
  readonly #api: (asked: ApiRequest) => Promise<Response>
  readonly #files = pageFiles(pageFolder)
  /** The latest question to a store that charges for calls. */
  #asked: { readonly at: number; readonly answer: Promise<unknown> } | undefined

  constructor(
    window: MillWindow,
    access: Access,
    metrics: MetricsEndpoint,
    api: (asked: ApiRequest) => Promise<Response>,
  ) {
    this.#window = window
    this.#access = access
    this.#metrics = metrics
    this.#api = api
  }

  async fetch(request: Request, peer: Peer = {}): Promise<Response> {
    const { basePath = '' } = this.#window.options
    const url = new URL(request.url)
    const host = request.headers.get('host') ?? url.host
    const address = typeof peer?.address === 'string' ? peer.address : ''
    const from = { request, incoming: undefined, host, address }
    return (await this.#answer(from, url, basePath)) ?? this.#failure(notBelow(basePath))
  }

  async node(request: MountedRequest, response: ServerResponse, next?: (error?: unknown) => void): Promise<void> {
    try {
      const { basePath = request.baseUrl ?? '' } = this.#window.options
      const answer = await this.#nodeAnswer(request, response, basePath)
      if (answer === undefined && next !== undefined) next()
      else await writeResponse(answer ?? this.#failure(notBelow(basePath)), response)
    } catch (error) {
      // The client has gone, or a stream of the response broke off.
      this.#window.mill.logger.debug(`an answer of the dashboard broke off: ${messageOf(error)}`)
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
      this.#access.checkHost({ host })
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
    from: Pick<ApiRequest, 'request' | 'incoming' | 'host' | 'address'>,
    url: URL,
    basePath: string,
  ): Promise<Response | undefined> {
    const path = pathBelow(basePath, url.pathname)
    if (path === undefined) return undefined
    const asked: ApiRequest = { ...from, path, query: url.searchParams, cookiePath: `${basePath}/` }
    const answer = await this.#below(asked).catch((error: unknown) => this.#failure(error))
    return secured(answer)
  }

  async #below(asked: ApiRequest): Promise<Response> {
    const { path, request } = asked
    this.#access.checkHost(asked)
    if (path === '/health') return await this.#health()
    if (path === metricsPath) return await this.#metrics.answer(asked)
    if (path === apiPath || path.startsWith(`${apiPath}/`)) return await this.#api(asked)
    if (path.startsWith(loginPrefix) && request.method === 'GET')
      return redirect('../', { 'set-cookie': this.#access.logInOnce(path.slice(loginPrefix.length), asked) })
    // A window with a token shows its page to everybody; they log in there.
    if (this.#window.options.token === undefined) await this.#access.viewer(asked)
    return pageAnswer(asked, this.#files)
  }

  /** Whether the store answers. The answer names nothing. */
  async #health(): Promise<Response> {
    const isWell = await this.#ask().then(
      () => true,
      // It has answered.
      (error: unknown) => hasCode(error, 'queue-unknown'),
    )
    return Response.json({ status: isWell ? 'ok' : 'failing' }, { status: isWell ? 200 : 503 })
  }

  /** Rejects if the store does not answer. */
  async #ask(): Promise<unknown> {
    const { mill } = this.#window
    const { metered } = (await mill.adminParts.look()).traits
    if (!metered) return mill.depths([])
    // For no queue it would make no call.
    const at = systemClock.mono()
    if (this.#asked === undefined || at - this.#asked.at >= paidMs)
      this.#asked = { at, answer: mill.depths([...mill.queues.keys()].slice(0, 1)) }
    return this.#asked.answer
  }

  #failure(error: unknown): Response {
    return secured(failureResponse(error, this.#window))
  }
}

function notBelow(basePath: string): WebRefusal {
  return new WebRefusal('not-found', `this dashboard is below '${basePath}/'.`)
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

/**
 * Allows scripts, styles and images of the window only, no script in a page's text, no frame around it, and no text
 * that a script treats as markup (Trusted Types). `base-uri 'self'`: the page sets the base of its links by `<base>`.
 */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** The security headers that every answer of the window carries. */
const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': contentPolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}

/** A request with the properties that frameworks may have added. */
interface MountedRequest extends IncomingMessage {
  /** Express: the address from before it removed its mount path. */
  readonly originalUrl?: string
  readonly baseUrl?: string
  /** The body as parsed before the window. */
  readonly body?: unknown
}

const bodyless = new Set(['GET', 'HEAD'])
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])

/** The path and query that the browser asked for. */
function targetOf({ originalUrl, url = '/' }: MountedRequest): string {
  const target = originalUrl ?? url
  // The form that a proxy sends: `http://host/path`.
  return target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, '') || '/'
}

/** Its signal aborts when the client goes away. Throws a refusal if it cannot be a web request. */
function webRequest(request: MountedRequest, response: ServerResponse): Request {
  const { method = 'GET' } = request
  if (!knownMethods.has(method))
    throw new WebRefusal('method-not-allowed', 'this method is not known here.', {
      allow: [...knownMethods].join(', '),
    })
  const over = new AbortController()
  response.once('close', () => over.abort())
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !name.startsWith(':')) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  const scheme = 'encrypted' in request.socket ? 'https' : 'http'
  const init = { method, headers, signal: over.signal, ...(bodyless.has(method) ? {} : bodyOf(request)) }
  try {
    return new Request(new URL(targetOf(request), `${scheme}://${request.headers.host ?? 'localhost'}`), init)
  } catch {
    throw new WebRefusal('argument-invalid', 'the address or a header of the request cannot be read.')
  }
}

/** A body that was parsed before is serialised again. Throws a refusal if it was read and not kept. */
function bodyOf(request: MountedRequest): Pick<RequestInit, 'body' | 'duplex'> {
  if (!request.readableDidRead && !request.readableEnded)
    return { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' }
  const { body } = request
  if (body !== undefined)
    return {
      body:
        typeof body === 'string' || body instanceof Uint8Array
          ? (body as Uint8Array<ArrayBuffer>)
          : JSON.stringify(body),
    }
  if (Number(request.headers['content-length'] ?? 0) === 0 && request.headers['transfer-encoding'] === undefined)
    return {}
  throw new WebRefusal(
    'argument-invalid',
    'a body parser has read the body before the dashboard, and left it nowhere: mount the dashboard before that parser, or set `request.body`.',
  )
}

/** Writes the answer as fast as the client reads. Resolves when it is written, or the client has gone. */
async function writeResponse(answer: Response, response: ServerResponse): Promise<void> {
  const cookies = answer.headers.getSetCookie()
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => name !== 'set-cookie'))
  response.writeHead(answer.status, { ...headers, ...(cookies.length > 0 && { 'set-cookie': cookies }) })
  if (answer.body === null || response.req.method === 'HEAD') {
    await answer.body?.cancel()
    response.end()
    return
  }
  response.flushHeaders()
  const reader = answer.body.getReader()
  // One for all parts: a slow client may fill the buffer thousands of times.
  const closed = once(response, 'close').catch(() => {})
  void closed.then(() => reader.cancel().catch(() => {}))
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (response.destroyed) return
      if (!response.write(part.value)) await Promise.race([once(response, 'drain'), closed])
    }
  } finally {
    response.end()
  }
}
