/** The failures of a store that a test requests, for the next call or until it ends them. */

import { StoreUnavailableError } from '../core/errors.js'
import type { Store } from '../stores/contract/store.js'

export const verbs = ['open', 'enqueue', 'claim', 'settle', 'extend', 'depth', 'wait', 'records'] as const

/** A call of the store; `'records'` is any look at, or change of, its jobs, throttles and workers. */
export type StoreVerb = (typeof verbs)[number]

export function isStoreVerb(name: unknown): name is StoreVerb {
  return (verbs as readonly unknown[]).includes(name)
}

/** The verbs of calls of the facet `joins`. */
const joinVerbs: Readonly<Record<string, StoreVerb>> = { enqueue: 'enqueue', seal: 'enqueue', sweep: 'claim' }

export class StoreFailures {
  readonly #next = new Map<StoreVerb, Error[]>()
  #outages = 0

  /** The store with the requested failures. */
  of(store: Store): Store {
    return this.#guarded(store, (name) => (isStoreVerb(name) ? name : undefined))
  }

  /** Makes the next call of this verb reject with this error, and do nothing. Several are used up in turn. */
  failNext(verb: StoreVerb, error: Error): void {
    this.#next.set(verb, [...(this.#next.get(verb) ?? []), error])
  }

  /** Makes every call reject until the returned function is called. */
  outage(): () => void {
    let isOver = false
    this.#outages += 1
    return () => {
      if (!isOver) this.#outages -= 1
      isOver = true
    }
  }

  /** The error with which this call must fail. */
  #failure(verb: StoreVerb): Error | undefined {
    if (this.#outages > 0)
      return new StoreUnavailableError(
        'the store is unavailable, as the test requested. Nothing was changed; try again.',
        {
          inDoubt: false,
        },
      )
    return this.#next.get(verb)?.shift()
  }

  /** Facets fail as a whole. */
  #guarded<T extends object>(target: T, verbOf: (name: string) => StoreVerb | undefined): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value === 'object' && value !== null && /^(?:records|throttles|workers)$/.test(String(name)))
          return this.#guarded(value, () => 'records')
        if (name === 'joins') return this.#guarded(value as object, (call) => joinVerbs[call] ?? 'records')
        if (typeof value !== 'function') return value
        const verb = verbOf(String(name))
        if (verb === undefined) return value.bind(target)
        return async (...args: unknown[]) => {
          const failure = this.#failure(verb)
          if (failure !== undefined) throw failure
          return Reflect.apply(value, target, args)
        }
      },
    })
  }
}
