/** Sealed jobs that run in processes of their own, which have the keys from their own configuration. */

import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../cli/command-in-process.js'
import { CommandProcess } from '../cli/command-process.js'
import { project } from '../cli/project.js'
import { newKey } from '../core/seal-keys.js'

const key = Buffer.from(newKey).toString('base64')
const secret = 'DE02120300000000202051'

const tasksFile = `
import { defineTask } from 'millrace'
export const pay = defineTask({
  name: 'pay',
  isolate: 'process',
  retry: { max: 1, backoff: () => 0 },
  run: async (input, ctx) => {
    if (ctx.lastCheckpoint === undefined) {
      await ctx.checkpoint({ done: input })
      throw new Error('not yet')
    }
    return { input, meta: ctx.job.meta, was: ctx.lastCheckpoint, argv: process.argv.join(' ') }
  },
})
`
const config = (seal: string) => `
import { millrace } from 'millrace'
import { pay } from './tasks.js'
export default millrace({
  store: process.env['MILLRACE_STORE'],
  queues: { video: {} },
  compress: { above: 200 },
  ${seal}
  tasks: [pay],
})
`
const sealing = "seal: { current: '2026-11', keys: { '2026-11': process.env['MILLRACE_SEAL_KEY'] } },"
const pay = defineTask({ name: 'pay' })
const render = defineTask({ name: 'render', queue: 'video' })

function scene(seal = sealing) {
  const files = { 'package.json': '{"type":"module"}', 'tasks.js': tasksFile, 'millrace.config.js': config(seal) }
  const folder = project(files)
  const store = `sqlite:${join(folder, 'jobs.db')}`
  const of = { cwd: folder, env: { MILLRACE_STORE: store, MILLRACE_SEAL_KEY: key } }
  const seals = { current: '2026-11', keys: { '2026-11': key } }
  const mill = millrace({ store, seal: seals, queues: { video: {} }, tasks: [pay, render] })
  onTestFinished(() => mill.close())
  return {
    mill,
    command: (...args: string[]) => new CommandProcess(args, of),
    show: (id: string, env = of.env) => run(['jobs', 'show', id], { cwd: folder, env }),
  }
}

describe('a sealed job in a process of its own', { timeout: 60_000 }, () => {
  it('has its input, meta and checkpoint, and its result is sealed again', async () => {
    const { mill, command } = scene()
    const worker = command('work', '--json')
    const input = { iban: secret, lines: 'a'.repeat(1_000) }
    const job = await mill.enqueue(pay, input, { meta: { for: secret } })
    const result = await job.result({ timeout: '30s' })

    expect(result).toMatchObject({ input, meta: { for: secret }, was: { done: input } })
    expect((result as { argv: string }).argv).not.toContain(key)
    worker.kill('SIGTERM')
    const { stdout, stderr } = await worker.ended
    expect(`${stdout}${stderr}`).not.toContain(key)
    expect(`${stdout}${stderr}`).not.toContain(secret)
  })

  it('is shown with the id of its key by a mill that lacks the key', async () => {
    const { mill, show } = scene()
    const { id } = await mill.enqueue(pay, secret)
    const bare = scene('')

    expect((await show(id)).stdout).toContain(secret)
    const other = await bare.mill.enqueue(pay, secret)
    expect((await bare.show(other.id)).stdout).toMatch(
      /\nerror {6}input was sealed by key '2026-11', this mill has no keys\n/,
    )
  })

  it('is passed to a command, but its keys are not', async () => {
    const { mill, command } = scene()
    command('exec', 'video', '--json', '--', 'sh', '-c', 'cat; echo " $MILLRACE_SEAL_KEY"')
    const job = await mill.enqueue(render, secret)

    expect(await job.result({ timeout: '30s' })).toBe(`"${secret}"\n withheld:by-millrace-exec\n`)
  })
})
