/** The keys of Kale's queue file, with the options that they become. Pure. */

import { mostPerClaim } from '../../core/queue/queue.js'

interface KaleKey {
  readonly option: string
  /** The value of the option; undefined if it is invalid. */
  read(value: unknown): number | undefined
  readonly form: string
}

const isWhole = (value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most

const count = (option: string, least: number, most?: number): KaleKey => ({
  option,
  read: (value) => (isWhole(value, least, most) ? value : undefined),
  form: most === undefined ? `a whole number of at least ${least}` : `a whole number from ${least} to ${most}`,
})

/** Kale treats 0 as 20. */
const longPollOfZeroS = 20

export const kaleKeys: ReadonlyMap<string, KaleKey> = new Map(
  Object.entries({
    priority: count('weight', 1, 100),
    batch_size: count('claimSize', 1, mostPerClaim),
    num_iterations: count('iterations', 1, 1_000_000),
    visibility_timeout_sec: {
      option: 'lease',
      read: (value) => (isWhole(value, 3, 43_200) ? value * 1_000 : undefined),
      form: 'a whole number of seconds from 3 to 43200',
    },
    long_poll_time_sec: {
      option: 'longPoll',
      read: (value) => (isWhole(value, 0, 20) ? (value || longPollOfZeroS) * 1_000 : undefined),
      form: 'a whole number of seconds from 0 to 20 (0 is 20, as in Kale)',
    },
  } satisfies Record<string, KaleKey>),
)
