/**
 * Proof of the tests of decisions: Stryker changes the selectors and the rules of all stores in small ways, one at a
 * time, and runs the tests that reach the changed line. Caveat: some changes change nothing that can be seen, such as a
 * short cut that is taken or not. Those that no test notices are listed.
 */

import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { Stryker } from '@stryker-mutator/core'
import type { Report, Summary } from './report.js'

type Options = ConstructorParameters<typeof Stryker>[0]
type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

/** Nothing is drawn. */
export const seed = 0

const root = join(import.meta.dirname, '..')
/** The least share of mutants that the tests must notice, in percent. */
const rooms = [
  { room: 'src/selectors', least: 95 },
  { room: 'src/stores/rules', least: 90 },
]

const options = {
  mutate: rooms.map(({ room }) => `${room}/**/*.ts`),
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'proofs/mutation.config.ts' },
  coverageAnalysis: 'perTest',
  // What is made once, when a module is loaded, would need a process for each mutant.
  ignoreStatic: true,
  ignorePatterns: ['bench', 'dashboard', 'docs', 'examples', 'site'],
  tempDirName: join(tmpdir(), 'millrace-mutants'),
  timeoutMS: 10_000,
  concurrency: 1,
  reporters: [],
  logLevel: 'off',
} as Options

export async function prove(report: Report): Promise<Summary> {
  process.chdir(root)
  const mutants = await new Stryker(options).runMutationTest()
  const summary: Record<string, unknown> = {}
  for (const { room, least } of rooms) {
    const own = mutants.filter(({ fileName, status }) => inRoom(fileName, room) && judged.has(status))
    const unnoticed = own.filter(({ status }) => !noticed.has(status))
    for (const mutant of unnoticed) report.say(`unnoticed: ${wordsFor(mutant)}`)
    const share = 100 * (1 - unnoticed.length / own.length)
    report.claim(
      `${room}: the tests notice at least ${least} % of ${own.length} mutants (${share.toFixed(1)} %)`,
      share >= least,
    )
    summary[room] = { mutants: own.length, unnoticed: unnoticed.length }
  }
  return summary
}

const noticed = new Set<MutantResult['status']>(['Killed', 'Timeout'])
const judged = new Set<MutantResult['status']>([...noticed, 'Survived', 'NoCoverage'])

function inRoom(fileName: string, room: string): boolean {
  return relative(root, fileName).startsWith(`${room}/`)
}

function wordsFor({ fileName, location, replacement, status, mutatorName }: MutantResult): string {
  const how = status === 'NoCoverage' ? 'no test reaches it' : `as ${JSON.stringify(replacement ?? mutatorName)}`
  return `${relative(root, fileName)}:${location.start.line}:${location.start.column} ${how}`
}
