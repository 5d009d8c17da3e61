/** Mutants: copies of the built library with one deliberate mistake each in what a store runs. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SequenceKind } from 'millrace/store-testing'

export interface Mutation {
  readonly what: string
  /** Under `dist/stores`. */
  readonly file: string
  readonly from: string
  readonly to: string
  /** The concern of the contract that must catch it: where it changes neither an answer nor what is stored, or sequences seldom come upon it. */
  readonly concern?: string
}

/** What a mutant is compared with memory over. */
export interface Draws {
  /** Of what queues the sequences are. Default `'plain'`. */
  readonly kind?: SequenceKind
  readonly seed: number
  readonly sequences: number
  readonly steps: number
}

const root = join(import.meta.dirname, '..')
const withinMs = 900_000

/** What tells the mutant from a good store, a sequence or a contract case; undefined where nothing does. `store` is `sqlite` or the URL of a Redis. */
export async function caughtBy(mutation: Mutation, store: string, draws: Draws): Promise<string | undefined> {
  const how = mutation.concern === undefined ? draws : { concern: mutation.concern }
  return tried(mutation, join(import.meta.dirname, 'mutant.ts'), [store, JSON.stringify(how)])
}

/** What a program prints that is given the folder of the mutant's `dist`, and these arguments; undefined where it prints nothing. */
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
    const jiti = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
    const { stdout } = await promisify(execFile)(process.execPath, [jiti, program, folder, ...args], {
      timeout: withinMs,
    })
    return stdout.trim() === '' ? undefined : stdout.trim()
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
