/** The interruption: a signal to the demo, which then stops its workers and cleans up before it ends. */

const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => reject(new Error(`interrupted by ${signal}`)))
})
interrupted.catch(() => {})

/** What the work resolves to. Throws as soon as the demo is interrupted. */
export const orInterrupted = <T>(work: Promise<T>): Promise<T> => Promise.race([interrupted, work])
