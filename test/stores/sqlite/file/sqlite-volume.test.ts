import { expect, it } from 'vitest'
import {
  logBytes,
  spareBytes,
  takesJobs,
  type Volume,
  wantsBallast,
  wantsLongLog,
} from '#src/stores/sqlite/file/sqlite-volume.js'

const mega = 1_048_576
const empty: Volume = { total: 6 * mega, free: 6 * mega, file: 0, grown: 0, unused: 0, log: 0, ballast: 0 }

it('log and ballast each take at most a sixteenth of a volume, and at most 16 MB', () => {
  expect(logBytes(6 * mega)).toBe(393_216)
  expect(logBytes(64 * mega)).toBe(4 * mega)
  expect(logBytes(1_000_000 * mega)).toBe(16_384_000)
  expect(logBytes(Number.POSITIVE_INFINITY)).toBe(16_384_000)
  expect(logBytes(mega)).toBe(262_144)
})

it('jobs are refused before room for the log, the ballast and the growth in the log is used up', () => {
  const bound = logBytes(empty.total)
  const full = { ...empty, log: bound, ballast: bound, file: 4 * mega, grown: 4 * mega, free: 0 }
  expect(spareBytes(full, 0)).toBe(0)
  expect(takesJobs(full, 0)).toBe(true)
  expect(takesJobs(full, 1)).toBe(false)
  expect(takesJobs({ ...full, free: 2_000 }, 1_000)).toBe(true)
  expect(takesJobs({ ...full, grown: 4 * mega + 4_096 }, 0)).toBe(false)
})

it('a spent ballast counts the same as a present one', () => {
  const bound = logBytes(empty.total)
  const some = { ...empty, free: mega, log: bound, ballast: bound }
  expect(spareBytes({ ...some, ballast: 0, free: some.free + bound }, 0)).toBe(spareBytes(some, 0))
})

it('free pages in the file make room for jobs, but none for the log', () => {
  const bound = logBytes(empty.total)
  const drained = { ...empty, free: bound, log: bound, file: 5 * mega, grown: 5 * mega, unused: 4 * mega }
  expect(takesJobs(drained, 0)).toBe(true)
  expect(takesJobs({ ...drained, free: bound + 50_000 }, 50_000)).toBe(true)
  expect(takesJobs({ ...drained, free: bound / 2 }, 0)).toBe(true)
  expect(takesJobs({ ...drained, free: 0 }, 0)).toBe(false)
})

it('the ballast is created when room is scarce or the store has its size, and never if jobs would then be refused', () => {
  expect(wantsBallast(empty)).toBe(true)
  expect(wantsBallast({ ...empty, ballast: logBytes(empty.total) })).toBe(false)
  expect(wantsBallast({ ...empty, ballast: 4_096 })).toBe(true)
  expect(wantsBallast({ ...empty, free: logBytes(empty.total) })).toBe(false)
  const large: Volume = { ...empty, total: 100_000 * mega, free: 50_000 * mega }
  expect(wantsBallast(large)).toBe(false)
  expect(wantsBallast({ ...large, file: 20 * mega, grown: 20 * mega })).toBe(true)
})

it('a log gets its full length only if there is far more room than it takes', () => {
  const large: Volume = { ...empty, total: 100_000 * mega, free: 50_000 * mega }
  expect(wantsLongLog(large)).toBe(true)
  expect(wantsLongLog({ ...large, log: logBytes(large.total) - 1 })).toBe(true)
  expect(wantsLongLog({ ...large, log: logBytes(large.total) })).toBe(false)
  expect(wantsLongLog({ ...large, free: 200 * mega })).toBe(false)
  expect(wantsLongLog(empty)).toBe(false)
})

it('a long log of a small store is no reason to create the ballast', () => {
  const small: Volume = { ...empty, total: 100_000 * mega, free: 50_000 * mega, file: mega, grown: mega }
  expect(wantsBallast({ ...small, log: logBytes(small.total) })).toBe(false)
})
