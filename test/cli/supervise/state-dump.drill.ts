import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project } from '../project.js'

const evil = 'evil\u001b[31m'

describe('the state dump', () => {
  it.each(['SIGUSR2', 'SIGTTIN'] as const)(
    'on %s shows every process and what every slot does, on stderr',
    async (signal) => {
      const cwd = project()
      const gate = join(cwd, 'gate')
      await runJson(['enqueue', 'hold', JSON.stringify(gate), '--id', evil], { cwd })
      const command = new CommandProcess('work --processes 2 --grace 1s', { cwd })
      const [, pids] = await command.stdoutMatches(/supervises 2 processes: (.*)\n/)
      const [first, second] = pids!.split(', ')
      await command.stdoutMatches(/test\.running/)
      command.kill(signal)
      await command.stderrMatches(/PROGRESS\n.* running +\S+\n/)
      const { input: stderr } = await command.stderrMatches(
        /worker \S+ running, 0 of 10 slots busy, 0 reports unsettled, the store answered /,
      )
      expect(stderr).toMatch(new RegExp(`${command.pid} supervises 2 processes, up for .*\n +PID +STATE +UP +RESTARTS`))
      for (const pid of [first, second])
        expect(stderr).toMatch(new RegExp(`\n +${pid} +running +\\S+ +0 +\\S+ ago +[01] of 10 +\\S+\n`))
      expect(stderr).toMatch(
        /\n {2}QUEUE +TASK +ID +ATTEMPT +PHASE +FOR +PROGRESS\n {2}slow +hold +evil\\u001b\[31m +1 +running +\S+\n/,
      )
      writeFileSync(gate, '')
      command.kill('SIGTERM')
      expect((await command.end()).code).toBe(0)
    },
  )

  it('shows a single process on the same signal', async () => {
    const command = new CommandProcess('work --json --grace 1s', { cwd: project() })
    const [{ pids } = {}] = await command.events('processes.started')
    const [pid] = pids as [number]
    process.kill(pid, 'SIGUSR2')
    expect(await command.events('state.dumped')).toMatchObject([{ pid, state: 'running', concurrency: 10, jobs: [] }])
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('shows the last report of a process with a blocked event loop, and how long it has been silent', async () => {
    const cwd = project()
    await runJson('enqueue spin {"afterMs":1500,"forMs":60000} --id turns', { cwd })
    const command = new CommandProcess('work --json --processes 2 --grace 1s', { cwd })
    const [{ pid: blocked } = {}] = await command.events('test.spinning')
    const [{ pids } = {}] = await command.events('processes.started')
    const free = (pids as number[]).find((pid) => pid !== blocked)
    command.kill('SIGUSR2')
    const dumped = await command.events('state.dumped', 3)
    expect(dumped).toMatchObject([
      { pid: command.pid, processes: [{ restarts: 0 }, { restarts: 0 }] },
      { pid: free, state: 'running', jobs: [] },
      {
        pid: command.pid,
        child: blocked,
        state: 'running',
        running: 1,
        oldest: [{ queue: 'default', task: 'spin', id: 'turns' }],
      },
    ])
    expect(dumped[2]!['blockedMs']).toBeGreaterThanOrEqual(1_000)
    for (let i = 0; i < 2; i += 1) command.kill('SIGTERM')
    // Of the process that has answered nothing more is said.
    expect((await command.end()).stdout.match(/state\.dumped/g)).toHaveLength(3)
  })

  it('says the same in text form', async () => {
    const cwd = project()
    await runJson(['enqueue', 'spin', '{"afterMs":1500,"forMs":60000}', '--id', evil], { cwd })
    const command = new CommandProcess('work --grace 1s', { cwd })
    await command.stdoutMatches(/test\.spinning/)
    command.kill('SIGTTIN')
    await command.stderrMatches(
      /process \d+ does not answer: its event loop has been blocked, or it has been stopped, for \d+s; its last report, which may be older than what it does now, said:\n {2}worker \S+ running, 1 of 10 slots busy, the store answered \S+ ago\n {2}default spin evil\\u001b\[31m, for \S+ then\n/,
    )
    for (let i = 0; i < 2; i += 1) command.kill('SIGTERM')
    await command.end()
  })
})
