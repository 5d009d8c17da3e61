/**
 * Accepts the public API as it is now: writes the report of each entry to `api/`, made of the declarations in `dist`.
 * `npm run api` builds and does that. `node scripts/api.mjs --check [root]`, part of `npm test`, only compares: it prints what
 * differs and exits with 1.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiDifferences, apiReports } from './api-report.mjs'

const [root = '.'] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const folder = join(root, 'api')
const reports = apiReports(root)
const kept = existsSync(folder) ? readdirSync(folder) : []
const strangers = kept.filter((file) => !reports.has(file.replace(/\.txt$/, '')))
const textOf = (name) => (kept.includes(`${name}.txt`) ? readFileSync(join(folder, `${name}.txt`), 'utf8') : '')

if (process.argv.includes('--check')) {
  const changes = [...reports].flatMap(([name, report]) => {
    const lines = apiDifferences(textOf(name), report)
    return lines.length === 0 ? [] : [`api/${name}.txt is not what dist declares:`, ...lines.map((line) => `  ${line}`)]
  })
  for (const file of strangers) changes.push(`api/${file} is of no entry of package.json`)
  if (changes.length > 0) {
    console.log(changes.join('\n'))
    console.log(
      'The public API has changed. If that is meant: `npm run api` accepts it; commit api/ with the change, and a sentence in CHANGELOG.md. docs/versions.md says which version may change what.',
    )
    process.exitCode = 1
  } else console.log(`The public API is as api/ says: ${reports.size} entries.`)
} else {
  mkdirSync(folder, { recursive: true })
  for (const file of strangers) rmSync(join(folder, file))
  for (const [name, report] of reports) {
    for (const line of apiDifferences(textOf(name), report)) console.log(`${name}: ${line}`)
    writeFileSync(join(folder, `${name}.txt`), report)
  }
}
