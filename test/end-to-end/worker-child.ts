/** A worker child: a process of a test whose program works on a real store until its input ends. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import { onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

/** Runs the program, which finds `store` in TEST_STORE; resolves when it has printed something. Killed when the test ends. */
export async function workerChild(program: string, store: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { ...process.env, TEST_STORE: store },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout!, 'data')
  return child
}

/** The address of a store of its own, gone when the test ends. */
export async function storeAddress(kind: 'sqlite' | 'redis'): Promise<string> {
  if (kind === 'redis') {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    return redis.url
  }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-end-to-end-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'jobs.db')}`
}
