/** The SQLite store's clock: wall time for records, the machine's monotonic time and boot id for leases. */

import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { bootIdIn } from '../../../core/platform/proc-text.js'

export interface SqliteClock {
  /** Ms since 1970. */
  now(): number
  /** Ms of a clock that all processes of the machine share and that never goes back while it runs. */
  mono(): number
  /** Another value after each start of the machine: monotonic times of different boots do not compare. */
  bootId(): string
  /**
   * When the machine started, ms since 1970, good to a few seconds. Tells a restart from a container that shares the
   * machine and calls its boot by another id. Absent: every other id is a restart.
   */
  bootedAt?(): number
}

export const machineClock: SqliteClock = {
  now: () => Date.now(),
  // CLOCK_MONOTONIC, in ns; whole ms keep the rows small.
  mono: () => Number(process.hrtime.bigint() / 1_000_000n),
  bootId() {
    return kernelsBootId() ?? `${hostname()} ${Math.floor(bootTime() / 60_000)}`
  },
  bootedAt: bootTime,
}

/** Undefined where the system does not tell: an empty one would be taken for a restart, which voids every lease. */
function kernelsBootId(): string | undefined {
  try {
    return bootIdIn(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  } catch {
    return undefined
  }
}

/** Of the kernel itself where its monotonic clock begins with the boot; what a container is told of its uptime may be its own. */
function bootTime(): number {
  return Date.now() - (process.platform === 'linux' ? Number(process.hrtime.bigint() / 1_000_000n) : uptime() * 1_000)
}

/** The clock that the module at `url` exports as `clock`; the machine's where there is no url. */
export async function loadClock(url: string | undefined): Promise<SqliteClock> {
  if (url === undefined) return machineClock
  return ((await import(url)) as { clock: SqliteClock }).clock
}
