/**
 * The examination of a SQLite store: the file, its rights, its journal, and the room on its volume; or, if there is no file yet,
 * whether this user could make it. Reads only.
 */

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FsckFinding } from '../contract/store-health.js'
import type { Database } from './file/sqlite-driver.js'
import { ballastOf, volumeOf } from './file/sqlite-room.js'
import { logBytes, takesJobs, type Volume, wantsBallast } from './file/sqlite-volume.js'

export function examineSqlite(file: string, db: Database): FsckFinding[] {
  const value = (sql: string) => Object.values(db.prepare(sql).get() as object)[0]
  const journal = String(value('PRAGMA journal_mode'))
  const volume = volumeOf(file, db)
  return [
    {
      level: 'ok',
      what: 'version',
      text: `SQLite ${value('SELECT sqlite_version()')}, store version ${value('PRAGMA user_version')}`,
    },
    judgeRights(file, statSync(file)),
    journal === 'wal'
      ? { level: 'ok', what: 'journal', text: 'write-ahead log' }
      : { level: 'warning', what: 'journal', text: `${journal}: it is put into WAL mode when it is next opened.` },
    ...(volume === undefined
      ? [{ level: 'warning' as const, what: 'room', text: 'the file system does not tell how much is free.' }]
      : judgeVolume(file, volume)),
  ]
}

/** Judges who else may read or write the file. */
export function judgeRights(file: string, { mode, uid }: { readonly mode: number; readonly uid: number }): FsckFinding {
  const rights = (mode & 0o777).toString(8)
  const text = `${file}, mode ${rights}, owner ${uid}`
  if ((mode & 0o002) !== 0)
    return { level: 'error', what: 'file', text: `${text}: everybody may write to it. Run chmod 600 on it.` }
  if ((mode & 0o004) !== 0)
    return { level: 'warning', what: 'file', text: `${text}: everybody may read what jobs carry. Run chmod 600 on it.` }
  return { level: 'ok', what: 'file', text }
}

function judgeVolume(file: string, volume: Volume): FsckFinding[] {
  const { total, free, log, ballast } = volume
  const bound = logBytes(total)
  const room = `${shown(free)} of ${shown(total)} are free`
  return [
    takesJobs(volume, 0)
      ? {
          level: 'ok',
          what: 'room',
          text: `${room}; enqueues are refused when less than about ${shown(2 * bound)} is left`,
        }
      : {
          level: 'error',
          what: 'room',
          text: `${room}: enqueues are refused, what is left is kept to finish the jobs that are there. Let workers catch up, delete jobs or free some space.`,
        },
    log > 4 * Math.max(bound, total / 32)
      ? {
          level: 'warning',
          what: 'log',
          text: `${shown(log)}, where ${shown(bound)} is its bound: some program holds a read transaction on the file. End it.`,
        }
      : { level: 'ok', what: 'log', text: `${shown(log)}; it is folded back at ${shown(bound)}` },
    ballast >= bound
      ? { level: 'ok', what: 'ballast', text: `${shown(ballast)} in '${ballastOf(file)}'` }
      : wantsBallast(volume) || free > 1_073_741_824
        ? { level: 'ok', what: 'ballast', text: 'none yet; it is made when the store has its size or room is scarce' }
        : {
            level: 'warning',
            what: 'ballast',
            text: 'none, and there is no room for it: it was given up to finish jobs. It comes back when there is room.',
          },
  ]
}

function shown(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MB`
}

/** The finding for a file that does not exist. An error if its folder can be neither used nor made. */
export function absenceOf(file: string): FsckFinding {
  let folder = dirname(file)
  while (!existsSync(folder)) folder = dirname(folder)
  const stats = statSync(folder)
  if (!stats.isDirectory()) return unmade(`'${folder}' is no folder. Name another path by 'store'.`)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch {
    const user = process.getuid === undefined ? 'this user' : `this user (uid ${process.getuid()})`
    return unmade(
      `${user} may not write '${folder}', which belongs to uid ${stats.uid}. Give the folder to the user that the workers run as (chown), or name another path by 'store'.`,
    )
  }
  return { level: 'ok', what: 'file', text: 'there is no file yet: the first process that opens the store makes it' }
}

function unmade(why: string): FsckFinding {
  return { level: 'error', what: 'file', text: `there is no file yet, and none can be made: ${why}` }
}
