/** What is asked of the window: a request, where it came from, and what it asks for below the window's own place. */

export interface Asked {
  readonly request: Request
  /** The Host header; undefined where there is none. */
  readonly host: string | undefined
  /** The address of the peer; `''` where the server that it came through does not tell. */
  readonly address: string
  /** What is asked for below the window: begins with `/`, as it was sent. */
  readonly path: string
  readonly query: URLSearchParams
  /** Where the window lies, with a slash at its end: cookies are for this place. */
  readonly cookiePath: string
}
