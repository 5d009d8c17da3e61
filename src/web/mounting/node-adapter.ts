/**
 * The node adapter: turns a request of node:http (and so of Express, Fastify and Koa) into a web request, and a web
 * response into theirs.
 */

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { WebRefusal } from '../refusal.js'

/** A request with the properties that frameworks may have added. */
export interface MountedRequest extends IncomingMessage {
  /** Express: the address from before it removed its mount path. */
  readonly originalUrl?: string
  readonly baseUrl?: string
  /** The body as parsed before the window. */
  readonly body?: unknown
}

const bodyless = new Set(['GET', 'HEAD'])
const known = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])

/** The path and query that the browser asked for. */
export function targetOf({ originalUrl, url = '/' }: MountedRequest): string {
  const target = originalUrl ?? url
  // The form that a proxy sends: `http://host/path`.
  return target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, '') || '/'
}

/** Its signal aborts when the client goes away. Throws a refusal if it cannot be a web request. */
export function webRequest(request: MountedRequest, response: ServerResponse): Request {
  const { method = 'GET' } = request
  if (!known.has(method))
    throw new WebRefusal('method-not-allowed', 'this method is not known here.', { allow: [...known].join(', ') })
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
    'a body parser has read the body before the window, and left it nowhere: mount the window before that parser, or set `request.body`.',
  )
}

/** Writes the answer as fast as the client reads. Resolves when it is written, or the client has gone. */
export async function writeResponse(answer: Response, response: ServerResponse): Promise<void> {
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
  const gone = () => void reader.cancel().catch(() => {})
  response.once('close', gone)
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (response.destroyed) return
      if (!response.write(part.value)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
  } finally {
    response.off('close', gone)
    response.end()
  }
}
