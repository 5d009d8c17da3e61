import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startTicksIn } from '#src/core/platform/proc-text.js'
import { isListenerId } from '#src/core/values/ids.js'
import { identityIn, identityText, nextWorkerId, processIdentity } from '#src/runtime/process/process-identity.js'

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

const here = processIdentity()

it('worker ids name their process, whether they are listeners, and nothing that a clone of the machine would repeat', () => {
  const ids = [nextWorkerId(here), nextWorkerId(here), nextWorkerId(here, true)]
  const [first, second] = ids.map((id) => /-([\da-f]{12})$/.exec(id)?.[1])
  expect(first).toBeDefined()
  expect(first).not.toBe(second)
  for (const id of ids) expect(identityIn(id, here)).toEqual({ pid: here.pid, ticks: here.ticks })
  expect(ids.map(isListenerId)).toEqual([false, false, true])
  expect(identityIn(nextWorkerId({ ...here, boot: 'another' }), here)).toBeUndefined()
})

it('worker ids of an older version can be read', () => {
  const [place] = nextWorkerId(here).split(`${here.pid}/`)
  for (const end of ['1', 't3-1']) {
    const id = `${place}${here.pid}/${here.ticks}/${end}`
    expect(identityIn(id, here)).toEqual({ pid: here.pid, ticks: here.ticks })
    expect(isListenerId(id)).toBe(false)
  }
})
