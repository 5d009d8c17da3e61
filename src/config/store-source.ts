/** The store source: a descriptor turned into a store. The only file that knows every store. */

import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Clock, systemClock } from '../core/clock.js'
import { ConfigError } from '../core/errors.js'
import { messageOf } from '../core/shown.js'
import { MemoryStore, memoryTraits } from '../stores/memory/memory-store.js'
import { SqliteStore, sqliteTraits } from '../stores/sqlite/sqlite-store.js'
import type { Store, StoreTraits } from '../stores/store.js'

/** A URL, or a module whose export makes a store: a descriptor, because other threads and processes open it again. */
export type StoreDescriptor = string | { readonly module: string; readonly export?: string }

export interface StoreSource {
  /** The descriptor as messages may show it: without secrets. */
  readonly text: string
  /** What another thread or process opens it by; absent where it is a store in hand. */
  readonly descriptor?: StoreDescriptor
  /** Known before opening where the store is one of ours. */
  readonly traits: StoreTraits | undefined
  /** Makes the store; it connects at its first call. */
  create(): Promise<Store>
}

const forms = "expected 'memory:', 'sqlite:path/to/jobs.db' or { module, export }"

/** Throws `ConfigError` for a descriptor that names no store. */
export function storeSource(descriptor: StoreDescriptor, clock: Clock = systemClock): StoreSource {
  if (typeof descriptor === 'object' && descriptor !== null && typeof descriptor.module === 'string')
    return moduleSource(descriptor)
  if (typeof descriptor !== 'string') return refuse(`${forms}; got ${typeof descriptor}`)
  const at = descriptor.indexOf(':')
  const [scheme, rest] = [descriptor.slice(0, at), descriptor.slice(at + 1)]
  if (scheme === 'memory') {
    if (rest !== '')
      return refuse(`the memory store takes no path; got '${descriptor}'. For a file use 'sqlite:${rest}'`)
    return { text: descriptor, descriptor, traits: memoryTraits, create: async () => new MemoryStore(clock) }
  }
  if (scheme === 'sqlite') {
    if (rest === '' || rest === ':memory:')
      return refuse(
        `a SQLite store needs a file, such as 'sqlite:.millrace/jobs.db'; for one that is not kept use 'memory:'`,
      )
    // Threads open it later, when the process may have gone to another directory.
    const file = resolve(rest)
    return {
      text: descriptor,
      descriptor: `sqlite:${file}`,
      traits: sqliteTraits,
      create: async () => new SqliteStore({ file }),
    }
  }
  return refuse(`${forms}; got '${withoutPassword(descriptor)}'`)
}

function moduleSource({ module, export: name = 'default' }: { module: string; export?: string }): StoreSource {
  return {
    text: `${module}#${name}`,
    descriptor: { module: isPath(module) ? resolve(module) : module, export: name },
    traits: undefined,
    async create() {
      const make = (await imported(module))[name]
      if (typeof make !== 'function') return refuse(`module '${module}' has no function '${name}' that makes a store`)
      return (await make()) as Store
    },
  }
}

function isPath(module: string): boolean {
  return module.startsWith('.') || isAbsolute(module)
}

/** A path is taken from the working directory, anything else for the name of a package. */
async function imported(module: string): Promise<Record<string, unknown>> {
  try {
    return await import(isPath(module) ? pathToFileURL(resolve(module)).href : module)
  } catch (error) {
    return refuse(`module '${module}' cannot be loaded: ${messageOf(error)}`)
  }
}

function refuse(message: string): never {
  throw new ConfigError('the store', [{ path: 'store', message }])
}

/** URLs carry secrets; messages and logs must not. */
function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@')
}
