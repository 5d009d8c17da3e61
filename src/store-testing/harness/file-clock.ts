/**
 * A file clock: a manual clock whose time is kept in a file, so that threads and processes share it. As a module it is a
 * `SqliteClock`; the file is named in the query of the module's URL (`?path=…`). The file holds milliseconds since 1970
 * and those of the monotonic clock, as little-endian doubles, and behind them the boot id as text.
 */

import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import type { SqliteClock } from '../../stores/sqlite/file/sqlite-clock.js'

/** URL of this module for a clock in the file at `path`. */
export function fileClockUrl(path: string): string {
  const url = new URL(import.meta.url)
  url.searchParams.set('path', path)
  return url.href
}

/** In place and at once: a reader sees the time before or the time after. The monotonic clock shows the same where it is not given. */
export function writeFileClock(path: string, now: number, bootId = 'boot-1', mono = now): void {
  const bytes = Buffer.alloc(16)
  bytes.writeDoubleLE(now)
  bytes.writeDoubleLE(mono, 8)
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    writeSync(descriptor, Buffer.concat([bytes, Buffer.from(bootId)]), 0, undefined, 0)
  } finally {
    closeSync(descriptor)
  }
}

export function readFileClock(path: string): { now: number; mono: number; bootId: string } {
  const bytes = Buffer.alloc(256)
  const descriptor = openSync(path, 'r')
  try {
    const length = readSync(descriptor, bytes, 0, bytes.length, 0)
    return { now: bytes.readDoubleLE(0), mono: bytes.readDoubleLE(8), bootId: bytes.toString('utf8', 16, length) }
  } finally {
    closeSync(descriptor)
  }
}

const path = new URL(import.meta.url).searchParams.get('path') ?? ''

/** Named by the address that the store's thread is given. @public */
export const clock: SqliteClock = {
  now: () => readFileClock(path).now,
  mono: () => readFileClock(path).mono,
  bootId: () => readFileClock(path).bootId,
}
