import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startTicksIn } from '#src/core/platform/proc-text.js'
import { identityText, processIdentity } from '#src/runtime/process/process-identity.js'

it('a process differs from another one in its identity, which stays the same while it lives', async () => {
  const own = processIdentity()
  expect(own).toEqual(processIdentity())
  expect(own.pid).toBe(process.pid)
  expect(own.ticks).toBeGreaterThan(0)

  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'])
  await once(child, 'spawn')
  expect(startTicksIn(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))).toBeGreaterThanOrEqual(own.ticks)
  child.kill()
  await once(child, 'exit')
})

it('a process takes its host from MILLRACE_HOST if it is set', () => {
  process.env['MILLRACE_HOST'] = 'mill-7'
  try {
    expect(identityText(processIdentity())).toMatch(/^mill-7\//)
  } finally {
    delete process.env['MILLRACE_HOST']
  }
})
