/** Mutants: copies of the built library with one deliberate mistake each in the SQL of the SQLite store. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Mutation {
  readonly what: string
  /** Under `dist/stores/sqlite`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

export const mutations: readonly Mutation[] = [
  {
    what: 'a claim takes the lowest priority first',
    file: 'sqlite-claim.js',
    from: 'state = 1 AND suspect = ? ORDER BY rank, place, rid LIMIT ?)',
    to: 'state = 1 AND suspect = ? ORDER BY rank DESC, place, rid LIMIT ?)',
  },
  {
    what: 'an expired lease is recovered a millisecond late',
    file: 'sqlite-claim.js',
    from: 'lease_until <= ?',
    to: 'lease_until < ?',
  },
  {
    what: 'a due job is promoted without its instant of change',
    file: 'sqlite-claim.js',
    from: 'UPDATE job SET state = 1, updated_at = ?',
    to: 'UPDATE job SET state = 1, updated_at = max(updated_at, 0 * ?)',
  },
  {
    what: 'a completion does not look at the fence',
    file: 'sqlite-settle.js',
    from: 'state = 2 AND fence = ? AND remember_ms = 0',
    to: 'state = 2 AND fence >= 0 * ? AND remember_ms = 0',
  },
  {
    what: 'a beat may shorten the lease',
    file: 'sqlite-settle.js',
    from: 'UPDATE job SET lease_until = max(lease_until, ?) WHERE',
    to: 'UPDATE job SET lease_until = ? WHERE',
  },
  {
    what: 'startedAt is set by every beat',
    file: 'sqlite-settle.js',
    from: 'started_at = coalesce(started_at, ?)',
    to: 'started_at = coalesce(?, started_at)',
  },
  {
    what: 'the newest results are trimmed instead of the oldest',
    file: 'sqlite-settle.js',
    from: 'state = 3 ORDER BY finished_at, rid LIMIT ?',
    to: 'state = 3 ORDER BY finished_at DESC, rid LIMIT ?',
  },
  {
    what: 'a remembered id is forgotten a moment early',
    file: 'sqlite-settle.js',
    from: 'qid = ?1 AND until <= ?2',
    to: 'qid = ?1 AND until <= ?2 + 1000',
  },
  {
    what: 'the row of a queue loses its count of failures',
    file: 'sqlite-queue.js',
    from: "'failed',",
    to: '',
  },
  {
    what: 'the alone mark of a claim is lost',
    file: 'sqlite-claim.js',
    from: 'SET state = 2, fence = ?, worker = ?, alone = ?,',
    to: 'SET state = 2, fence = ?, worker = ?, alone = 0 * ?,',
  },
]

const root = join(import.meta.dirname, '..')

/** The number of the first sequence that tells the mutant from memory, or undefined where none does. */
export async function caughtIn(
  mutation: Mutation,
  seed: number,
  sequences: number,
  steps: number,
): Promise<number | undefined> {
  // Inside the checkout, so that the copy finds its dependencies.
  mkdirSync(join(root, '.millrace'), { recursive: true })
  const folder = mkdtempSync(join(root, '.millrace', 'mutant-'))
  try {
    cpSync(join(root, 'dist'), folder, { recursive: true })
    mutate(join(folder, 'stores/sqlite', mutation.file), mutation)
    const jiti = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
    const program = join(import.meta.dirname, 'mutant.ts')
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, [jiti, program, folder, `${seed}`, `${sequences}`, `${steps}`], {
      timeout: 300_000,
    })
    return stdout.trim() === '' ? undefined : Number(stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function mutate(file: string, { what, from, to }: Mutation): void {
  const text = readFileSync(file, 'utf8')
  if (!text.includes(from)) throw new Error(`mutation '${what}' finds nothing to change in ${file}`)
  writeFileSync(file, text.replaceAll(from, to))
}
