/**
 * Bound methods: methods of a context that also work detached, as in `const { log, progress } = ctx`. Each is bound at
 * its first use, so that a context costs nothing for unused ones.
 */

/** Turns methods of the prototype into bound ones. Throws `TypeError` for a name that is not one of its own methods. */
export function bindMethods<T extends object>(prototype: T, names: readonly (keyof T)[]): void {
  for (const name of names) {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value
    if (typeof method !== 'function') throw new TypeError(`'${String(name)}' is no method of its own`)
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: T) {
        return method.bind(this)
      },
    })
  }
}
