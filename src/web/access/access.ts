/** Access: whether a request is answered at all, who sent it, and whether they may change something. */

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Asked } from '../asked.js'
import { WebRefusal } from '../refusal.js'
import { FailureLimit } from './failure-limit.js'
import { isAllowedHost, isLoopbackAddress, isLoopbackHost, isOwnOrigin } from './host-list.js'
import { Secret } from './secret.js'
import { Sessions } from './session.js'
import type { KnownViewer, Role, Viewer } from './viewer.js'

const tokenViewer: Viewer = { name: 'token', role: 'operator' }
const longestToken = 1_024
const loginLifeMs = 600_000
/** Headers that a proxy adds: the peer is then the proxy, whoever sent the request. */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Decides whether a request is let in, and as whom; `true` is an operator. `incoming` is Node's own request, with what a
 * framework has put on it (`incoming.session`, `incoming.user`); undefined for `window.fetch`.
 */
export type Authorize = (
  request: Request,
  incoming: IncomingMessage | undefined,
) => boolean | Viewer | Promise<boolean | Viewer>

/** The options of a window that decide who may come in. */
interface AccessOptions {
  readonly token?: string | undefined
  readonly authorize?: Authorize | undefined
  readonly hosts: readonly string[]
  readonly readOnly: boolean
}

interface AccessClock {
  readonly now: () => number
  readonly mono: () => number
}

export class Access {
  readonly #options: AccessOptions
  readonly #secret: Secret
  readonly #sessions: Sessions
  readonly #failures: FailureLimit
  readonly #mono: () => number
  /** Codes that log in once, with the time at which they expire. */
  readonly #logins = new Map<string, number>()

  constructor(options: AccessOptions, { now, mono }: AccessClock) {
    this.#options = options
    this.#secret = new Secret(options.token)
    this.#sessions = new Sessions(this.#secret, now)
    this.#failures = new FailureLimit(mono)
    this.#mono = mono
  }

  /** Throws a refusal for a host that is not one of the window's. */
  checkHost({ host }: Pick<Asked, 'host'>): void {
    const { hosts } = this.#options
    if (isAllowedHost(host, hosts)) return
    throw new WebRefusal(
      'host',
      `this window does not answer under the host '${host ?? ''}'. Add the name to \`hosts\` of webHandler(), or to --hosts of millrace dash, if it is yours.`,
    )
  }

  /** Throws a refusal for a request from a page of another origin. */
  checkOrigin({ request, host = '' }: Asked): void {
    const origin = request.headers.get('origin') ?? undefined
    const site = request.headers.get('sec-fetch-site') ?? undefined
    if (isOwnOrigin({ origin, site }, host, this.#options.hosts)) return
    throw new WebRefusal(
      'forbidden',
      'the request comes from a page of another origin. Only pages of this window may send requests; behind a proxy that changes Host, add the public host to `hosts`.',
    )
  }

  /** The viewer who sent the request. Throws a refusal for an unknown one. */
  async viewer(asked: Asked): Promise<KnownViewer> {
    const { authorize, token } = this.#options
    const bearer = /^Bearer +(\S+)$/i.exec(asked.request.headers.get('authorization') ?? '')?.[1]
    if (token !== undefined && bearer !== undefined) {
      if (this.#isToken(bearer)) return { ...tokenViewer, by: 'token' }
      // With `authorize` it may be a bearer of the application.
      if (authorize === undefined) this.#refuseWrong(asked)
    }
    const session =
      token === undefined ? undefined : this.#sessions.find(asked.request.headers.get('cookie') ?? undefined)
    if (session !== undefined) return { ...session, by: 'session' }
    if (authorize !== undefined)
      return { ...authorized(await authorize(asked.request, asked.incoming)), by: 'authorize' }
    if (token === undefined) return { ...byLoopback(asked), by: 'loopback' }
    throw unauthorized('the request names no viewer: log in on the page, or send `Authorization: Bearer <token>`.')
  }

  /** Throws a refusal if the viewer may not make this change, or if another page may have sent it. */
  checkChange({ request }: Asked, viewer: KnownViewer): void {
    this.checkHeader(request)
    const { role } = viewer
    if (this.#options.readOnly)
      throw new WebRefusal('forbidden', 'this window is read-only: nothing can be changed by it.')
    if (role !== 'operator')
      throw new WebRefusal('forbidden', `'${viewer.name}' may look, and change nothing: the role 'operator' is needed.`)
    this.checkToken(request, viewer)
  }

  /**
   * Throws a refusal for a change that another page may have sent: a browser asks before it sends this header across
   * origins.
   */
  checkHeader(request: Request): void {
    if (request.headers.get('x-millrace') !== '1')
      throw new WebRefusal('csrf', 'a change needs the header `x-millrace: 1`.')
  }

  /** Throws a refusal for a session without its own CSRF token. */
  checkToken(request: Request, { csrf }: KnownViewer): void {
    if (csrf !== undefined && request.headers.get('x-csrf-token') !== csrf)
      throw new WebRefusal(
        'csrf',
        'a change by a session needs its own token in the header `x-csrf-token`: `GET session` returns it.',
      )
  }

  /** The `Set-Cookie` header of a new session, for the right token. Throws a refusal. */
  logIn(given: string, asked: Asked): string {
    if (this.#options.token === undefined)
      throw new WebRefusal(
        'argument-invalid',
        'this window has no token to log in with; it identifies its viewers in another way.',
      )
    if (!this.#isToken(given)) this.#refuseWrong(asked)
    return this.#sessions.begin(tokenViewer, asked.cookiePath, isSecure(asked))
  }

  logOut(asked: Asked): string {
    return this.#sessions.end(asked.cookiePath, isSecure(asked))
  }

  /** Makes a code that logs in once, within 10 minutes. */
  newLogin(): string {
    const code = randomBytes(24).toString('base64url')
    this.#logins.set(code, this.#mono() + loginLifeMs)
    return code
  }

  /** The `Set-Cookie` header of a new session, for such a code. Throws a refusal. */
  logInOnce(code: string, asked: Asked): string {
    const untilAt = this.#logins.get(code)
    this.#logins.delete(code)
    if (untilAt !== undefined && untilAt > this.#mono())
      return this.#sessions.begin(tokenViewer, asked.cookiePath, isSecure(asked))
    this.#refuseWrong(
      asked,
      'this link has been used, or is older than 10 minutes. Log in with the token, or start millrace dash again.',
    )
  }

  #isToken(given: string): boolean {
    return given.length <= longestToken && this.#secret.isToken(given)
  }

  /**
   * Throws a refusal, another one after ten from this address in a minute. What is right is let in all the same: behind a proxy
   * all people have one address, and a stranger must not be able to shut it. Nobody finds a token by trying.
   */
  #refuseWrong({ address }: Asked, message = 'the token is wrong.'): never {
    const waitMs = this.#failures.waitMs(address)
    this.#failures.count(address)
    if (waitMs === 0) throw unauthorized(message)
    const seconds = Math.ceil(waitMs / 1_000)
    throw new WebRefusal('too-many-attempts', `too many wrong tokens came from here. Try again in ${seconds} s.`, {
      'retry-after': String(seconds),
    })
  }
}

function unauthorized(message: string): WebRefusal {
  return new WebRefusal('unauthorized', message, { 'www-authenticate': 'Bearer realm="millrace"' })
}

function authorized(answer: boolean | Viewer): Viewer {
  if (answer === true) return { name: 'authorized', role: 'operator' }
  const { name, role } = (answer || {}) as { readonly name?: unknown; readonly role?: Role }
  if (typeof name === 'string' && (role === 'viewer' || role === 'operator')) return { name, role }
  if (answer === false) throw unauthorized('`authorize` of this window does not let this request in.')
  throw unauthorized("`authorize` of this window must answer false, true, or { name, role: 'viewer' | 'operator' }.")
}

/** Without `token` and `authorize` only this machine may use the window. */
function byLoopback({ request, host = '', address }: Asked): Viewer {
  const isProxied = proxyHeaders.some((name) => request.headers.has(name))
  if (isLoopbackHost(host) && !isProxied && isLoopbackAddress(address)) return { name: 'loopback', role: 'operator' }
  if (address === '')
    throw unauthorized(
      'without a token this window answers to its own machine only, and a web request does not say where it came from. Give webHandler() a `token` or `authorize`, or window.fetch(request, { address }) the address of the peer.',
    )
  throw unauthorized(
    'without a token this window answers to its own machine only. Give webHandler() a `token` or `authorize`.',
  )
}

function isSecure({ request }: Asked): boolean {
  return request.url.startsWith('https:') || request.headers.get('x-forwarded-proto') === 'https'
}
