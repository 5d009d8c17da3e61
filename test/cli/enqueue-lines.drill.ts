import { createReadStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { run, runJson } from './command-in-process.js'
import { CommandProcess, runProcess } from './command-process.js'
import { project, projectFiles } from './project.js'

const ordered = `import { defineOrderedTask, defineTask, millrace } from 'millrace'
const number = { '~standard': { version: 1, vendor: 'test', validate: (value) =>
  typeof value === 'number' ? { value } : { issues: [{ message: 'must be a number' }] } } }
export default millrace({
  store: process.env['MILLRACE_STORE'] ?? 'sqlite:jobs.db',
  queues: { default: {}, low: {} },
  tasks: [
    defineTask({ name: 'count', input: number, run: async () => {} }),
    defineTask({ name: 'mail', run: async () => {} }),
    defineOrderedTask({ name: 'sync', run: async () => {} }),
  ],
})`
const files = { 'package.json': '{"type":"module"}', 'millrace.config.js': ordered }

interface Counts {
  readonly added: number
  readonly duplicate: number
  readonly nextLine: number
}
interface Stats {
  readonly queues: readonly { readonly queue: string; readonly length: number }[]
}

const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('')
const waiting = async (cwd: string) =>
  (await runJson<Stats>('stats', { cwd })).queues.map(({ queue, length }) => [queue, length])

describe('lines of standard input', () => {
  it('become one job each, and sending them again adds nothing', async () => {
    const cwd = project(files)
    const send = (input: string, ...args: string[]) =>
      runJson<Counts>(['enqueue', 'count', '-', ...args], { cwd, input })
    expect(await send(`${numbers(3_000)}\n\n`)).toEqual({
      ...{ task: 'count', added: 3_000, merged: 0, replaced: 0, duplicate: 0, skipped: 0, left: 0, nextLine: 3_001 },
    })
    expect(await send(numbers(3_010))).toMatchObject({ added: 10, duplicate: 3_000 })
    expect(await send(numbers(20), '--new-ids')).toMatchObject({ added: 20 })
    expect(await send(numbers(20), '--from-line', '11', '--queue', 'low')).toMatchObject({ added: 10, nextLine: 21 })
    expect(await waiting(cwd)).toEqual([
      ['default', 3_030],
      ['low', 10],
      ['sync', 0],
    ])
  })

  it('are reported by number if they are invalid, and nothing of their batch is enqueued', async () => {
    const cwd = project(files)
    const input = '1\n"two"\n3\n"four"\n'
    const { code, stdout, stderr } = await run('enqueue count -', { cwd, input })
    expect({ code, stdout }).toEqual({ code: 2, stdout: 'added 0 jobs\n' })
    expect(stderr).toMatch(
      /^millrace: line 2: .*must be a number.*\nmillrace: line 4: .*\nmillrace: 2 lines are wrong\. Nothing was enqueued\. Mend them, or leave such lines out with --skip-invalid\./,
    )
    const json = await run('enqueue count -', { cwd, input: '1\n{"to":\n' })
    expect(json.stderr).toMatch(/line 2: not JSON: /)
    expect(await waiting(cwd)).toMatchObject([['default', 0], {}, {}])
  })

  it('that are invalid are reported together with what was enqueued before them', async () => {
    const cwd = project(files)
    const command = new CommandProcess('enqueue count - --new-ids', {
      cwd,
      input: '1\n2\n',
      moreInput: true,
    })
    await until(async () => (await waiting(cwd))[0]![1] === 2)
    command.child.stdin!.end('"three"\n')
    const { code, stdout, stderr } = await command.end()
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'added 2 jobs\n' })
    expect(stderr).toMatch(
      /line 3: .*\n.*Every line before line 3 is enqueued, or was left out\. .*\. Go on there with --from-line 3: lines before it would be added again\.\n$/,
    )
  })

  it('that are invalid are left out with --skip-invalid and reported, and the exit code is 1', async () => {
    const cwd = project(files)
    const input = '1\n"two"\n{\n4\n'
    const { code, stdout, stderr } = await run('enqueue count - --skip-invalid', { cwd, input })
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'added 2 jobs; left out 2 wrong lines\n' })
    expect(stderr).toMatch(/^millrace: left out line 3: not JSON.*\nmillrace: left out line 2: .*must be a number.*\n$/)
  })

  it('are stored to the end of the current batch after Ctrl-C; sending them again adds the rest', async () => {
    const cwd = project(files)
    const all = numbers(5_000)
    const first = all.slice(0, all.indexOf('\n2000\n') + 1)
    const command = new CommandProcess('enqueue count -', { cwd, input: `${first}20`, moreInput: true })
    await until(async () => (await waiting(cwd))[0]![1] === 2_000)
    command.kill('SIGINT')
    const { code, stdout, stderr } = await command.end()
    expect({ code, stdout }).toEqual({ code: 130, stdout: 'added 2,000 jobs\n' })
    expect(stderr).toBe(
      'millrace: stopped. Every line before line 2,001 is enqueued, or was left out. Send the same lines again: enqueued ones are not added twice. Or continue with --from-line 2001.\n',
    )
    expect(await runJson('enqueue count -', { cwd, input: all })).toMatchObject({
      added: 3_000,
      duplicate: 2_000,
    })
  }, 40_000)

  it('for an ordered task need an id, which --key names; equal payloads are kept, and none is added twice', async () => {
    const cwd = project(files)
    const input = '{"order":7,"v":1}\n{"order":8,"v":1}\n{"order":7,"v":1}\n'
    const refused = await run('enqueue sync -', { cwd, input })
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/is ordered: say with --key/) })
    const send = () => runJson('enqueue sync - --key order', { cwd, input })
    expect(await send()).toMatchObject({ added: 2, merged: 1 })
    expect(await send()).toMatchObject({ added: 0, merged: 3 })
    expect(await runJson('jobs show sync 7', { cwd })).toMatchObject({ payloadCount: 2 })
    const { stdout: envelopes } = await run('jobs list sync --envelope', { cwd })
    const moved = project(files)
    for (let i = 0; i < 2; i += 1) await run('enqueue - --envelope', { cwd: moved, input: envelopes })
    expect(await runJson('jobs show sync 7', { cwd: moved })).toMatchObject({ payloadCount: 2 })
  })

  it('stop at a job that the store refuses, and the reason is printed', async () => {
    const cwd = project({
      ...files,
      'millrace.config.js': ordered.replace('default: {}', 'default: { maxPending: 5 }'),
    })
    const { code, stderr } = await run('enqueue count -', { cwd, input: numbers(8) })
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^millrace: line 1 was not taken: .*is full.* Nothing was enqueued\. Then send all of it again\./,
    )
  })

  it.each([
    [['enqueue', '-', '--envelope', '--priority', '3'], /--priority does not go with --envelope/],
    [['enqueue', 'count', '-', '--envelope'], /--envelope is for `millrace enqueue - --envelope`/],
    [['enqueue', 'nobody', '-'], /'nobody'.*count, mail, sync/],
  ])('%j is refused before any input is read', async (args, message) => {
    const { code, stderr } = await run(args, { cwd: project(files), input: numbers(2) })
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })

  it.each([
    [['enqueue', 'count'], /the input is missing/],
    [['enqueue', 'count', '1', '--key', 'a'], /--key is for lines of standard input/],
    [['enqueue', 'count', '-', '--id', 'a', '--skip-invalid'], /--skip-invalid is for lines .* without --id/],
    [['enqueue', 'count', '1', '--from-line', '3'], /--from-line is for lines/],
    [['jobs', 'list', '--envelope', '--state', 'dead'], /--state can be ready or scheduled, not dead/],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await run(args, { cwd: project(files) })
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })
})

describe('an envelope', () => {
  it('moves waiting jobs from SQLite to Redis unchanged: payloads, times, priorities, groups, metas, dates', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const cwd = project({
      ...files,
      'fill.mjs': `import mill from './millrace.config.js'
const [count, mail, sync] = ['count', 'mail', 'sync'].map((name) => mill.tasks.get(name))
await mill.enqueue(count, 1, { id: 'one', priority: 7, meta: { since: new Date(5), tags: new Set(['a']) } })
await mill.enqueue(mail, { at: new Date(9), big: 12n }, { id: 'two', group: 'ada', queue: 'low' })
await mill.enqueue(mail, undefined, { id: 'three', runAt: '2099-01-02T03:04:05.006Z' })
for (let i = 0; i < 15; i += 1) await mill.enqueue(sync, { v: i }, { id: 'order-1', score: i / 2, meta: { i } })
await mill.enqueueMany(count, Array.from({ length: 450 }, (_, i) => i))
await mill.close()`,
    })
    expect(await runProcess([], { cwd, script: join(cwd, 'fill.mjs') })).toMatchObject({ code: 0, stderr: '' })
    const exported = await run('jobs list --envelope', { cwd })
    expect(exported).toMatchObject({ code: 0, stderr: '' })
    expect(exported.stdout.split('\n')).toHaveLength(454 + 1)

    const env = { MILLRACE_STORE: redis.url }
    const counts = { added: 454, merged: 14, replaced: 0, duplicate: 0, skipped: 0, left: 0, nextLine: 455 }
    const send = () => runJson('enqueue - --envelope', { cwd, env, input: exported.stdout })
    expect(await send()).toEqual(counts)
    expect(await send()).toMatchObject({ added: 0, duplicate: 453 })

    const again = await run('jobs list --envelope', { cwd, env })
    expect(again.stdout.split('\n').sort()).toEqual(exported.stdout.split('\n').sort())
  }, 60_000)
})

it('100,000 lines need no more memory than a few', { timeout: 120_000 }, async () => {
  const cwd = project({
    ...projectFiles,
    'watch.mjs': `process.on('exit', () => console.error('peak ' + process.resourceUsage().maxRSS))`,
  })
  const peakOf = async (lines: number) => {
    const file = join(cwd, `${lines}.ndjson`)
    writeFileSync(file, Array.from({ length: lines }, (_, i) => `{"n":${i},"text":"${'x'.repeat(200)}"}\n`).join(''))
    const env = { NODE_OPTIONS: `--import=${join(cwd, 'watch.mjs')}` }
    const command = new CommandProcess('enqueue echo - --json', { cwd, env, moreInput: true })
    createReadStream(file).pipe(command.child.stdin!)
    const { stdout, stderr } = await command.ended
    expect(JSON.parse(stdout)).toMatchObject({ nextLine: lines + 1 })
    return Number(/peak (\d+)/.exec(stderr)![1]) / 1024
  }
  const [few, many] = [await peakOf(5_000), await peakOf(100_000)]
  expect(many - few).toBeLessThan(60)
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 20_000; performance.now() < end; ) if (await isSo()) return
  throw new Error('it has not come to that')
}
