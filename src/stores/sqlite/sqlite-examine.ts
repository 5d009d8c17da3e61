/**
 * The examination of a SQLite store: the file, its rights, its journal, and the room on its volume; or, if there is no file yet,
 * whether this user could make it. Reads only.
 */

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FsckFinding } from '../contract/store-health.js'
import { error, ok, warning } from '../rules/findings.js'
import type { Database } from './file/sqlite-driver.js'
import { ballastOf, megabytes, volumeOf } from './file/sqlite-room.js'
import { logBytes, takesJobs, type Volume, wantsBallast } from './file/sqlite-volume.js'

export function examineSqlite(file: string, db: Database): FsckFinding[] {
  const value = (sql: string) => Object.values(db.prepare(sql).get() as object)[0]
  const journal = String(value('PRAGMA journal_mode'))
  const volume = volumeOf(file, db)
  return [
    ok('version', `SQLite ${value('SELECT sqlite_version()')}, store version ${value('PRAGMA user_version')}`),
    judgeRights(file, statSync(file)),
    journal === 'wal'
      ? ok('journal', 'write-ahead log')
      : warning('journal', `${journal}: it is put into WAL mode when it is next opened.`),
    ...(volume === undefined
      ? [warning('room', 'the file system does not tell how much is free.')]
      : judgeVolume(file, volume)),
  ]
}

/** Judges who else may read or write the file. */
export function judgeRights(file: string, { mode, uid }: { readonly mode: number; readonly uid: number }): FsckFinding {
  const rights = (mode & 0o777).toString(8)
  const text = `${file}, mode ${rights}, owner ${uid}`
  if ((mode & 0o002) !== 0) return error('file', `${text}: everybody may write to it. Run chmod 600 on it.`)
  if ((mode & 0o004) !== 0) return warning('file', `${text}: everybody may read what jobs carry. Run chmod 600 on it.`)
  return ok('file', text)
}

function judgeVolume(file: string, volume: Volume): FsckFinding[] {
  const { total, free, log, ballast } = volume
  const bound = logBytes(total)
  const room = `${megabytes(free)} of ${megabytes(total)} are free`
  return [
    takesJobs(volume, 0)
      ? ok('room', `${room}; enqueues are refused when less than about ${megabytes(2 * bound)} is left`)
      : error(
          'room',
          `${room}: enqueues are refused, what is left is kept to finish the jobs that are there. Let workers catch up, delete jobs or free some space.`,
        ),
    log > 4 * Math.max(bound, total / 32)
      ? warning(
          'log',
          `${megabytes(log)}, where ${megabytes(bound)} is its bound: some program holds a read transaction on the file. End it.`,
        )
      : ok('log', `${megabytes(log)}; it is folded back at ${megabytes(bound)}`),
    ballast >= bound
      ? ok('ballast', `${megabytes(ballast)} in '${ballastOf(file)}'`)
      : wantsBallast(volume) || free > 1_073_741_824
        ? ok('ballast', 'none yet; it is made when the store has its size or room is scarce')
        : warning(
            'ballast',
            'none, and there is no room for it: it was given up to finish jobs. It comes back when there is room.',
          ),
  ]
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
  return ok('file', 'there is no file yet: the first process that opens the store makes it')
}

function unmade(why: string): FsckFinding {
  return error('file', `there is no file yet, and none can be made: ${why}`)
}
