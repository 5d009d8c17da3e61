/** A request to the window: the request itself, where it came from, and its path below the window. */

import type { IncomingMessage } from 'node:http'

export interface ApiRequest {
  readonly request: Request
  /** The request of node:http that it was made of; undefined if a framework gave a web request. */
  readonly incoming: IncomingMessage | undefined
  /** The Host header; undefined if there is none. */
  readonly host: string | undefined
  /** The address of the peer; `''` if the server does not give it. */
  readonly address: string
  /** The path below the window, as it was sent; begins with `/`. */
  readonly path: string
  readonly query: URLSearchParams
  /** The path of the window, with a slash at its end: cookies are for this path. */
  readonly cookiePath: string
}
