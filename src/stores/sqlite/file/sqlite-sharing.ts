/**
 * The sharing of a SQLite store: for whom what it makes is. Its folder says so, as for other files: in one with the
 * setgid bit, to which its group may write, new files get the group of the folder, and the store is shared by that group.
 * Otherwise it is its owner's alone. It is never for everybody.
 */

import { chmodSync, fchmodSync, fstatSync, lstatSync, mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

const setgid = 0o2000
const groupAll = 0o070

/** The rights of a new file in this folder, whatever the umask. */
function fileRights(folder: string): number {
  return sharedGroup(folder) === undefined ? 0o600 : 0o660
}

/** Makes a folder with the rights of a store, in one that exists. Throws `EEXIST`. */
export function makeFolder(path: string): void {
  mkdirSync(path, { mode: 0o700 })
  // It has the bit and the group of its parent already.
  if (sharedGroup(dirname(path)) !== undefined) chmodSync(path, (statSync(path).mode & 0o7000) | 0o770)
}

/** Gives a file that we have made its rights. */
export function giveRights(file: string, folder: string): void {
  chmodSync(file, fileRights(folder))
}

/** The same for an open file, which is left alone if another user has made it. */
export function giveRightsTo(descriptor: number, folder: string): void {
  const { uid, mode } = fstatSync(descriptor)
  const rights = fileRights(folder)
  if (uid === process.getuid?.() && (mode & 0o777) !== rights) fchmodSync(descriptor, rights)
}

/** Whether what lies in this folder is ours, or of somebody with whom the folder is shared. */
export function isTrusted({ uid, gid }: Stats, folder: string): boolean {
  return uid === process.getuid?.() || gid === sharedGroup(folder)
}

/** The group that shares the folder; undefined: none. */
function sharedGroup(folder: string): number | undefined {
  const { mode, gid } = statSync(folder)
  return (mode & setgid) !== 0 && (mode & groupAll) === groupAll ? gid : undefined
}

/** Whether there is a real folder at the path, and it is trusted. */
export function isTrustedFolder(path: string): boolean {
  const stats = lstatSync(path)
  return stats.isDirectory() && isTrusted(stats, dirname(path))
}
