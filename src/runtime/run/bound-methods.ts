/**
 * Bound methods: methods of a context that work without it too, as `const { log, progress } = ctx` takes them. Each is bound
 * when it is asked for, so that a context costs nothing for those that nobody asks for.
 */

/** Makes methods of the prototype bound ones. Throws `TypeError` for a name that is no method of its own. */
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
