/** The volume of a SQLite store: how large its log and its ballast are, and whether it has room for more jobs. Pure. */

/** What the volume has, and what the store has of it, in bytes. */
export interface Volume {
  readonly total: number
  /** Free for this user. */
  readonly free: number
  /** The file as it lies on the disk. */
  readonly file: number
  /** The file as it will be once its log is folded back into it. */
  readonly grown: number
  /** Of that what holds nothing, and is used before the file grows. */
  readonly unused: number
  readonly log: number
  readonly ballast: number
}

const page = 4_096
/** A log shorter than this is folded back so often that every commit pays for it. */
const leastLog = 64 * page
const mostLog = 4_000 * page
/** Neither log nor ballast may take more of a volume than one part in so many. */
const share = 16
/** While more than this is free the ballast is made only when the store has grown to its size. */
const roomy = 1_073_741_824

/** The log is folded back into the file when it is as long as this; the ballast is as large. */
export function logBytes(total: number): number {
  const bytes = Math.min(mostLog, Math.max(leastLog, total / share))
  return Math.floor(bytes / page) * page
}

/** What the log is cut to when it is empty. Cutting costs: on a large volume it may stay longer than it is bounded to. */
export function restingLogBytes(total: number): number {
  return Math.min(67_108_864, Math.max(logBytes(total), total / 32))
}

/** What is left for the file to grow by once `bytes` more are in the log, the log has its length and the ballast is there. */
export function spareBytes(volume: Volume, bytes: number): number {
  const { total, free, file, grown, log, ballast } = volume
  const bound = logBytes(total)
  const growth = Math.max(0, grown - file)
  return free + ballast - bound - Math.max(0, bound + bytes - log) - growth
}

/**
 * Whether `bytes` of new jobs leave room to claim, settle and delete those that are there. Where the file has room within, it
 * need not grow, and half a ballast is enough.
 */
export function takesJobs(volume: Volume, bytes: number): boolean {
  const spare = spareBytes(volume, bytes)
  return spare + Math.min(volume.unused, logBytes(volume.total) / 2) >= 0 && spare + volume.unused >= bytes
}

/** Whether the ballast is to be made: it is not there, or not whole, and there is room for it with some to spare. */
export function wantsBallast(volume: Volume): boolean {
  const bound = logBytes(volume.total)
  if (volume.ballast >= bound || spareBytes(volume, leastLog / 4) < 0) return false
  return volume.free < roomy || volume.file + volume.log >= bound
}
