import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { uptime } from 'node:os'
import { describe, expect, it } from 'vitest'
import { processIdentity } from '#src/runtime/process/process-identity.js'
import { ageMs, isDead, isNeighbour, isOver } from '#src/runtime/process/process-peers.js'

const me = processIdentity()

describe('a peer', () => {
  it('is a neighbour only if host, boot and pid namespace are known and equal', () => {
    expect(isNeighbour(me, me)).toBe(true)
    for (const other of [{ host: 'other' }, { boot: 'other' }, { pidns: 'other' }])
      expect(isNeighbour({ ...me, ...other }, me)).toBe(false)
    expect(isNeighbour({ ...me, boot: '' }, { ...me, boot: '' })).toBe(false)
    expect(isNeighbour({ ...me, pidns: '' }, { ...me, pidns: '' })).toBe(false)
  })

  it('is alive while its process is, and a later process with its number is another one', () => {
    expect(isDead(me)).toBe(false)
    expect(isDead({ ...me, ticks: me.ticks - 1 })).toBe(true)
    expect(isDead({ pid: 1, ticks: -1 })).toBe(true)
  })

  it('is dead if its process has been killed', async () => {
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const pid = child.pid!
    child.kill('SIGKILL')
    await once(child, 'exit')

    expect(isDead({ pid, ticks: 0 })).toBe(true)
  })

  it('is not taken for dead if the system gives no answer, or half of one', () => {
    const running = `4711 (node) R ${Array.from({ length: 49 }, (_, i) => i).join(' ')}\n`
    expect(isOver(running, 18)).toBe(false)
    expect(isOver(running, 17)).toBe(true)
    expect(isOver(running.replace(') R', ') Z'), 18)).toBe(true)
    for (let end = 0; end < running.length; end += 1) expect(isOver(running.slice(0, end), 18), `${end}`).toBe(false)
    expect(isDead({ ...me, ticks: 0 })).toBe(false)
  })

  it('has the age of its process', async () => {
    const before = process.uptime()
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const after = process.uptime()
    const started = processIdentity(child.pid)
    child.kill('SIGKILL')
    await once(child, 'exit')

    // On a busy machine Node begins to count its own life well after the kernel does.
    const unseenMs = uptime() * 1_000 - me.ticks * 10 - process.uptime() * 1_000
    const startedMs = process.uptime() * 1_000 - ageMs(started, me) - unseenMs
    expect(startedMs).toBeGreaterThan(before * 1_000 - 100)
    expect(startedMs).toBeLessThan(after * 1_000 + 100)
  })
})
