import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startTicksIn } from '#src/core/platform/proc-text.js'
import { isListenerId } from '#src/core/values/ids.js'
import { identityIn, identityText, nextWorkerId, processIdentity } from '#src/runtime/process/process-identity.js'
import { ageMs, isDead, isNeighbour, isOver } from '#src/runtime/process/process-peers.js'
import { Stillness, switchesOf } from '#src/runtime/process/stillness.js'
import { poll } from '#src/store-testing/servers/poll.js'

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

describe('the stillness of a process', () => {
  it('grows while its threads do not run, and restarts when one has run', () => {
    const stillness = new Stillness(0)
    expect(stillness.look(500, 7)).toBe(0)
    expect(stillness.look(1_000, 7)).toBe(500)
    expect(stillness.look(1_500, 7)).toBe(1_000)
    expect(stillness.look(2_000, 8)).toBe(0)
    expect(stillness.look(2_500, 8)).toBe(500)
  })

  it('is not assumed if the system gives no answer', () => {
    const stillness = new Stillness(0)
    for (let now = 500; now < 60_000; now += 500) expect(stillness.look(now, undefined)).toBe(0)
  })

  it('counts no time in which nobody observed it', () => {
    const stillness = new Stillness(0)
    stillness.look(500, 7)
    expect(stillness.look(3_600_500, 7)).toBe(1_000)
  })
})

it('a stopped process has no context switches, and a continued one has', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 5)'], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const pid = child.pid!
  const changes = async () => {
    const before = switchesOf(pid)
    return poll(async () => (switchesOf(pid) === before ? undefined : true), {
      what: 'it is switched',
      withinMs: 5_000,
    })
  }
  await changes()
  child.kill('SIGSTOP')
  // Its threads stop one after the other; one that runs is switched every 5 ms.
  let last = switchesOf(pid)
  let equal = 0
  const stands = async () => {
    const now = switchesOf(pid)
    equal = now === last ? equal + 1 : 0
    last = now
    return equal === 10 || undefined
  }
  await poll(stands, { what: 'it stands still for 10 looks', withinMs: 10_000 })
  child.kill('SIGCONT')
  await changes()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(switchesOf(pid)).toBeUndefined()
})
