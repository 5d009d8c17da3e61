/** Certificates for one test: an authority, and what it signs for servers of this machine and for their clients. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { loopback } from '#src/store-testing/servers/free-port.js'

interface Credentials {
  readonly cert: string
  readonly key: string
}

export class Certificates {
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-certificates-'))

  constructor() {
    onTestFinished(() => rmSync(this.#folder, { recursive: true }))
    this.#make('authority')
  }

  get authority(): string {
    return this.#file('authority.pem')
  }

  /** The paths of a certificate that the authority has signed, and of its key. */
  signed(name: string): Credentials {
    const signing = ['-CA', this.#file('authority.pem'), '-CAkey', this.#file('authority.key')]
    return this.#make(name, ...signing, '-addext', `subjectAltName=IP:${loopback}`)
  }

  /** Those of one who is at home with this authority, as text: what a client is given. */
  client(name: string): Credentials & { readonly ca: string } {
    const { cert, key } = this.signed(name)
    return {
      ca: readFileSync(this.authority, 'utf8'),
      cert: readFileSync(cert, 'utf8'),
      key: readFileSync(key, 'utf8'),
    }
  }

  #make(name: string, ...more: readonly string[]): Credentials {
    const [cert, key] = [this.#file(`${name}.pem`), this.#file(`${name}.key`)]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
    execFileSync('openssl', ['req', '-x509', ...curve, '-subj', `/CN=${name}`, '-out', cert, '-keyout', key, ...more], {
      stdio: 'pipe',
    })
    return { cert, key }
  }

  #file(name: string): string {
    return join(this.#folder, name)
  }
}
