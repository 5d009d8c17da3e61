import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Stillness, switchesOf } from '#src/runtime/process/stillness.js'
import { poll } from '#src/store-testing/servers/poll.js'

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
