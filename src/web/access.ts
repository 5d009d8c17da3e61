/** Access: whether a request is answered at all, who sent it, and whether they may change something. */

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ApiRequest } from './api-request.js'
import { WebRefusal } from './failure.js'
import { isAllowedHost, isLoopbackAddress, isLoopbackHost, isOwnOrigin } from './host-list.js'

/** A `viewer` looks; an `operator` also changes. */
type Role = 'viewer' | 'operator'

export interface Viewer {
  /** The name in the audit. */
  readonly name: string
  readonly role: Role
}

/** A viewer, and how they were recognised. A session came by a cookie and needs its CSRF token to change something. */
export interface KnownViewer extends Viewer {
  readonly by: 'token' | 'session' | 'authorize' | 'loopback'
  readonly csrf?: string
}

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
  checkHost({ host }: Pick<ApiRequest, 'host'>): void {
    const { hosts } = this.#options
    if (isAllowedHost(host, hosts)) return
    throw new WebRefusal(
      'host',
      `this dashboard does not answer under the host '${host ?? ''}'. Add the name to \`hosts\` of webHandler(), or to --hosts of millrace dash, if it is yours.`,
    )
  }

  /** Throws a refusal for a request from a page of another origin. */
  checkOrigin({ request, host = '' }: ApiRequest): void {
    const origin = request.headers.get('origin') ?? undefined
    const site = request.headers.get('sec-fetch-site') ?? undefined
    if (isOwnOrigin({ origin, site }, host, this.#options.hosts)) return
    throw new WebRefusal(
      'forbidden',
      'the request comes from a page of another origin. Only pages of this dashboard may send requests; behind a proxy that changes Host, add the public host to `hosts`.',
    )
  }

  /** The viewer who sent the request. Throws a refusal for an unknown one. */
  async viewer(asked: ApiRequest): Promise<KnownViewer> {
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
  checkChange({ request }: ApiRequest, viewer: KnownViewer): void {
    this.checkHeader(request)
    const { role } = viewer
    if (this.#options.readOnly)
      throw new WebRefusal('forbidden', 'this dashboard is read-only: nothing can be changed by it.')
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
  logIn(given: string, asked: ApiRequest): string {
    if (this.#options.token === undefined)
      throw new WebRefusal(
        'argument-invalid',
        'this dashboard has no token to log in with; it identifies its viewers in another way.',
      )
    if (!this.#isToken(given)) this.#refuseWrong(asked)
    return this.#sessions.begin(tokenViewer, asked.cookiePath, isSecure(asked))
  }

  logOut(asked: ApiRequest): string {
    return this.#sessions.end(asked.cookiePath, isSecure(asked))
  }

  /** Makes a code that logs in once, within 10 minutes. */
  newLogin(): string {
    const code = randomBytes(24).toString('base64url')
    this.#logins.set(code, this.#mono() + loginLifeMs)
    return code
  }

  /** The `Set-Cookie` header of a new session, for such a code. Throws a refusal. */
  logInOnce(code: string, asked: ApiRequest): string {
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
  #refuseWrong({ address }: ApiRequest, message = 'the token is wrong.'): never {
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
  if (answer === false) throw unauthorized('`authorize` of this dashboard does not let this request in.')
  throw unauthorized("`authorize` of this dashboard must answer false, true, or { name, role: 'viewer' | 'operator' }.")
}

/** Without `token` and `authorize` only this machine may use the window. */
function byLoopback({ request, host = '', address }: ApiRequest): Viewer {
  const isProxied = proxyHeaders.some((name) => request.headers.has(name))
  if (isLoopbackHost(host) && !isProxied && isLoopbackAddress(address)) return { name: 'loopback', role: 'operator' }
  if (address === '')
    throw unauthorized(
      'without a token this dashboard answers to its own machine only, and a web request does not say where it came from. Give webHandler() a `token` or `authorize`, or window.fetch(request, { address }) the address of the peer.',
    )
  throw unauthorized(
    'without a token this dashboard answers to its own machine only. Give webHandler() a `token` or `authorize`.',
  )
}

function isSecure({ request }: ApiRequest): boolean {
  return request.url.startsWith('https:') || request.headers.get('x-forwarded-proto') === 'https'
}

interface Session extends Viewer {
  readonly csrf: string
}

/** A working day; then the user logs in again. */
const sessionLifeMs = 12 * 3_600_000
const longestCookie = 1_024

/** Sessions: a signed cookie in place of the token, so that a page need not keep the token. The window stores nothing. */
export class Sessions {
  readonly #secret: Secret
  /** Browsers share cookies between ports: each window of a machine has a cookie of its own. */
  readonly #name: string
  readonly #now: () => number

  constructor(secret: Secret, now: () => number) {
    this.#secret = secret
    this.#name = `millrace-${secret.sign('cookie', '').slice(0, 8)}`
    this.#now = now
  }

  /** The `Set-Cookie` header of a new session. `path` ends with `/`. */
  begin({ name, role }: Viewer, path: string, isSecure: boolean): string {
    const id = randomBytes(16).toString('base64url')
    const text = Buffer.from(JSON.stringify({ id, name, role, untilAt: this.#now() + sessionLifeMs })).toString(
      'base64url',
    )
    return this.#cookie(`${text}.${this.#secret.sign('session', text)}`, sessionLifeMs, path, isSecure)
  }

  /** The `Set-Cookie` header that ends it in the browser. */
  end(path: string, isSecure: boolean): string {
    return this.#cookie('', 0, path, isSecure)
  }

  /** The session in a `Cookie` header; undefined if there is none that is ours and valid. */
  find(cookies: string | undefined): Session | undefined {
    const value = cookies
      ?.split(';')
      .map((one) => one.trim())
      .find((one) => one.startsWith(`${this.#name}=`))
      ?.slice(this.#name.length + 1)
    if (value === undefined || value.length > longestCookie) return undefined
    const [text = '', signature = ''] = value.split('.')
    if (!this.#secret.isSigned('session', text, signature)) return undefined
    const { id, name, role, untilAt } = JSON.parse(Buffer.from(text, 'base64url').toString()) as {
      readonly id: string
      readonly name: string
      readonly role: Role
      readonly untilAt: number
    }
    return untilAt > this.#now() ? { name, role, csrf: this.#secret.sign('csrf', id) } : undefined
  }

  #cookie(value: string, ageMs: number, path: string, isSecure: boolean): string {
    const age = Math.round(ageMs / 1_000)
    return `${this.#name}=${value}; Path=${path}; Max-Age=${age}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  }
}

/** The token of the window, and the key for signatures. */
export class Secret {
  readonly #digest: Buffer
  readonly #key: Buffer

  /** Without a token a random secret is made: signatures are then worth nothing in another process. */
  constructor(token?: string) {
    const text = token ?? randomBytes(32)
    this.#digest = digestOf(text)
    this.#key = createHmac('sha256', 'millrace window').update(text).digest()
  }

  /** Takes the same time for every token. */
  isToken(given: string): boolean {
    return timingSafeEqual(digestOf(given), this.#digest)
  }

  /** `purpose`: a signature for one purpose is not valid for another. */
  sign(purpose: string, text: string): string {
    return createHmac('sha256', this.#key).update(`${purpose}\n${text}`).digest('base64url')
  }

  isSigned(purpose: string, text: string, signature: string): boolean {
    return timingSafeEqual(digestOf(signature), digestOf(this.sign(purpose, text)))
  }
}

function digestOf(text: string | Buffer): Buffer {
  return createHash('sha256').update(text).digest()
}

const mostFailures = 10
const windowMs = 60_000
/** The number of addresses remembered. */
const mostAddresses = 10_000

/** The failure limit: how many wrong tokens of one address are answered in a minute before it is told to wait. */
export class FailureLimit {
  readonly #failures = new Map<string, { count: number; readonly sinceAt: number }>()
  readonly #mono: () => number

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** How long who sends wrong tokens from this address is told to wait, in ms; 0: not at all. */
  waitMs(address: string): number {
    const failures = this.#of(address)
    return failures === undefined || failures.count < mostFailures ? 0 : failures.sinceAt + windowMs - this.#mono()
  }

  count(address: string): void {
    const failures = this.#of(address)
    if (failures !== undefined) failures.count += 1
    else {
      if (this.#failures.size >= mostAddresses) this.#failures.delete(this.#failures.keys().next().value!)
      this.#failures.set(address, { count: 1, sinceAt: this.#mono() })
    }
  }

  #of(address: string): { count: number; readonly sinceAt: number } | undefined {
    const failures = this.#failures.get(address)
    if (failures === undefined || this.#mono() - failures.sinceAt < windowMs) return failures
    this.#failures.delete(address)
    return undefined
  }
}
