/** The log of the chains: what a parent is told to do, and where its runs and its children are written down. */

import { join } from 'node:path'

/** Of a parent: how many children it has, and how often it dies before it has enqueued them all. */
export interface Chain {
  readonly children: number
  readonly kills: number
}

/** A line for each that ran. */
export const logOf = (folder: string, what: string) => join(folder, `${what}.log`)
