/** A kept call: it is made when somebody first asks, for all who ask. If it fails it is made again for the next. */

export function keptCall<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined
      throw error
    })
    return made
  }
}
