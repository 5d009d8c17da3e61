/**
 * `npm run prove [name]`: runs one proof, or lists them and runs all. The output of a proof is also written to
 * `<name>.txt` beside it, of a part of one to `<name>-<part>.txt`, with a header that says where and on what it ran. Exits
 * with 1 if a claim fails, with 2 for an unknown name.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { type Proof, Report } from './report.js'

const folder = import.meta.dirname
const ending = '.proof.ts'

/** The path of each proof, without the ending, by its name. */
const paths = new Map(
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => [basename(file, ending), join(folder, file.slice(0, -ending.length))]),
)
const names = [...paths.keys()].sort()

const [asked] = process.argv.slice(2)
if (asked === undefined) console.log(`Proofs: ${names.join(', ')}`)
if (asked !== undefined && !names.includes(asked)) {
  console.error(`There is no proof '${asked}'. There are: ${names.join(', ')}.`)
  process.exitCode = 2
} else {
  for (const name of asked === undefined ? names : [asked]) await run(name)
}
// Without it, Node 20 cleans up after thousands of child processes and does not come to an end (nodejs/node#47748).
process.stdout.write('', () => process.stderr.write('', () => process.exit()))

async function run(name: string): Promise<void> {
  const proof: Proof = await import(`${paths.get(name)}${ending}`)
  const report = new Report()
  for (const line of heading(name, proof.seed)) report.say(line)
  const startedAt = performance.now()
  try {
    const summary = await proof.prove(report)
    report.say(`summary: ${JSON.stringify(summary)}`)
  } catch (error) {
    report.claim(`the proof runs to its end: ${(error as Error).stack ?? String(error)}`, false)
  }
  const { failed } = report
  report.say(failed.length === 0 ? 'Every claim holds.' : `Claims that fail: ${failed.length}.`)
  report.say(`took ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  const part = proof.part === undefined ? '' : `-${proof.part}`
  writeFileSync(`${paths.get(name)}${part}.txt`, `${report.lines.join('\n')}\n`)
  if (failed.length > 0) process.exitCode = 1
}

function heading(name: string, seed: number): string[] {
  const [cpu] = cpus()
  return [
    `proof: ${name}`,
    `date: ${new Date().toISOString()}`,
    `commit: ${commit()}`,
    `node: ${process.version}`,
    `sqlite: ${sqliteVersion()}`,
    `cpus: ${cpus().length} (${cpu?.model.trim() ?? 'unknown'})`,
    `seed: ${seed}`,
    '',
  ]
}

function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
  // The outputs of proofs are not part of the proved code.
  const dirty = git('status', '--porcelain', '--', ':/', ':(top,exclude,glob)proofs/**/*.txt') !== ''
  return `${git('rev-parse', '--short', 'HEAD')}${dirty ? '-dirty' : ''}`
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:')
  try {
    const row = database.prepare('select sqlite_version() as version').get() as { version: string }
    return `${row.version} (package), ${process.versions['sqlite'] ?? 'none'} (built in)`
  } finally {
    database.close()
  }
}
