/** The tutorial: its pages are followed one after the other, in a project as `millrace init` writes it. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import ts from 'typescript'
import { describe, expect, it, onTestFinished } from 'vitest'
import { scaffoldFiles } from '#src/cli/commands/scaffold.js'
import { tutorial } from '../../site/sidebar.js'
import { CommandProcess, runProcess, runProcessJson } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'
import { Document } from './document.js'

const scaffold: Record<string, string> = {
  'package.json': '{"type":"module"}',
  ...scaffoldFiles({
    name: 'shop',
    version: '0.1.0',
    store: 'sqlite:.millrace/jobs.db',
    storePackages: {},
    isPnpmRoot: false,
  }),
}
const pages = tutorial.map(({ link }) => new Document(`docs${link}.md`))
const filesOf = ({ blocks }: Document) =>
  Object.fromEntries(blocks.flatMap(({ file, text }) => (file === undefined ? [] : [[file, text]])))

/** The files of a reader who has come to the end of this step, counted from 1. */
function filesAfter(step: number): Record<string, string> {
  const files = Object.assign({}, scaffold, ...pages.slice(0, step).map(filesOf)) as Record<string, string>
  // The lines that steps 4 and 5 tell the reader to add.
  const routes = { 'order-states.ts': 'orderStates', 'partner.ts': 'partner' }
  for (const [file, name] of Object.entries(routes))
    if (file in files)
      files['server.ts'] = `import { ${name} } from './${file}'\n${files['server.ts']!.replace(
        'const server =',
        `app.route('/', ${name})\n$&`,
      )}`
  return files
}

const modules = ['hono', '@hono/node-server', 'jiti', '@types/node']

/** The folder of the reader after this step. */
function shopAfter(step: number): string {
  const cwd = project(filesAfter(step))
  for (const name of modules) {
    mkdirSync(dirname(join(cwd, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  }
  return cwd
}

/** Runs `npx jiti <file>` until the end of the test. What it prints comes line by line. */
function jiti(cwd: string, ...args: string[]): { child: ChildProcess; lines: AsyncIterator<string> } {
  const env = { ...process.env, PORT: '0' }
  const program = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
  const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

async function served(cwd: string) {
  const { lines } = jiti(cwd, 'server.ts')
  return { url: String((await lines.next()).value), lines }
}

const send = async (method: string, url: string, body: object) => {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, { method, headers, body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

const enqueue = (cwd: string, ...args: string[]) => runProcess(['enqueue', ...args], { cwd })

describe('the tutorial', () => {
  it('compiles after every step, with the tsconfig of the project', { timeout: 120_000 }, () => {
    const roots = pages.flatMap((_page, i) => {
      const cwd = shopAfter(i + 1)
      return Object.keys(filesAfter(i + 1)).flatMap((file) => (file.endsWith('.ts') ? [join(cwd, file)] : []))
    })
    const { config } = ts.parseConfigFileTextToJson('tsconfig.json', scaffold['tsconfig.json']!)
    const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
    const program = ts.createProgram(roots, options)
    const complaints = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })

    expect(complaints).toEqual([])
    expect(roots.length).toBeGreaterThan(30)
  })

  it('begins with the task that `millrace init` writes', () => {
    const [, ...shown] = filesOf(pages[0]!)['tasks/send-email.ts']!.split('\n')

    expect(`${shown.join('\n')}\n`).toBe(scaffold['tasks/send-email.ts'])
  })

  it('accepts an order that a worker confirms, and buries the mail without an address', {
    timeout: 90_000,
  }, async () => {
    const cwd = shopAfter(2)
    const { url } = await served(cwd)
    const { status, body } = await send('POST', `${url}/orders`, { email: 'ada@example.com' })
    const { queues } = await runProcessJson<{ queues: { jobs: { id: string }[] }[] }>(['jobs', 'list'], { cwd })
    const worker = new CommandProcess('work', { cwd })
    await worker.stdoutMatches(/"Your order \S+" goes to ada@example\.com, attempt 1/)
    await enqueue(cwd, 'send-email', '{"to":"nobody","subject":"Hello"}', '--id', 'no-address')
    const morgue = async () => (await runProcess(['morgue', 'show', 'default', 'no-address'], { cwd })).stdout
    await expect.poll(morgue, { timeout: 30_000 }).toContain("'nobody' is no address")
    worker.kill('SIGTERM')

    expect([status, body['job']]).toEqual([202, `confirm-${body['orderId']}`])
    expect(queues.flatMap(({ jobs }) => jobs.map(({ id }) => id))).toEqual([body['job']])
    expect((await worker.end()).code).toBe(0)
  })

  it('runs a nightly report at once, and shows its next tick', { timeout: 90_000 }, async () => {
    const cwd = shopAfter(3)
    await runProcess(['schedules', 'run', 'nightly'], { cwd })
    const worker = new CommandProcess('work', { cwd })
    await worker.stdoutMatches(/the report of Zurich, by job nightly@/)
    const listed = await runProcess(['schedules', 'list'], { cwd })
    worker.kill('SIGTERM')

    expect(listed.stdout).toMatch(/nightly/)
    expect((await worker.end()).code).toBe(0)
  })

  it('delivers the states of an order in their order', { timeout: 90_000 }, async () => {
    const cwd = shopAfter(4)
    const { url } = await served(cwd)
    const outcomes: unknown[] = []
    for (const [rev, state] of [
      [1, 'placed'],
      [3, 'sent'],
      [2, 'paid'],
    ])
      outcomes.push((await send('PUT', `${url}/orders/A-1/states/${rev}`, { status: state })).body['outcome'])
    const worker = new CommandProcess('work', { cwd })
    await worker.stdoutMatches(/^A-1: placed, paid, sent$/m)
    worker.kill('SIGTERM')

    expect(outcomes).toEqual(['added', 'merged', 'merged'])
    expect((await worker.end()).code).toBe(0)
  })

  it('calls a partner five times in ten seconds', { timeout: 90_000 }, async () => {
    const cwd = shopAfter(5)
    const { url, lines } = await served(cwd)
    const worker = new CommandProcess('work', { cwd })
    const producer = jiti(cwd, 'call-partners.ts', `${url}/partner`)
    expect((await producer.lines.next()).value).toBe('12 calls are enqueued')
    const calls: number[] = []
    while (calls.length < 6) calls.push(Date.parse(String((await lines.next()).value).split(' ')[0]!))
    worker.kill('SIGTERM')

    // A little less: the way to the partner differs from call to call.
    expect(calls[5]! - calls[0]!).toBeGreaterThan(9_500)
    expect((await worker.end()).code).toBe(0)
  })

  it('goes on with an export whose worker was stopped, in the same process', { timeout: 90_000 }, async () => {
    const cwd = shopAfter(6)
    await enqueue(cwd, 'export-orders', '{"rows":40}', '--id', 'export-1')
    const shown = () => runProcessJson<{ pid?: number; state: string }>(['jobs', 'show', 'export-1'], { cwd })
    const first = new CommandProcess('work', { cwd })
    await expect.poll(async () => (await shown()).pid, { timeout: 30_000 }).toBeGreaterThan(0)
    const { pid } = await shown()
    first.kill('SIGTERM')
    expect((await first.end()).code).toBe(0)
    const second = new CommandProcess('work', { cwd })
    await expect.poll(async () => (await shown()).state, { timeout: 40_000 }).toBe('completed')
    const after = await shown()
    second.kill('SIGTERM')

    expect(after.pid).toBe(pid)
    expect((await second.end()).code).toBe(0)
  })
})
