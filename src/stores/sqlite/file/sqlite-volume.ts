/** The volume of a SQLite store: how large its log and its ballast are, and whether it has room for more jobs. Pure. */

/** The size of the volume, and the parts of it that the store has, in bytes. */
export interface Volume {
  readonly total: number
  /** Free for this user. */
  readonly free: number
  /** The file as it is on the disk. */
  readonly file: number
  /** The file as it will be once its log is folded back into it. */
  readonly grown: number
  /** The part of `grown` that holds nothing, and is used before the file grows. */
  readonly unused: number
  readonly log: number
  readonly ballast: number
}

const page = 4_096
/** A log shorter than this is folded back so often that every commit pays for it. */
const leastLog = 64 * page
const mostLog = 4_000 * page
/** The log and the ballast may each take at most one part in this many of a volume. */
const share = 16
/** While more than this is free, the ballast is made only when the store has grown to the ballast's size. */
const roomy = 1_073_741_824

/** The length at which the log is folded back into the file. The ballast has the same size. */
export function logBytes(total: number): number {
  const bytes = Math.min(mostLog, Math.max(leastLog, total / share))
  return Math.floor(bytes / page) * page
}

/**
 * The length to which an empty log is cut. Cutting costs time: on a large volume the log may stay longer than
 * `logBytes`.
 */
export function restingLogBytes(total: number): number {
  return Math.min(67_108_864, Math.max(logBytes(total), total / 32))
}

/**
 * The room for the file to grow that is left once `bytes` more are in the log, the log has its length and the ballast
 * exists.
 */
export function spareBytes(volume: Volume, bytes: number): number {
  const { total, free, file, grown, log, ballast } = volume
  const bound = logBytes(total)
  const growth = Math.max(0, grown - file)
  return free + ballast - bound - Math.max(0, bound + bytes - log) - growth
}

/**
 * Whether `bytes` of new jobs leave room to claim, settle and delete the jobs that are there. A file with unused pages
 * need not grow, so half a ballast is enough then.
 */
export function takesJobs(volume: Volume, bytes: number): boolean {
  const spare = spareBytes(volume, bytes)
  return spare + Math.min(volume.unused, logBytes(volume.total) / 2) >= 0 && spare + volume.unused >= bytes
}

/** Whether to make the ballast: it is missing or incomplete, and there is room for it with some to spare. */
export function wantsBallast(volume: Volume): boolean {
  const bound = logBytes(volume.total)
  if (volume.ballast >= bound || spareBytes(volume, leastLog / 4) < 0) return false
  return volume.free < roomy || volume.grown >= bound
}

/** Whether to give the log its full length now: it is shorter, and there is much more room than that takes. */
export function wantsLongLog(volume: Volume): boolean {
  return volume.log < logBytes(volume.total) && spareBytes(volume, 0) >= 16 * mostLog
}
