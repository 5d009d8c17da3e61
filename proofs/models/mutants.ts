/** Mutants: copies of the built library, each with one deliberate mistake in a store. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SequenceKind } from 'millrace/store-testing'
import { jiti } from '../forked-program.js'

export interface Mutation {
  readonly what: string
  /** The path under `dist/stores`. */
  readonly file: string
  readonly from: string
  readonly to: string
  /**
   * The concern of the contract that must catch it. Needed if the mutation changes neither an answer nor the stored
   * state, or if sequences seldom reach it.
   */
  readonly concern?: string
}

/** The random sequences over which a mutant is compared with the memory store. */
export interface Draws {
  /** The kind of the sequences' queues. Default `'plain'`. */
  readonly kind?: SequenceKind
  readonly seed: number
  readonly sequences: number
  readonly steps: number
}

/**
 * The mutations of a table. `@` begins those of a file, `*` a mutation with what it breaks. Then follow the lines to
 * change (`-`), what stands in their place (`+`) and, if one must catch it, the concern of the contract (`!`).
 */
export function mutationsIn(table: string): Mutation[] {
  const mutations: (Omit<Mutation, 'from' | 'to'> & { from: string[]; to: string[]; concern?: string })[] = []
  let file = ''
  for (const line of table.trim().split('\n')) {
    const [mark, rest] = [line.slice(0, 2), line.slice(2)]
    if (mark === '@ ') file = rest
    else if (mark === '* ') mutations.push({ what: rest, file, from: [], to: [] })
    else if (mark === '- ') mutations.at(-1)!.from.push(rest)
    else if (mark === '+ ') mutations.at(-1)!.to.push(rest)
    else if (mark === '! ') mutations.at(-1)!.concern = rest
    else throw new Error(`a table of mutations has no lines like '${line}'`)
  }
  return mutations.map(({ from, to, ...rest }) => ({ ...rest, from: from.join('\n'), to: to.join('\n') }))
}

const root = join(import.meta.dirname, '../..')
const withinMs = 900_000

/**
 * The sequence or contract case that shows the mutant from a good store, or undefined if none does. `store` is `sqlite`,
 * `memory` or the URL of a Redis or a Postgres. The memory store is compared by the contract alone.
 */
export async function caughtBy(mutation: Mutation, store: string, draws: Draws): Promise<string | undefined> {
  const how = mutation.concern === undefined ? draws : { concern: mutation.concern }
  return tried(mutation, join(import.meta.dirname, 'mutant.ts'), [store, JSON.stringify(how)])
}

/**
 * The output of a program that gets the folder of the mutant's `dist` and these arguments, or undefined if it prints
 * nothing. A mutant that blocks the program is caught by hanging.
 */
export async function tried(
  mutation: Mutation,
  program: string,
  args: readonly string[] = [],
): Promise<string | undefined> {
  // Inside the checkout, so that the copy finds its dependencies.
  mkdirSync(join(root, '.millrace'), { recursive: true })
  const folder = mkdtempSync(join(root, '.millrace', 'mutant-'))
  try {
    cpSync(join(root, 'dist'), folder, { recursive: true })
    mutate(join(folder, 'stores', mutation.file), mutation)
    const { stdout } = await promisify(execFile)(process.execPath, [jiti, program, folder, ...args], {
      ...{ timeout: withinMs, killSignal: 'SIGKILL' },
    })
    return stdout.trim() === '' ? undefined : stdout.trim()
  } catch (error) {
    if ((error as { killed?: boolean }).killed !== true) throw error
    return 'hanging'
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function mutate(file: string, { what, from, to }: Mutation): void {
  const text = readFileSync(file, 'utf8')
  if (!text.includes(from)) throw new Error(`mutation '${what}' finds nothing to change in ${file}`)
  writeFileSync(
    file,
    text.replaceAll(from, () => to),
  )
}
