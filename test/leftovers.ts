/** The leftovers of a test run: processes of isolated jobs that live on when all tests are over. A run that leaves any has failed. */

import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** What the processes of this run know it by: those of isolated jobs are handed all variables of this prefix. */
const mark = 'MILLRACE_TEST_RUN'
/** What was killed at the very end is gone by then. */
const withinMs = 10_000

/** Vitest calls it before the first test, and what it returns after the last. */
export default function begin(): () => Promise<void> {
  const run = randomUUID()
  process.env[mark] = run
  return async () => {
    const until = performance.now() + withinMs
    while (leftBy(run).length > 0 && performance.now() < until) await delay(100)
    const left = leftBy(run)
    if (left.length > 0) throw new Error(`processes of isolated jobs outlive the tests: ${left.join(', ')}`)
  }
}

/** Pids, as Linux tells them; none elsewhere. */
function leftBy(run: string): string[] {
  return pids().filter((pid) => {
    const isJob = read(`/proc/${pid}/cmdline`).includes('process-child-entry')
    return isJob && read(`/proc/${pid}/environ`).includes(`${mark}=${run}`)
  })
}

function pids(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

/** Empty where it is gone, or none of ours. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
