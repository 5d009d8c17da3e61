/**
 * A test run: where its temporary files are, and what it must not leave. If processes of isolated jobs live on when all tests
 * are over, it has failed.
 */

import { randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { freemem } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

/** What the processes of this run know it by: those of isolated jobs are handed all variables of this prefix. */
const mark = 'MILLRACE_TEST_RUN'
/** What was killed at the very end is gone by then. */
const withinMs = 10_000

/** A folder whose files are in memory. */
const memory = '/dev/shm'
/** A run takes less than a quarter of it. */
const leastMemory = 4 * 2 ** 30

/** Vitest calls it before the first test, and what it returns after the last. */
export default function begin(): () => Promise<void> {
  const run = randomUUID()
  process.env[mark] = run
  const folder = folderInMemory()
  if (folder !== undefined) process.env['TMPDIR'] = folder
  return async () => {
    const until = performance.now() + withinMs
    while (leftBy(run).length > 0 && performance.now() < until) await delay(100)
    const left = leftBy(run)
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    if (left.length > 0) throw new Error(`processes of isolated jobs outlive the tests: ${left.join(', ')}`)
  }
}

/**
 * What tests store need not outlive the machine, and each commit would wait for a disk. Undefined where memory is scarce, and where
 * TMPDIR says another folder.
 */
function folderInMemory(): string | undefined {
  if (process.env['TMPDIR'] !== undefined) return undefined
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    if (Math.min(bavail * bsize, freemem()) < leastMemory) return undefined
  } catch {
    return undefined
  }
  // A run that was killed could not remove its own.
  for (const name of readdirSync(memory)) {
    const [, pid] = /^millrace-tests-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(`${memory}/${name}`, { recursive: true, force: true })
  }
  const folder = mkdtempSync(`${memory}/millrace-tests-${process.pid}-`)
  // Servers that run as somebody else have their folders in it.
  chmodSync(folder, 0o1777)
  return folder
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
