/** Values that may be absent: what is undefined is left out, as `exactOptionalPropertyTypes` wants it. Pure. */

/** The same properties; those that may be undefined are optional. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/**
 * A copy without the properties that are undefined, for objects in which absent means absent:
 * `{ id, ...defined({ group, runAt: date?.getTime() }) }`. Null, 0 and the empty text stay. Objects that are made for each job
 * spread their conditions instead: that costs them no call.
 */
export function defined<T extends object>(given: T): Defined<T> {
  const kept: Record<string, unknown> = {}
  for (const name in given) if (given[name] !== undefined) kept[name] = given[name]
  return kept as Defined<T>
}
