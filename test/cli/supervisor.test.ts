/** The supervisor at its daily work; `supervisor.drill.ts` has all that may go wrong with a process. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runJson } from './command-in-process.js'
import { project } from './project.js'
import { pidsOf, working } from './supervised-command.js'

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
