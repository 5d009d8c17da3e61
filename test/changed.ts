/** The object with some of its members changed: a store or client that answers otherwise in one place. */

export function changed<Thing extends object>(thing: Thing, change: Partial<Thing>): Thing {
  return new Proxy(thing, {
    get: (target, key) => {
      if (key in change) return change[key as keyof Thing]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
