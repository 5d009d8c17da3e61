/**
 * The release: what must be true before a version is published, and the publishing itself. `npm run release` only checks, packs
 * and tries the package; `npm run release -- --publish` publishes, with provenance where the CI attests it.
 */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prove as provePack } from '../proofs/pack.proof.js'
import { provedRooms } from '../proofs/proved-rooms.js'
import { Report } from '../proofs/report.js'
import { fixtureFile } from '../test/stores/fixtures/fixture-files.js'
import {
  type ChangesSince,
  changelogProblems,
  fixtureProblems,
  leftToAPerson,
  type ProofOutput,
  proofOutput,
  staleProofs,
  staleTable,
  treeProblems,
} from './release-checks.js'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const isReal = process.argv.includes('--publish')

function attempt(command: string, ...args: string[]) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8', stdio: ['inherit', 'pipe', 'pipe'] })
  return { isDone: status === 0, text: stdout.trim() }
}

function run(command: string, ...args: string[]): string {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] })
  if (status !== 0) fail(`\`${[command, ...args].join(' ')}\` ended with ${status}`, stdout)
  return stdout.trim()
}

function fail(why: string, output = ''): never {
  if (output !== '') console.error(output)
  console.error(`release: ${why}. Nothing was published.`)
  process.exit(1)
}

function commitsIn(range: string, paths: readonly string[]): string[] {
  return run('git', 'log', '--format=%h', range, '--', ...paths)
    .split('\n')
    .filter((line) => line !== '')
}

function changesSince({ commit, date }: ProofOutput, paths: readonly string[]): ChangesSince {
  const isByDate = !attempt('git', 'merge-base', '--is-ancestor', commit, 'HEAD').isDone
  return { commits: commitsIn(isByDate ? `--since=${date}` : `${commit}..HEAD`, paths), isByDate }
}

const fixtures = join('test/stores/fixtures', version)
const writtenAt = run('git', 'log', '-1', '--format=%h', '--', fixtures)
const problems = [
  ...treeProblems(
    {
      status: run('git', 'status', '--porcelain'),
      branch: run('git', 'rev-parse', '--abbrev-ref', 'HEAD'),
      tags: run('git', 'tag', '--list', `v${version}`),
    },
    version,
  ),
  ...changelogProblems(readFileSync('CHANGELOG.md', 'utf8'), version),
  ...fixtureProblems(
    existsSync(fixtures) ? readdirSync(fixtures) : [],
    Object.values(fixtureFile),
    version,
    writtenAt === '' ? [] : commitsIn(`${writtenAt}..HEAD`, ['src/stores']),
  ),
]
const api = attempt(process.execPath, 'scripts/api.mjs', '--check')
if (!api.isDone) problems.push('the public API is not what api/ says: run `npm run api`')
if (problems.length > 0 && isReal) fail(problems.join('; '), api.isDone ? '' : api.text)
for (const problem of problems) console.log(`would be refused: ${problem}`)

const outputs = readdirSync('proofs', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.txt'))
  .map((file) => proofOutput(join('proofs', file), readFileSync(join('proofs', file), 'utf8')))
const stale = staleProofs(outputs, new Map(Object.entries(provedRooms)), changesSince)
console.log(`\nOutputs of proofs that are older than what they prove, or missing: ${stale.length}`)
for (const line of staleTable(stale)) console.log(`  ${line}`)

if (isReal) {
  run('npm', 'ci')
  run('npm', 'test')
  run('npx', 'vitest', 'run', '--mode', 'drills')
}
console.log('\nThe package:')
const report = new Report()
await provePack(report)
if (report.failed.length > 0) {
  if (isReal) fail(`the package fails: ${report.failed.join('; ')}`)
  console.log(`would be refused: the package fails (${report.failed.length} claims)`)
}

const attested = process.env['ACTIONS_ID_TOKEN_REQUEST_URL'] === undefined ? [] : ['--provenance']
console.log(run('npm', 'publish', '--access', 'public', ...attested, ...(isReal ? [] : ['--dry-run'])))
if (isReal) run('git', 'tag', `v${version}`)
console.log(isReal ? `\nPublished ${version}. Left to a person:` : '\nNothing was published. Left to a person:')
for (const line of leftToAPerson(version, isReal)) console.log(`- ${line}`)
