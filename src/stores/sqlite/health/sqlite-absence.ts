/** The absence of a SQLite file: whether this user could make it. */

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Finding } from '../../contract/store-health.js'

/** The finding for a file that does not exist. An error if its folder can be neither used nor made. */
export function absenceOf(file: string): Finding {
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

function unmade(why: string): Finding {
  return { level: 'error', what: 'file', text: `there is no file yet, and none can be made: ${why}` }
}
