import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AwakeTime, deathsInARow, restartDelayMs } from '#src/cli/supervise/supervisor.js'
import { runJson } from '../command-in-process.js'
import { project } from '../project.js'
import { pidsOf, working } from './supervised-command.js'

/** The supervisor at its daily work; `supervisor.drill.ts` has all that may go wrong with a process. */

describe('a worker process that dies', () => {
  it('by a signal is replaced, the others go on, and a later stop exits with 0', async () => {
    const cwd = project()
    const { command, pids } = await working(cwd, ['--processes', '2'])
    process.kill(pids[0]!, 'SIGKILL')
    const [exited] = await command.events('process.exited')
    expect(exited).toMatchObject({ child: pids[0], code: 137, signal: 'SIGKILL', running: 1, restartMs: 0 })
    const successor = pidsOf(await command.events('worker.started', 3))[2]
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
    expect(pidsOf(await command.events('worker.stopped', 2)).sort()).toEqual([pids[1], successor].sort())
  })

  it('gets one stop signal, even if a service manager signals every process of the unit', async () => {
    const cwd = project()
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    const { command, pids } = await working(cwd)
    await command.events('test.running')
    for (const pid of [pids[0]!, command.pid]) process.kill(pid, 'SIGTERM')
    await command.events('processes.stopping')
    await command.events('worker.stopping')
    process.kill(pids[0]!, 'SIGTERM')
    writeFileSync(gate, '')

    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
    expect(await command.events('worker.stopped')).toMatchObject([{ completed: 1 }])
  })
})

describe('the restart delay', () => {
  it('is 0 after the first death, then 250 ms, doubling to 30 s', () => {
    const delays = [1, 2, 3, 4, 8, 9, 10, 2_000].map((deaths) => restartDelayMs(deaths, () => 0))
    expect(delays).toEqual([0, 250, 500, 1_000, 16_000, 30_000, 30_000, 30_000])
  })

  it('is shortened by up to half at random', () => {
    expect([0.5, 0.999_999].map((random) => restartDelayMs(5, () => random))).toEqual([1_500, 1_000])
  })

  it('forgets the deaths before a process that lived for a minute', () => {
    expect([deathsInARow(0, 5), deathsInARow(7, 59_999), deathsInARow(7, 60_000)]).toEqual([1, 8, 1])
  })
})

describe('awake time', () => {
  it('advances with the clock while it ticks', () => {
    const watched = new AwakeTime(10_000)
    for (const now of [10_500, 11_000, 11_900]) watched.tick(now)
    expect(watched.ms).toBe(1_900)
  })

  it('stands still while the supervisor is stopped', () => {
    const watched = new AwakeTime(0)
    for (const now of [500, 3_600_500, 3_601_000]) watched.tick(now)
    expect(watched.ms).toBe(500 + 1_000 + 500)
  })
})
