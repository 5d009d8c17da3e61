import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess, runProcess, runProcessJson } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')

function example() {
  const cwd = project({})
  cpSync(join(root, 'examples/blueque'), cwd, { recursive: true })
  symlinkSync(join(root, 'node_modules/jiti'), join(cwd, 'node_modules/jiti'))
  return {
    listener: () => new CommandProcess('listener.ts', { cwd, script }),
    enqueue: async (...args: string[]) => (await runProcess(['enqueue.ts', ...args], { cwd, script })).stdout.trim(),
    show: (id: string) => runProcessJson<Record<string, unknown>>(['jobs', 'show', 'some.queue', id], { cwd }),
  }
}

describe("the example of Blueque's listener and processor", { timeout: 60_000 }, () => {
  it('runs a task in a process of its own, which outlives its listener and completes it', async () => {
    const { listener, enqueue, show } = example()
    const first = listener()
    await first.stdoutMatches(/listens/)
    const id = await enqueue('{"frames":80}')
    const [, pid] = await first.stdoutMatches(new RegExp(`task ${id} runs in process (\\d+)`))
    first.child.kill('SIGTERM')
    await first.stdoutMatches(/has ended/)
    const running = await show(id)
    expect(running).toMatchObject({ state: 'running', pid: Number(pid), attempt: 1 })

    const { stdout, stderr, code } = await first.end()
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    expect(stdout).toMatch(new RegExp(`has ended\\n(?:.|\\n)*task ${id} is complete: ok\\n$`))
    expect(await show(id)).toMatchObject({ state: 'completed', result: { frames: 80 }, attempt: 1, crashes: 0 })
  })

  it('runs one task after the other, and fails a task if its processor fails or dies', async () => {
    const { listener, enqueue, show } = example()
    const one = listener()
    await one.stdoutMatches(/listens/)
    const broken = await enqueue('{"frames":5,"failsAt":1}')
    await one.stdoutMatches(new RegExp(`task ${broken} has failed: ok`))
    expect(await show(broken)).toMatchObject({
      state: 'dead',
      reason: 'no-retries',
      error: expect.stringMatching(/frame 1 is broken/),
    })

    const killed = await enqueue('{"frames":600}')
    const [, pid] = await one.stdoutMatches(new RegExp(`task ${killed} runs in process (\\d+)`))
    const next = await enqueue('{"frames":1}')
    process.kill(Number(pid), 'SIGKILL')
    await one.stdoutMatches(new RegExp(`task ${next} is complete: ok`))
    expect(await show(killed)).toMatchObject({ state: 'dead', error: expect.stringMatching(/ended by SIGKILL/) })
    one.child.kill('SIGTERM')
    expect(await one.end()).toMatchObject({ code: 0, stderr: '' })
  })
})
