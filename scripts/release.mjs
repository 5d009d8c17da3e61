/**
 * The release: what must be true before a version is published, and the publishing itself.
 * `npm run release` only checks and packs. `npm run release -- --publish` publishes, with provenance where the CI attests it.
 */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const isReal = process.argv.includes('--publish')

function run(command, ...args) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] })
  if (status !== 0) fail(`\`${[command, ...args].join(' ')}\` ended with ${status}`, stdout)
  return stdout.trim()
}

function fail(why, output = '') {
  if (output !== '') console.error(output)
  console.error(`release: ${why}. Nothing was published.`)
  process.exit(1)
}

const heading = new RegExp(`^## ${version.replaceAll('.', '\\.')} — \\d{4}-\\d{2}-\\d{2}$`, 'm')
const problems = [
  run('git', 'status', '--porcelain') !== '' && 'the working tree has changes that are not committed',
  run('git', 'rev-parse', '--abbrev-ref', 'HEAD') !== 'main' && 'the branch is not main',
  run('git', 'tag', '--list', `v${version}`) !== '' && `the tag v${version} exists`,
  !heading.test(readFileSync('CHANGELOG.md', 'utf8')) && `CHANGELOG.md has no heading "## ${version} — <date>"`,
].filter((problem) => problem !== false)
if (problems.length > 0 && isReal) fail(problems.join('; '))
for (const problem of problems) console.log(`would be refused: ${problem}`)

if (isReal) {
  run('npm', 'ci')
  run('npm', 'test')
  run('npx', 'vitest', 'run', '--mode', 'drills')
}
const attested = process.env.ACTIONS_ID_TOKEN_REQUEST_URL === undefined ? [] : ['--provenance']
console.log(run('npm', 'publish', '--access', 'public', ...attested, ...(isReal ? [] : ['--dry-run'])))
if (isReal) {
  run('git', 'tag', `v${version}`)
  console.log(`Published ${version}. Push the tag: git push origin v${version}`)
}
