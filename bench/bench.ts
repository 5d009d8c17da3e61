/** `npm run bench -- <name> [--json]`: runs one benchmark. Benchmarks are programs that print ratios, never tests. */

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

if (name === undefined || !names.includes(name)) {
  console.error(`usage: npm run bench -- <${names.join(' | ')}> [--json]`)
  process.exitCode = 2
} else {
  const { bench } = (await import(`./${name}${ending}`)) as { bench: (report: BenchReport) => Promise<unknown> }
  // With --json the words go to stderr, so that the figures are all there is on stdout.
  const summary = await bench({ say: (line) => (json ? console.error(line) : console.log(line)) })
  if (json) console.log(JSON.stringify(summary))
}
