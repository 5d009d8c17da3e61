/**
 * A file clock: a manual clock whose time is kept in a file, so that threads and processes share it. As a module it is
 * a `SqliteClock`; the query of the module's URL names the file (`?path=…`). The file holds the wall clock, in ms since
 * 1970, and the monotonic clock, as little-endian doubles, and after them the boot id as text.
 */

import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import type { SqliteClock } from '../../stores/sqlite/file/sqlite-clock.js'

/** The URL of this module for a clock in the file at `path`. */
export function fileClockUrl(path: string): string {
  const url = new URL(import.meta.url)
  url.searchParams.set('path', path)
  return url.href
}

/**
 * Writes in place and at once: a reader sees the time before or the time after. The monotonic clock defaults to `now`.
 */
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
