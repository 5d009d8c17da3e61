/** `npm run bench -- <name> [--json]`: runs one benchmark, or all. Benchmarks are programs that print ratios, never tests. */

import { readdirSync } from 'node:fs'

export interface BenchReport {
  say(line: string): void
}

const ending = '.bench.ts'
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(ending))
  .map((file) => file.slice(0, -ending.length))

const [name] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const json = process.argv.includes('--json')

if (name === undefined || !['all', ...names].includes(name)) {
  console.error(`usage: npm run bench -- <all | ${names.join(' | ')}> [--json]`)
  process.exitCode = 2
} else {
  // With --json the words go to stderr, so stdout has only the figures.
  const say = (line: string) => (json ? console.error(line) : console.log(line))
  for (const one of name === 'all' ? names : [name]) {
    if (name === 'all') say(`\n# ${one}`)
    const { bench } = (await import(`./${one}${ending}`)) as { bench: (report: BenchReport) => Promise<unknown> }
    const summary = await bench({ say })
    if (json) console.log(JSON.stringify(name === 'all' ? { [one]: summary } : summary))
  }
}
