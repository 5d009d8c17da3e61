/** A Postgres address: the hosts, the database, the schema of the store, and where notifications are heard. Pure. */

import { durationForm, parseDuration } from '../../../core/values/duration.js'
import { decoded, hidden, hostIn, hostsText, refuseStore } from '../../../core/values/store-address.js'

export interface PostgresHost {
  readonly host: string
  readonly port: number
}

export interface PostgresAddress {
  /** Tried in this order; the first that takes writes is used. */
  readonly hosts: readonly PostgresHost[]
  readonly user?: string
  /** A function is asked at each connection: a token that changes may come from it. */
  readonly password?: string | (() => string | Promise<string>)
  readonly database: string
  /** Default `'millrace'`. */
  readonly schema?: string
  /**
   * A direct way to the server, for one whose address is a pooler's: notifications do not pass a pooler that lends
   * connections for a transaction. `'none'`: nothing is heard, and waiters look by themselves.
   */
  readonly listen?: PostgresHost | 'none'
  /**
   * `'require'`: encrypted, the certificate unchecked. `'verify-full'`: checked against those that Node trusts. An object:
   * the options of Node's `tls.connect`.
   */
  readonly tls: 'disable' | 'require' | 'verify-full' | object
  /** For how many ms a process with nothing to do leaves the server alone. Absent: it looks every 2 s. */
  readonly idlePollMs?: number
  /** Makes the socket, for a server that is reached through another program's library. */
  readonly stream?: () => object
}

const forms =
  "expected 'postgres://[user[:password]@]host[:port][,host[:port]]/database[?schema=…&listen=host[:port]&sslmode=…&idlePoll=…]'; a user or password must be percent-encoded"
const encoded = 'a user, password, host or database'

// Another '@' is part of a password that is not encoded.
const shape = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^@/?#]+)(?:\?([^@#]*))?$/
const modes = ['disable', 'require', 'verify-full'] as const
const parameters = ['schema', 'listen', 'sslmode', 'idlePoll']

/** Whether the text looks like the address of a Postgres. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:/.test(text)
}

/** Throws `ConfigError`, which never shows a password. */
export function postgresAddress(url: string): PostgresAddress {
  const parts = shape.exec(url)
  if (parts === null) return refuseStore(`${forms}. ${hidden}`)
  const [, userinfo = '', hosts = '', database = '', query = ''] = parts
  const [user = '', ...password] = userinfo.split(':')
  const search = new URLSearchParams(query)
  if (![...search.keys()].every((name) => parameters.includes(name)))
    refuseStore(`a parameter is not known; there are ${parameters.join(', ')}. ${hidden}`)
  const mode = search.get('sslmode') ?? 'disable'
  const tls = modes.find((one) => one === mode) ?? refuseStore(`'sslmode' must be one of ${modes.join(', ')}`)
  const [schema, listen, idlePoll] = ['schema', 'listen', 'idlePoll'].map((name) => search.get(name) ?? undefined)
  return {
    hosts: hosts.split(',').map(hostOf),
    ...(user === '' ? {} : { user: decoded(user, encoded) }),
    ...(password.length === 0 ? {} : { password: decoded(password.join(':'), encoded) }),
    database: decoded(database, encoded),
    ...(schema === undefined ? {} : { schema: schemaOf(schema) }),
    ...(listen === undefined ? {} : { listen: listenOf(listen) }),
    ...(idlePoll === undefined ? {} : { idlePollMs: idlePollOf(/^\d+$/.test(idlePoll) ? Number(idlePoll) : idlePoll) }),
    tls,
  }
}

/** The address for messages, without secrets. */
export function postgresAddressText({ hosts, user, database }: PostgresAddress): string {
  return `postgres://${user === undefined ? '' : `${encodeURIComponent(user)}@`}${hostsText(hosts)}/${encodeURIComponent(database)}`
}

/** Throws `ConfigError` for a name that Postgres would cut or keeps for itself. `called`: the setting that has it. */
export function schemaOf(name: string, called = "'schema' in its address"): string {
  if (!/^(?!pg_)\w[\w.-]{0,62}$/i.test(name))
    refuseStore(
      `${called} is the name of a schema of Postgres: 1 to 63 characters, letters of ASCII, digits, '_', '-' and '.', beginning with none of the last two, and not with 'pg_', which is Postgres's own`,
    )
  return name
}

/** Throws `ConfigError` for anything but `'none'` and a host. */
export function listenOf(text: string): PostgresHost | 'none' {
  return text === 'none' ? text : hostOf(text)
}

const [leastIdlePollMs, mostIdlePollMs] = [60_000, 86_400_000]

/** In ms. Throws `ConfigError`. */
export function idlePollOf(given: unknown): number {
  const ms = parseDuration(given)
  if (ms === undefined || ms < leastIdlePollMs || ms > mostIdlePollMs)
    return refuseStore(`'idlePoll' must be from '1m' to '1d', as ${durationForm}`)
  return ms
}

function hostOf(text: string): PostgresHost {
  const { host, port } = hostIn(text, 5432, forms)
  return { host: decoded(host, encoded), port }
}
