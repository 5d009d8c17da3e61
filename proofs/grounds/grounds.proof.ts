/**
 * Proof of the grounds: the tests on every server, Node, file system and TypeScript available here. It writes the page
 * `docs/platforms.md`.
 */

import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { arch, cpus, release, type } from 'node:os'
import { join } from 'node:path'
import type { Report, Summary } from '../report.js'
import { groundRun } from './ground-run.js'
import { type MissingGround, platformsPage } from './platforms-page.js'
import { type TestGround, testGrounds, untested } from './test-grounds.js'

/** `GROUNDS`: the one part that is run, such as `PostgreSQL`. The page is written by a run of all. */
const { GROUNDS: only } = process.env
export const part = only?.toLowerCase()
/** Each test has a seed of its own. */
export const seed = 0

const root = join(import.meta.dirname, '../..')

export async function prove(report: Report): Promise<Summary> {
  const startedAt = performance.now()
  const grounds = []
  const asked = testGrounds.filter(({ part }) => only === undefined || part === only)
  for (const ground of asked) grounds.push(await judged(ground, report))
  for (const [ground, why] of untested) report.say(`untested: ${ground}: ${why}`)
  const facts = {
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim(),
    machine: `${type()} ${release()} on ${arch()}, ${cpus().length} cores, Node ${process.versions.node}`,
    minutes: Math.ceil((performance.now() - startedAt) / 60_000),
  }
  if (only === undefined) writeFileSync(join(root, 'docs/platforms.md'), platformsPage(grounds, facts))
  return { grounds: grounds.length, missing: grounds.filter((one) => 'why' in one).length, minutes: facts.minutes }
}

/** Runs one ground after the other, so that each has the machine for itself. */
async function judged(ground: TestGround, report: Report) {
  report.say(`— ${ground.part}: ${ground.name}: ${ground.files.join(' ')}`)
  const run = await groundRun(ground).catch((error: Error): MissingGround => ({ ground, why: lastLine(error) }))
  if ('why' in run) {
    report.say(`not to be had here: ${run.why}`)
    return run
  }
  const { files, passed, failed, skipped, troubles } = run.outcome
  for (const [reason, tests] of Object.entries(skipped)) report.say(`skipped: ${tests}, as ${reason}`)
  for (const what of [...failed, ...troubles]) report.say(`failed: ${what}`)
  const isSound = passed > 0 && failed.length + troubles.length === 0
  report.claim(`${run.version}: ${passed} tests of ${files} files pass`, isSound)
  return run
}

function lastLine({ message }: Error): string {
  return message.trim().split('\n').at(-1)!
}
