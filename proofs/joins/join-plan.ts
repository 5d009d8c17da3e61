/**
 * The plan of the joins drill: what each join waits for, and what each member does, by its number; and the ledger, in
 * which processes write what they do. The same in every process of the drill.
 */

import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const rules = ['go-on', 'fail', 'hold'] as const
export type Rule = (typeof rules)[number]

/**
 * `alone`: one join of rows. `loose`: the same, with rows in a queue that is cleared at times. `apart`, `shared`: two joins
 * of rows, of their own or of the same, and one that waits for both. `graph`: two such trees over the same rows, and one
 * that waits for both and for the rows.
 */
export type Form = 'alone' | 'loose' | 'apart' | 'shared' | 'graph'

export interface JoinPlan {
  readonly name: string
  readonly form: Form
  readonly rule: Rule
  readonly size: number
  /** How long it may wait. The joins that it waits for may wait for ever. */
  readonly within: '4s' | '30m'
  /** Whether a job of an ordered queue enqueues it. */
  readonly isOrdered: boolean
}

/** One of the joins of a plan. */
export interface PlannedJoin {
  readonly name: string
  readonly queue: 'sums' | 'tops'
  /** What becomes of it if one of its rows does not complete. */
  readonly rule: Rule
  /** The name under which its rows were enqueued. */
  readonly rowsOf?: string
  /** The joins that it waits for. If one of them does not complete, it is dead. */
  readonly parts: readonly string[]
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

/** One join in 300 has more members than one step can hold. The others have 1 to 300, most of them few. */
export function planOf(seed: number, number: number): JoinPlan {
  const lot = (what: string) => lotOf(seed, number, what)
  const rule = rules[Math.floor(lot('rule') * 3)]!
  const name = `join-${number}`
  const isHuge = number % 300 === 7
  const few = 1 + Math.floor(lot('size') ** 3 * 60)
  const size = isHuge ? 1_200 : number % 100 === 3 ? 300 : lot('many') < 0.03 ? Math.ceil(lot('size') * 300) : few
  const lots = lot('form')
  const form =
    isHuge || lots < 0.6 ? 'alone' : lots < 0.7 ? 'loose' : lots < 0.8 ? 'apart' : lots < 0.9 ? 'shared' : 'graph'
  const within = !isHuge && lot('within') < 0.1 ? '4s' : '30m'
  return { name, form, rule, size, within, isOrdered: form === 'alone' && !isHuge && lot('ordered') < 0.3 }
}

/** All joins of a plan; the one under whose name it is known comes last. */
export function joinsOf({ name, form, rule }: JoinPlan): readonly PlannedJoin[] {
  const sum = (of: string, rowsOf: string): PlannedJoin => ({
    ...{ name: of, queue: 'sums', rule: 'go-on', rowsOf, parts: [] },
  })
  const tree = (of: string, left: string, right: string): PlannedJoin[] => [
    sum(`${of}-left`, left),
    sum(`${of}-right`, right),
    { name: of, queue: 'tops', rule: 'fail', parts: [`${of}-left`, `${of}-right`] },
  ]
  switch (form) {
    case 'alone':
      return [{ ...sum(name, name), rule }]
    case 'loose':
      return [sum(name, name)]
    case 'apart':
      return tree(name, `${name}-left`, `${name}-right`)
    case 'shared':
      return tree(name, `${name}-left`, `${name}-left`)
    case 'graph': {
      const parts = [`${name}-a`, `${name}-b`]
      const crown: PlannedJoin = { name, queue: 'tops', rule: 'go-on', rowsOf: name, parts }
      return [...parts.flatMap((part) => tree(part, name, name)), crown]
    }
  }
}

export const rowsOf = (of: string, size: number): Row[] => Array.from({ length: size }, (_, n) => ({ of, n }))

/** The result of a member: no other has it. */
export const resultOf = ({ of, n }: Row) => `${of}/${n}`
export const sumOf = (join: string) => `sum of ${join}`

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
