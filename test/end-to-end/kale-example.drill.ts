import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandProcess, type Ended, runProcess, runProcessJson } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'
import { type StrictSqs, strictSqs } from '../stores/sqs/strict-sqs.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')

/** A folder with the example, on this store or on its own. */
function example(store?: string) {
  const cwd = project({})
  cpSync(join(root, 'examples/kale'), cwd, { recursive: true })
  for (const name of ['zod', 'fauxqs', '@aws-sdk'])
    symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  const options = { cwd, ...(store !== undefined && { env: { MILLRACE_STORE: store } }) }
  const succeeds = async (ended: Promise<Ended>) => {
    const { code, stdout } = await ended
    expect(code).toBe(0)
    return stdout
  }
  return {
    program: (...args: string[]) => new CommandProcess(args, { ...options, script }),
    publish: () => succeeds(runProcess(['publish.ts'], { ...options, script })),
    command: (...args: string[]) => succeeds(runProcess(args, options)),
    worker: () => new CommandProcess('work --create-queues', options),
    stats: () =>
      runProcessJson<{ queues: { queue: string; weight: number; dead: number; ready: number }[] }>(['stats'], options),
  }
}

describe("Kale's example", { timeout: 60_000 }, () => {
  let sqs: StrictSqs
  beforeAll(async () => {
    sqs = await strictSqs()
  })
  afterAll(() => sqs.close())

  it('publishes, works, runs again after 60 and 120 seconds and not earlier, and buries', async () => {
    const { publish, worker, stats } = example(`sqs://us-west-2?endpoint=${sqs.endpoint}&poll=each`)
    const working = worker()
    await working.stdoutMatches(/started/)
    expect(await publish()).toBe('3 published\n')
    await working.stdoutMatches(/MyTask hello 42, app_data \{"environment":"test"\}\n/)
    await working.stdoutMatches(/(?:failed .*attempt 1, again in 1m\b[\s\S]*){2}/)
    sqs.advance(59_000)
    expect((await stats()).queues.map(({ ready }) => ready)).toEqual([0, 0, 0])
    sqs.advance(1_000)
    await working.stdoutMatches(/FailTask is done at run 2\n/)
    await working.stdoutMatches(/failed .*attempt 2, again in 2m\b/)
    sqs.advance(120_000)
    const { input } = await working.stdoutMatches(/FailTask is buried: run 3 has failed\n/)
    expect(input.match(/FailTask is done/g)).toHaveLength(1)
    working.kill('SIGTERM')
    expect(await working.end()).toMatchObject({ code: 0 })
    expect((await stats()).queues.map(({ queue, dead }) => [queue, dead])).toEqual([
      ['high_priority', 0],
      ['default', 0],
      ['low_priority', 1],
    ])
  })

  it('has the configuration that `import kale` writes from its settings', async () => {
    const { command } = example()
    const written = await command('import', 'kale', 'settings.py', '--out', '-')
    const own = readFileSync(join(root, 'examples/kale/millrace.config.ts'), 'utf8')
    const options = (text: string) => text.match(/^ {2}(?:namespace|queues|worker): [^\n]*?(?:'|\})(?=,)/gm)
    expect(options(written)).toHaveLength(3)
    expect(options(own)).toEqual(options(written))
  })

  it('has an emulator that listens only on this machine', async () => {
    const emulator = example().program('emulator.ts', '0')
    const [, port] = await emulator.stdoutMatches(/SQS is emulated at http:\/\/127\.0\.0\.1:(\d+)\n/)
    const { command } = example(`sqs://us-west-2?endpoint=http://127.0.0.1:${port}`)
    expect(await command('queues', 'create')).toMatch(/low_priority +low_priority +dlq-low_priority +made/)
  })
})
