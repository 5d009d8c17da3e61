/** The SQLite store's clock: wall time for records, the machine's monotonic time and boot id for leases. */

import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { bootIdIn } from '../../../core/platform/proc-text.js'

export interface SqliteClock {
  /** Ms since 1970. */
  now(): number
  /** Ms of a clock that all processes of the machine share and that never goes back while it runs. */
  mono(): number
  /** Another value after each start of the machine: monotonic times of different boots cannot be compared. */
  bootId(): string
  /**
   * When the machine started, in ms since 1970, accurate to a few seconds. It tells a restart from a container that
   * shares the machine but has another id for its boot. Absent: every other id is a restart.
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

/** Undefined if the system does not report it. An empty id would count as a restart, which ends every lease. */
function kernelsBootId(): string | undefined {
  try {
    return bootIdIn(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * By the kernel's monotonic clock, where that begins with the boot: the uptime that a container sees may be its own.
 */
function bootTime(): number {
  return Date.now() - (process.platform === 'linux' ? Number(process.hrtime.bigint() / 1_000_000n) : uptime() * 1_000)
}

/** The clock that the module at `url` exports as `clock`; the machine's if there is no url. */
export async function loadClock(url: string | undefined): Promise<SqliteClock> {
  if (url === undefined) return machineClock
  return ((await import(url)) as { clock: SqliteClock }).clock
}
