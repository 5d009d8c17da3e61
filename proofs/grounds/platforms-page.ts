/** The page of platforms: what the tests ran on, and with what outcome, in Markdown. Pure. */

import type { GroundRun } from './ground-run.js'
import { type GroundPart, type TestGround, untested } from './test-grounds.js'

/** A ground whose server, Node, volume or TypeScript is not to be had here, with the reason. */
export interface MissingGround {
  readonly ground: TestGround
  readonly why: string
}

/** When, and on what, all of it ran. */
export interface RunFacts {
  readonly date: string
  readonly commit: string
  /** The machine's own: what a ground leaves open. */
  readonly machine: string
  readonly minutes: number
}

type Row = readonly string[]

export function platformsPage(grounds: readonly (GroundRun | MissingGround)[], facts: RunFacts): string {
  const { date, commit, machine, minutes } = facts
  const parts = [...new Set(grounds.map(({ ground }) => ground.part))]
  return `${[
    '# Platforms',
    'What the tests ran on, and how they ended. [Versions and support](versions.md) says what is supported. A program runs\n' +
      'the tests and writes this page: do not edit it.',
    `Run on ${date}, at commit ${commit}, on ${machine}. What a row does not name is this machine's own.`,
    ...parts.flatMap((part) => section(part, grounds)),
    '## Skipped and failed tests',
    'A skipped test is a case of the contract about something that a store does not have, such as throttles on SQS. The file\n' +
      '`proofs/grounds/grounds.txt` in the repository names every reason and every failed test.',
    '## Untested',
    table([['ground', 'why'], ...untested]),
    '## Run it yourself',
    `\`npm run prove grounds\` takes ${minutes} minutes on two cores. It fetches servers from Debian and versions of Node and TypeScript from npm into\n` +
      '`node_modules/.cache`, so it needs both registries and Linux on x64. Mounting the file systems needs root. It exits with\n' +
      '1 if a test fails.',
  ].join('\n\n')}\n`
}

function section(part: GroundPart, grounds: readonly (GroundRun | MissingGround)[]): string[] {
  const own = grounds.filter(({ ground }) => ground.part === part)
  const lists = new Set(own.map(({ ground }) => ground.files.map((file) => `\`${file}\``).join(', ')))
  return [
    `## ${part}`,
    table([['ground', 'version', 'passed', 'failed', 'skipped'], ...own.map(row)]),
    `The tests that ran: ${[...lists].join('; or ')}.`,
  ]
}

function row(one: GroundRun | MissingGround): Row {
  const { name } = one.ground
  if ('why' in one) return [name, `not to be had: ${one.why}`, '–', '–', '–']
  const { passed, failed, skipped, troubles } = one.outcome
  const counts = [passed, failed.length + troubles.length, Object.values(skipped).reduce((sum, some) => sum + some, 0)]
  return [name, one.version, ...counts.map(String)]
}

function table(rows: readonly Row[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)))
  const line = (cells: Row) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [line(rows[0]!), rule, ...rows.slice(1).map(line)].join('\n')
}
