/** A Redis address: the location of a single server, of a master's sentinels, or of a cluster's nodes. Pure. */

import { checkedPort, decoded, hidden, hostIn, hostsText, refuseStore } from '../../../core/values/store-address.js'

/**
 * Returns a client of ioredis, `Redis` or `Cluster`, that serves as a pattern. The store copies its options and its
 * cluster's nodes, but never uses or closes it. Make it with `lazyConnect: true`, so that it opens no connection
 * itself. User and password are asked for again at each connection: a token that
 * changes may come from here. The type does not name ioredis, which may not be installed.
 */
export type ConnectRedis = () => object

export interface RedisHost {
  readonly host: string
  readonly port: number
}

type Pem = string | Uint8Array | readonly (string | Uint8Array)[]

/**
 * The options of Node's `tls.connect` that can be passed to another thread or process: text and bytes. Does not use
 * Node's types, which may not be installed.
 */
interface RedisTls {
  readonly ca?: Pem
  readonly cert?: Pem
  readonly key?: Pem
  readonly pfx?: Pem
  readonly crl?: Pem
  readonly passphrase?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
  readonly minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'
  readonly maxVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'
  readonly ciphers?: string
  readonly ecdhCurve?: string
  readonly sigalgs?: string
  readonly honorCipherOrder?: boolean
}

export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  /** The server, the sentinels, or some nodes of the cluster, which name the others. */
  readonly hosts: readonly RedisHost[]
  readonly username?: string
  readonly password?: string
  /** Always 0 on a cluster. */
  readonly db: number
  /** True: the server is checked against the certificates that Node trusts. */
  readonly tls: boolean | RedisTls
  /** The name by which the sentinels know the master. */
  readonly master?: string
  readonly sentinelUsername?: string
  readonly sentinelPassword?: string
}

/** An address in parts. Defaults: `kind` `'single'`, port 6379 (sentinels: 26379), `db` 0, no `tls`. */
export type RedisAddressOptions = Partial<Omit<RedisAddress, 'hosts'>> & {
  readonly hosts: readonly (string | { readonly host: string; readonly port?: number })[]
}

const forms =
  "expected 'redis://[user:password@]host[:port][/db]', 'redis+sentinel://host:port,host:port/master[?db=0]' or " +
  "'redis+cluster://host:port,host:port' ('rediss' for TLS); a user or password must be percent-encoded"

// Another '@' is part of a password that is not encoded: no part of it may be shown.
const shape = /^(redis|rediss)(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^@/?#]*))?(?:\?([^@#]*))?$/
const encoded = 'a user, password or master'
const parameters = ['db', 'sentinelUsername', 'sentinelPassword']

/** Whether the text looks like the address of a Redis. */
export function isRedisUrl(text: string): boolean {
  return /^rediss?(?:\+\w+)?:/.test(text)
}

/** The checked address. Throws `ConfigError`, which never shows a password. */
export function redisAddress(given: string | RedisAddressOptions): RedisAddress {
  return typeof given === 'string' ? addressOfUrl(given) : addressOfParts(given)
}

/** The address for messages, without secrets. */
export function addressText({ kind, hosts, username, db, tls, master }: RedisAddress): string {
  const scheme = `redis${tls === false ? '' : 's'}${kind === 'single' ? '' : `+${kind}`}`
  const user = username === undefined ? '' : `${encodeURIComponent(username)}@`
  const list = hostsText(hosts)
  if (kind === 'sentinel') return `${scheme}://${user}${list}/${master}${db === 0 ? '' : `?db=${db}`}`
  return `${scheme}://${user}${list}${db === 0 ? '' : `/${db}`}`
}

function addressOfUrl(url: string): RedisAddress {
  const parts = shape.exec(url)
  if (parts === null) return refuseStore(`${forms}. ${hidden}`)
  const [, scheme, kind = 'single', userinfo, list = '', path = '', query = ''] = parts
  const search = new URLSearchParams(query)
  if (![...search.keys()].every((name) => parameters.includes(name)))
    refuseStore(`a parameter is not known; there are ${parameters.join(', ')}. ${hidden}`)
  const [username, ...password] = (userinfo ?? '').split(':')
  const db = kind === 'single' && path !== '' ? path : (search.get('db') ?? '0')
  const sentinelUsername = search.get('sentinelUsername')
  const sentinelPassword = search.get('sentinelPassword')
  if (kind === 'cluster' && path !== '')
    refuseStore(`a cluster has one database only; leave out what follows its hosts. ${hidden}`)
  return addressOfParts({
    kind: kind as RedisAddress['kind'],
    hosts: list.split(','),
    ...(username ? { username: decoded(username, encoded) } : {}),
    ...(password.length > 0 ? { password: decoded(password.join(':'), encoded) } : {}),
    db: /^\d{1,5}$/.test(db) ? Number(db) : refuseStore(`what follows the hosts is no number of a database. ${hidden}`),
    tls: scheme === 'rediss',
    ...(kind === 'sentinel' ? { master: decoded(path, encoded) } : {}),
    ...(sentinelUsername === null ? {} : { sentinelUsername }),
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
  })
}

function addressOfParts(given: RedisAddressOptions): RedisAddress {
  const { kind = 'single', db = 0, tls = false, master } = given
  if (!['single', 'sentinel', 'cluster'].includes(kind))
    refuseStore("'kind' of a Redis must be 'single', 'sentinel' or 'cluster'")
  if (!Array.isArray(given.hosts) || given.hosts.length === 0)
    refuseStore("'hosts' of a Redis must be a list of at least one host")
  const hosts = given.hosts.map((host) => hostOf(host, kind === 'sentinel' ? 26379 : 6379))
  if (kind === 'single' && hosts.length > 1)
    refuseStore("several hosts are either sentinels or a cluster: write 'redis+sentinel://' or 'redis+cluster://'")
  if (kind === 'cluster' && db !== 0) refuseStore(`a cluster has database 0 only, not ${db}`)
  if (kind === 'sentinel' && !master)
    refuseStore("the name of the master is missing; write 'redis+sentinel://host:port,host:port/master'")
  return { ...given, kind, hosts, db, tls }
}

function hostOf(given: string | { readonly host: string; readonly port?: number }, defaultPort: number): RedisHost {
  if (typeof given === 'string') return hostIn(given, defaultPort, forms)
  return { host: given.host, port: checkedPort(given.port ?? defaultPort) }
}
