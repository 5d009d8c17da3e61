/**
 * `npm run bench -- <name> [--json]`: runs one benchmark, or all. Benchmarks are programs that print ratios, never tests.
 * What a whole run of all says is also written to `all.txt`, with a header that says where and on what it ran.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'

export interface BenchReport {
  say(line: string): void
}

const folder = import.meta.dirname
const ending = '.bench.ts'
const names = readdirSync(folder)
  .filter((file) => file.endsWith(ending))
  .map((file) => file.slice(0, -ending.length))

const [name] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const json = process.argv.includes('--json')
// With --json the words go to stderr, so stdout has only the figures.
const print = (line: string) => (json ? console.error(line) : console.log(line))

if (name === undefined || !['all', ...names].includes(name)) {
  console.error(`usage: npm run bench -- <all | ${names.join(' | ')}> [--json]`)
  process.exitCode = 2
} else if (name === 'all') {
  await runAll()
} else {
  const summary = await run(name, { say: print })
  if (json) console.log(JSON.stringify(summary))
}

async function run(name: string, report: BenchReport): Promise<unknown> {
  const { bench } = (await import(`./${name}${ending}`)) as { bench: (report: BenchReport) => Promise<unknown> }
  return bench(report)
}

async function runAll(): Promise<void> {
  const lines: string[] = []
  const say = (line: string) => {
    lines.push(line)
    print(line)
  }
  for (const line of heading()) say(line)
  for (const name of names) {
    say(`\n# ${name}`)
    try {
      const summary = await run(name, { say })
      lines.push(JSON.stringify(summary))
      if (json) console.log(JSON.stringify({ [name]: summary }))
    } catch (error) {
      // The others take an hour, so one that fails does not end them.
      say(`failed: ${(error as Error).stack ?? String(error)}`)
      process.exitCode = 1
    }
  }
  // A quick run only shows that the programs run, so it replaces no figures.
  if (!process.argv.includes('--quick')) writeFileSync(join(folder, 'all.txt'), `${lines.join('\n')}\n`)
}

function heading(): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
  const [cpu] = cpus()
  return [
    `date: ${new Date().toISOString()}`,
    `commit: ${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '-dirty'}`,
    `node: ${process.version}`,
    `cpus: ${cpus().length} (${cpu?.model.trim() ?? 'unknown'})`,
  ]
}
