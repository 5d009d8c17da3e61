/** The health of a store: the facet of a store that examines what it runs on and what it holds. Both only read. */

/** Something that is, or is not, as it should be. */
export interface Finding {
  /** `'ok'`: as it should be · `'warning'`: works, with what the text says · `'error'`: jobs may be lost, or are wrong. */
  readonly level: 'ok' | 'warning' | 'error'
  /** What was looked at, in a few words, such as `eviction policy`. */
  readonly what: string
  /** What was found, and where it is no `'ok'` what to do. */
  readonly text: string
}

export interface StoreHealth {
  /** What the store runs on: version, settings, rights, clock. */
  examine(): Promise<Finding[]>
  /** Whether what it holds fits together; `queue` absent: all queues. Takes as long as there are jobs. */
  check(queue?: string): Promise<Finding[]>
}
