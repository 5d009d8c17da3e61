/** The log of the chains: the orders of a parent, and the records of its runs and of its children. */

import { join } from 'node:path'

/** The order of a parent: how many children it has, and how often it dies before it has enqueued them all. */
export interface Chain {
  readonly children: number
  readonly kills: number
}

/** A file with a line for each run. */
export const logOf = (folder: string, what: string) => join(folder, `${what}.log`)
