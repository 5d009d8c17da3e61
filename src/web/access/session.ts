/**
 * A session: a signed cookie in place of the token, so that a page need not keep the token. The window stores nothing
 * of it.
 */

import { randomBytes } from 'node:crypto'
import type { Secret } from './secret.js'
import type { Role, Viewer } from './viewer.js'

interface Session extends Viewer {
  readonly csrf: string
}

/** A working day; then the user logs in again. */
const lifeMs = 12 * 3_600_000
const longestCookie = 1_024

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
    const text = Buffer.from(JSON.stringify({ id, name, role, untilAt: this.#now() + lifeMs })).toString('base64url')
    return this.#cookie(`${text}.${this.#secret.sign('session', text)}`, lifeMs, path, isSecure)
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
