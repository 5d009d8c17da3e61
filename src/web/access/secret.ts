/** A secret: the token of the window, and the key for signatures. */

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

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
