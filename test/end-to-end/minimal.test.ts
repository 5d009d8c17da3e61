import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess, runProcess, runProcessJson } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'

describe('the minimal example', () => {
  it('enqueues a job, runs it in a worker process, and returns the result to its producer', async () => {
    const cwd = project({})
    cpSync(join(root, 'examples/minimal'), cwd, { recursive: true })
    symlinkSync(join(root, 'node_modules/zod'), join(cwd, 'node_modules/zod'))
    const worker = new CommandProcess('work --json', { cwd })
    await worker.events('worker.started')
    const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
    const producer = await runProcess(['enqueue.ts', 'Ada'], { cwd, script })
    expect(producer).toMatchObject({ code: 0, stderr: '' })
    expect(producer.stdout).toMatch(/^enqueued [0-9A-Z]{26}; .*\nHello, Ada!\n$/)
    const { totals } = await runProcessJson<{ totals: Record<string, number> }>(['stats'], { cwd })
    expect(totals).toMatchObject({ processed: 1, failed: 0, running: 0 })
    const refused = await runProcess(['enqueue', 'greet', '{"name":""}'], { cwd })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(/the input of a job of task 'greet' does not match its schema/)
    worker.kill('SIGTERM')
    expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })
  })
})
