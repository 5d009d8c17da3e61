/**
 * The store source: turns a descriptor into a store. Only this file knows every store. It loads the code of a store
 * when it makes one, because every thread and child process starts here.
 */

import { existsSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ConfigIssue, hasCode } from '../core/errors.js'
import { describe, messageOf } from '../core/messages/describe.js'
import { type Clock, systemClock } from '../core/platform/clock.js'
import { defined } from '../core/values/defined.js'
import { refuseStore } from '../core/values/store-address.js'
import type { Store, StoreTraits } from '../stores/contract/store.js'
import { memoryTraits } from '../stores/memory/memory-traits.js'
import { isPostgresUrl, postgresAddress, postgresAddressText } from '../stores/postgres/client/postgres-address.js'
import { postgresStore, schemaFor } from '../stores/postgres/postgres-module.js'
import { postgresTraits } from '../stores/postgres/postgres-traits.js'
import {
  addressText,
  isRedisUrl,
  type RedisAddressOptions,
  redisAddress,
} from '../stores/redis/client/redis-address.js'
import { redisStore } from '../stores/redis/redis-module.js'
import { redisTraits } from '../stores/redis/redis-traits.js'
import { type DriverName, driverNames } from '../stores/sqlite/file/sqlite-driver.js'
import { sqliteTraits } from '../stores/sqlite/sqlite-traits.js'
import { sqsAddress, sqsAddressText } from '../stores/sqs/client/sqs-address.js'
import { sqsStore } from '../stores/sqs/sqs-module.js'
import { sqsTraits } from '../stores/sqs/sqs-traits.js'
import { baseFolder, hasBaseFolder } from './base-folder.js'

/**
 * A URL, the parts of a Redis address, or a module whose export makes a store. It is a descriptor, not a store, because
 * other threads and processes must open it again.
 */
export type StoreDescriptor = string | RedisAddressOptions | { readonly module: string; readonly export?: string }

/**
 * The settings for using a store, apart from its location. The function of a store's module gets them as its argument.
 */
export interface StoreAccess {
  readonly namespace: string
  readonly replicas: number
}

export interface StoreSource {
  /** The descriptor for messages: without secrets. */
  readonly text: string
  /** The descriptor by which another thread or process opens the store; absent for a store object. */
  readonly descriptor?: StoreDescriptor
  readonly access: StoreAccess
  /**
   * The file that opening makes in the working directory, because neither the configuration nor the main script is in a
   * project; undefined for any other.
   */
  strayFile?(): string | undefined
  /** Known before opening if the store is one of Millrace's own. */
  readonly traits: StoreTraits | undefined
  /**
   * Makes the store; it connects at its first call. `inPlace`: it starts no thread of its own, and the thread that calls
   * it waits for its disk.
   */
  create(how?: { readonly inPlace: boolean }): Promise<Store>
}

const forms =
  "expected 'memory:', 'sqlite:path/to/jobs.db', 'postgres://user@host/database', 'redis://host:port', 'sqs://region', { hosts } of a Redis or { module, export }"

export const plainAccess: StoreAccess = { namespace: 'millrace', replicas: 0 }

/** The source of a store. Throws `ConfigError` for a descriptor that names no store. */
export function storeSource(
  descriptor: StoreDescriptor,
  access: StoreAccess = plainAccess,
  clock: Clock = systemClock,
): StoreSource {
  if (typeof descriptor === 'object' && descriptor !== null) {
    if ('module' in descriptor && typeof descriptor.module === 'string') return moduleSource(descriptor, access)
    if ('hosts' in descriptor) return redisSource(descriptor, access)
  }
  if (typeof descriptor !== 'string') return refuseStore(`${forms}; got ${describe(descriptor)}${hintOn(descriptor)}`)
  if (isRedisUrl(descriptor)) return redisSource(descriptor, access)
  if (isPostgresUrl(descriptor)) return postgresSource(descriptor, access)
  if (descriptor.startsWith('sqs:')) return sqsSource(descriptor, access)
  const at = descriptor.indexOf(':')
  const [scheme, rest] = [descriptor.slice(0, at), descriptor.slice(at + 1)]
  if (scheme === 'memory') {
    if (rest !== '')
      return refuseStore(
        `the memory store takes no path; got '${withoutPassword(descriptor)}'. For a file use 'sqlite:path/to/jobs.db'`,
      )
    return {
      text: descriptor,
      descriptor,
      access,
      traits: memoryTraits,
      async create() {
        const { MemoryStore } = await import('../stores/memory/memory-store.js')
        return new MemoryStore(clock)
      },
    }
  }
  if (scheme === 'sqlite') return sqliteSource(descriptor, rest, access)
  const hint = /^[^:@]*[./][^:@]*$/.test(descriptor) ? `. For this file use 'sqlite:${descriptor}'` : ''
  return refuseStore(`${forms}; got '${withoutPassword(descriptor)}'${hint}`)
}

/** A hint for an option of a Redis client, with its form here, as the end of a sentence; empty if it is unknown. */
function hintOn(given: unknown): string {
  if (typeof given !== 'object' || given === null || !('host' in given || 'port' in given)) return ''
  return ". What clients of Redis take as { host, port } is here 'redis://host:port', or { hosts: ['host:port'], password: '…' }; a client of your own comes from a module"
}

/** The mistakes in a descriptor; empty if it names a store. */
export function storeMistakes(descriptor: StoreDescriptor): readonly ConfigIssue[] {
  try {
    storeSource(descriptor)
    return []
  } catch (error) {
    if (!hasCode(error, 'config-invalid')) throw error
    return error.issues
  }
}

function sqliteSource(descriptor: string, rest: string, access: StoreAccess): StoreSource {
  const [path = '', driver] = rest.split('?driver=')
  if (path === '' || path === ':memory:')
    return refuseStore(
      `a SQLite store needs a file, such as 'sqlite:.millrace/jobs.db'; for one that is not kept use 'memory:'`,
    )
  // The rest would be an absolute path, which is rarely meant by `//`.
  if (path.startsWith('//'))
    return refuseStore(
      `'sqlite:' must be followed by a path without '//': 'sqlite:.millrace/jobs.db' is relative, 'sqlite:/srv/app/jobs.db' absolute; got '${descriptor}'`,
    )
  if (driver !== undefined && !isDriverName(driver))
    return refuseStore(`'?driver=' must be followed by one of ${driverNames.join(', ')}; got '${driver}'`)
  // An absolute path, because threads open it later, when the process may have changed its directory.
  const file = resolve(baseFolder(), path)
  const isStray = !isAbsolute(path) && !hasBaseFolder()
  return {
    text: descriptor,
    strayFile: () => (isStray && !existsSync(file) ? file : undefined),
    descriptor: `sqlite:${file}${driver === undefined ? '' : `?driver=${driver}`}`,
    access,
    traits: sqliteTraits,
    async create({ inPlace } = { inPlace: false }) {
      const { SqliteStore } = await import('../stores/sqlite/sqlite-store.js')
      const startThread = inPlace ? (await import('../stores/sqlite/thread/port-thread.js')).inPlace : undefined
      return new SqliteStore({ file, ...defined({ driver, startThread }) })
    },
  }
}

function isDriverName(name: string): name is DriverName {
  return (driverNames as readonly string[]).includes(name)
}

/** The secrets in a descriptor, in every form in which they may be written elsewhere. */
export function secretsOf(descriptor: StoreDescriptor): string[] {
  const given = passwordsIn(descriptor).filter((one) => typeof one === 'string' && one !== '') as string[]
  return [...new Set(given.flatMap((one) => [one, encodeURIComponent(one)]))]
}

function passwordsIn(descriptor: StoreDescriptor): unknown[] {
  if (typeof descriptor === 'string' && isPostgresUrl(descriptor)) return [postgresAddress(descriptor).password]
  if (typeof descriptor === 'string' ? !isRedisUrl(descriptor) : !('hosts' in descriptor)) return []
  const { password, sentinelPassword } = redisAddress(descriptor as string | RedisAddressOptions)
  return [password, sentinelPassword]
}

function redisSource(descriptor: string | RedisAddressOptions, access: StoreAccess): StoreSource {
  const address = redisAddress(descriptor)
  if (access.namespace === '') refuseStore('an empty `namespace` is for SQS only: all keys in a Redis begin with it')
  return {
    text: addressText(address),
    descriptor,
    access,
    traits: redisTraits,
    create: () => redisStore({ url: descriptor, ...access }),
  }
}

function postgresSource(descriptor: string, access: StoreAccess): StoreSource {
  const address = postgresAddress(descriptor)
  schemaFor(address, access.namespace)
  return {
    text: postgresAddressText(address),
    descriptor,
    access,
    traits: postgresTraits,
    create: () => postgresStore({ url: descriptor, namespace: access.namespace }),
  }
}

function sqsSource(descriptor: string, access: StoreAccess): StoreSource {
  return {
    text: sqsAddressText(sqsAddress(descriptor)),
    descriptor,
    access,
    traits: sqsTraits,
    create: () => sqsStore({ url: descriptor, namespace: access.namespace }),
  }
}

function moduleSource(
  { module: given, export: name = 'default' }: { module: string; export?: string },
  access: StoreAccess,
): StoreSource {
  const module = isPath(given) ? resolve(baseFolder(), given) : given
  return {
    text: `${given}#${name}`,
    descriptor: { module, export: name },
    access,
    traits: undefined,
    async create() {
      const make = (await imported(module))[name]
      if (typeof make !== 'function')
        return refuseStore(`module '${module}' has no function '${name}' that makes a store`)
      return (await make(access)) as Store
    },
  }
}

function isPath(module: string): boolean {
  return module.startsWith('.') || isAbsolute(module)
}

/** Anything but a path is the name of a package. */
async function imported(module: string): Promise<Record<string, unknown>> {
  try {
    return await import(isPath(module) ? pathToFileURL(module).href : module)
  } catch (error) {
    return refuseStore(`module '${module}' cannot be loaded: ${messageOf(error)}`)
  }
}

/**
 * A URL without its password, for messages and logs. A password that is not encoded may contain anything, also '@' and
 * '/'. One in the wrong place may be anywhere after the first ':' or '//'.
 */
function withoutPassword(url: string): string {
  const at = url.lastIndexOf('@')
  if (at !== -1) return `${/^[^:@]*:\/\//.exec(url)?.[0] ?? ''}…${url.slice(at)}`
  const begin = /^[^:/]*(?::\/\/|:|\/\/)/.exec(url)?.[0]
  return begin === undefined || begin === url ? url : `${begin}…`
}
