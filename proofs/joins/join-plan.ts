/**
 * The plan of the joins drill: what each join waits for, and what each member does, by its number; and the ledger, in
 * which processes write what they do. The same in every process of the drill.
 */

import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

export const rules = ['go-on', 'fail', 'hold'] as const
export type Rule = (typeof rules)[number]

export interface JoinPlan {
  readonly number: number
  readonly rule: Rule
  readonly size: number
  /** Two joins of rows, and one that waits for them; `'shared'`: both wait for the same rows. */
  readonly tree: 'shared' | 'apart' | undefined
}

/** The input of a member. */
export interface Row {
  readonly of: string
  readonly n: number
}

/** A number from 0 to 1 that belongs to this text. */
function lotOf(...text: readonly (string | number)[]): number {
  return createHash('sha256').update(text.join(' ')).digest().readUInt32BE() / 2 ** 32
}

/** Most joins are small. One in a hundred has 300 members; one in three hundred has more than one step can hold. */
export function planOf(seed: number, number: number): JoinPlan {
  const lot = (what: string) => lotOf(seed, number, what)
  const rule = rules[Math.floor(lot('rule') * 3)]!
  if (number % 300 === 7) return { number, rule, size: 1_200, tree: undefined }
  const size = number % 100 === 3 ? 300 : 1 + Math.floor(lot('size') ** 3 * 60)
  const tree = lot('tree') < 0.15 ? 'shared' : lot('tree') < 0.3 ? 'apart' : undefined
  return { number, rule, size, tree }
}

export const nameOf = ({ number }: JoinPlan) => `join-${number}`

/** The result of a member: no other has it. */
export const resultOf = ({ of, n }: Row) => `${of}/${n}`

/** Whether the member dies as long as nothing has been mended. */
export const isBroken = (seed: number, row: Row) => lotOf(seed, resultOf(row), 'broken') < 0.004

/** Whether its first attempt fails. */
export const failsOnce = (seed: number, row: Row) => lotOf(seed, resultOf(row), 'fails') < 0.03

/** For how long it runs, in ms. */
export const pauseOf = (seed: number, row: Row) => Math.round(lotOf(seed, resultOf(row), 'pause') ** 4 * 50)

/** The file whose presence means that no member is broken any more. */
export const mendedIn = (folder: string) => join(folder, 'mended')

export const ledgerIn = (folder: string) => join(folder, 'ledger.log')

/** Writes one line: it is in the file before anything else that this process does. */
export function note(folder: string, ...words: readonly (string | number)[]): void {
  appendFileSync(ledgerIn(folder), `${words.join('\t')}\n`)
}
