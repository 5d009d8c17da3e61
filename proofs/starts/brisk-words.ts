/** The shared words of the proof of brisk starts: its queue, its throttle and its handlers. */

export const brisk = 'brisk'
export const limit = 500
export const windowMs = 1_000
/** Far less than a window lets through in the time that they wait for their instants. */
export const slots = 5

export const throttle = { limit, window: windowMs } as const

export type Handler = 'at once' | 'in turns' | 'blocking'

/** What a worker tells when it ends: when its handlers began, on the clock that all processes share, in ms. */
export interface BriskEnd {
  readonly starts: readonly number[]
  /** The most jobs of a claim. */
  readonly mostClaimed: number
  readonly wasted: number
  readonly late: number
}
