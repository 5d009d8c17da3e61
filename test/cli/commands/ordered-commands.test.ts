import { describe, expect, it } from 'vitest'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project } from '../project.js'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
const commands = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/

describe('ordered queues on the command line', () => {
  it('stats shows length, payloads and, on request, the lag of each shard', async () => {
    const cwd = orderedProject()
    const { stdout } = await run('stats --shards', { cwd })
    const lines = stdout.split('\n').map((line) => line.trim().split(/ {2,}/))

    expect(lines[1]!.slice(0, 9)).toEqual([
      'queue',
      'length',
      'ready',
      'scheduled',
      'running',
      'dead',
      'fresh',
      'retries',
      'payloads',
    ])
    expect(lines[2]!.slice(0, 9)).toEqual(['orders', '2', '1', '1', '1', '1', '2', '0', '6'])
    expect(lines).toContainEqual(['queue', 'shard', 'lag'])
    expect(lines.filter(([queue, shard]) => queue === 'orders' && /^[0-3]$/.test(shard!)).at(-1)).toEqual([
      'orders',
      '3',
      '5s',
    ])
    const { queues, totals } = await runJson<{ queues: object[]; totals: object }>('stats', { cwd })
    expect(queues[0]).toMatchObject({ length: 2, payloads: 6, shardLagsMs: [0, 0, 0, 5_000] })
    expect(queues[2]).not.toHaveProperty('shardLagsMs')
    expect(totals).toMatchObject({ length: 151, payloads: 155 })
  })

  it('jobs show prints payloads from old to new, and marks those that cannot be decoded', async () => {
    const cwd = orderedProject()
    const { stdout } = await run('jobs show a', { cwd })

    expect(stdout).toMatch(
      /\nerror +payload 3 of 3 \(score 3\.5\) was stored by codec 'msgpack', this mill has codec 'json'\n/,
    )
    expect(stdout).toMatch(
      /\n\npayloads: 3, old to new\n +score {2}meta {10}input\n +1 +\{"rev":1\}\n +2 {2}\{"by":"Ada"\} {2}\{"rev":2\}\n +3\.5 +\(cannot be decoded\)\n$/,
    )
    expect(stdout).not.toContain('priority')
    const running = await run('jobs show orders run', { cwd })
    expect(running.stdout).toMatch(/payloads: 1, old to new; 2 more wait for the end of this run\n/)
    expect(await runJson('jobs show run', { cwd })).toMatchObject({
      payloads: [{ input: 1, score: 1 }],
      payloadCount: 1,
      pendingCount: 2,
    })
  })

  it('morgue show prints a dead job, and nothing in it controls the terminal', async () => {
    const cwd = orderedProject()
    const id = 'dead\u001b[2J'
    const { stdout } = await run(['morgue', 'show', 'orders', id], { cwd })

    expect(stdout).toMatch(/^id +dead\\u001b\[2J\n[\s\S]*\nreason +buried\n\npayloads: 2, old to new\n/)
    expect(stdout).toContain('1  "evil\\u001b[31m\\u202e"\n')
    expect(stdout).not.toMatch(commands)
    expect(await runJson(['morgue', 'show', 'orders', id], { cwd })).toMatchObject({ state: 'dead', payloadCount: 2 })
    const missing = await run(['morgue', 'show', 'orders', `a${id}`], { cwd })
    expect(missing).toMatchObject({ code: 1, stdout: '' })
    expect(missing.stderr).toBe("millrace: there is no job 'adead\\u001b[2J' in the morgue of queue 'orders'.\n")
  })

  it('lists show a count of payloads instead of priorities', async () => {
    const { stdout } = await run('jobs list orders --by id', { cwd: orderedProject() })

    expect(stdout).toMatch(/^orders\nid +task +state +attempt +payloads +when +note\n/)
    expect(stdout).toMatch(/\nrun +sync-order +running +1 +1 \+2 +reserved\n/)
  })

  it.each([
    [['jobs', 'cancel', 'orders', '--all'], 'orders: 3 jobs cancelled.', { cancelled: 3 }],
    [['jobs', 'delete', 'orders', 'a'], 'orders: 1 job deleted.', { deleted: 1 }],
    [['jobs', 'run-now', 'orders', 'later'], 'orders: 1 job due now.', { dueNow: 1 }],
    [['jobs', 'bury', 'old', '--all', '--yes'], 'old: 149 jobs buried.', { buried: 149 }],
    [['jobs', 'bury', 'orders', '--failed'], 'orders: 0 jobs buried.', { buried: 0 }],
    [['morgue', 'revive', 'orders', '--all'], 'orders: 1 job revived.', { revived: 1 }],
    [['morgue', 'delete', 'orders', '--all'], 'orders: 1 job deleted.', { deleted: 1 }],
    [['queues', 'clear', 'orders'], 'orders: 3 jobs removed.', { removed: 3 }],
    [['queues', 'pause', 'orders'], 'orders: paused until `millrace queues resume orders`.', { paused: true }],
    [['queues', 'resume', 'orders'], 'orders: resumed.', { paused: false, draining: false }],
    [
      ['queues', 'drain', 'mail'],
      'mail: drained. It refuses new jobs until `millrace queues resume mail`.',
      { drained: true },
    ],
  ])('%j prints how many jobs it changed', async (args, line, fields) => {
    const cwd = orderedProject()

    expect(await run(args, { cwd })).toEqual({ code: 0, signal: null, stdout: `${line}\n`, stderr: '' })
    expect(await runJson(args, { cwd })).toEqual({ queue: args[2], ...fields })
  })

  it('ids that could not be changed make the exit code 1; the others are changed', async () => {
    const cwd = orderedProject()

    expect(await run('jobs bury orders a run nobody a', { cwd })).toMatchObject({
      code: 1,
      stdout: 'orders: 1 job buried.\n',
      stderr:
        "millrace: 2 of 3 jobs were left as they are, because they are not waiting in queue 'orders': 'run' is running, 'nobody' is not there.\n",
    })
  })

  it('a running job can be failed by hand, and one that is not running cannot', async () => {
    const cwd = orderedProject()

    expect(await runJson('jobs fail orders run --last', { cwd })).toEqual({
      queue: 'orders',
      id: 'run',
      failed: true,
    })
    expect(await run('jobs fail orders a', { cwd })).toMatchObject({
      code: 1,
      stderr: "millrace: job 'a' does not run in queue 'orders'; nothing was changed.\n",
    })
  })

  it('queues move moves all jobs except the running ones', async () => {
    const cwd = orderedProject()

    expect(await runJson('queues move old orders', { cwd })).toEqual({
      from: 'old',
      to: 'orders',
      moved: 149,
      left: 1,
    })
    const { stdout } = await run('queues move old orders', { cwd })
    expect(stdout).toMatch(/^old: 149 jobs moved to orders\.\nold: 1 job left, 1 of them running\. /)
  })

  it('queues reshard prints how many jobs it moved, and how to continue if it is interrupted', async () => {
    const cwd = orderedProject()
    const reshard = new CommandProcess('queues reshard old 3', { cwd })
    await reshard.stdoutMatches(/^old: waits for its running jobs to end; no others are started meanwhile\.\n/)
    reshard.kill('SIGINT')

    expect(await reshard.end()).toMatchObject({
      code: 1,
      stderr:
        "millrace: ended by SIGINT: no job of queue 'old' is started until `millrace queues reshard old 3` has been run to its end.\n",
    })
    expect(await runJson('queues reshard old 2', { cwd })).toEqual({ queue: 'old', shards: 2, moved: 0 })
    expect(await run('queues reshard mail 3', { cwd })).toMatchObject({ code: 2, stdout: '' })
  })

  it('queues list shows stored values next to declared ones', async () => {
    const cwd = orderedProject()
    const { stdout } = await run('queues list', { cwd })

    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['queue', 'kind', 'order', 'exclusive', 'shards', 'waiting', 'running', 'workers'],
      ['orders', 'ordered', 'fifo', 'id', '4', '2', '1', '0', '8 shards configured'],
      ['old', 'ordered', 'fifo', 'id', '2', '149', '1', '0'],
      ['mail', 'plain', 'fifo', '-', '1', '0', '0', '0', 'not stored yet'],
      [''],
    ])
    const { queues } = await runJson<{ queues: object[] }>('queues list', { cwd })
    expect(queues[0]).toEqual({
      queue: 'orders',
      kind: 'ordered',
      order: 'fifo',
      exclusive: 'id',
      shards: 4,
      configuredShards: 8,
      waiting: 2,
      running: 1,
      workers: 0,
      paused: false,
      draining: false,
      declared: true,
      stored: true,
    })
  })

  it('doctor reports a queue whose shards differ from the configuration, and the remedy', async () => {
    const cwd = orderedProject()

    expect(await run('doctor', { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        "warning  shards  queue 'orders' has 4 shards, but 8 are configured: the stored number counts. If it was resharded on purpose, set `shards: 4` in your configuration; if the configured number is the one you want, run `millrace queues reshard orders 8`.\n",
      ),
    })
  })
})

/** Of `orders`: `a` waits with two payloads, `later` is scheduled, `run` runs with one and two wait, one with an evil id is dead. */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

export default async () => {
  const harness = await memoryHarness({ startAt: Date.now() - 5_000 })
  const store = await harness.open()
  const settings = { order: 'fifo', maxCrashes: 3, dead: {} }
  await store.open([
    { ...settings, name: 'orders', kind: 'ordered', shards: 4 },
    { ...settings, name: 'old', kind: 'ordered', shards: 2 },
  ])
  let calls = 0
  const push = (queue, ...jobs) =>
    store.enqueue([{
      callId: 'call-' + calls++,
      queue,
      jobs: jobs.map(([id, input, more]) => ({
        id, task: 'sync-order', payload: JSON.stringify(input), priority: 0, rememberMs: 0, ...more,
      })),
    }])
  const by = { worker: 'w', leaseMs: 600_000 }
  await push('orders', ['dead\\u001b[2J', 'evil\\u001b[31m\\u202e', { score: 1 }], ['dead\\u001b[2J', 2, { score: 2 }])
  await store.records.bury('orders', 'all')
  await push('orders', ['run', 1, { score: 1 }], ['run', 2, { score: 2 }], ['run', 3, { score: 3 }])
  await store.claim([{ queue: 'orders', limit: 1, maxPayloads: 1 }], by)
  await push('orders', ['a', { rev: 2 }, { score: 2, meta: '{"by":"Ada"}' }], ['a', { rev: 1 }, { score: 1 }])
  await push('orders', ['a', 3, { score: 3.5, codec: 'msgpack' }], ['later', 1, { delayMs: 60_000 }])
  await push('old', ...Array.from({ length: 150 }, (_, i) => ['o' + i, i]))
  await store.claim([{ queue: 'old', limit: 1 }], by)
  await harness.advance(5_000)
  return store
}
`

const configFile = `
import { millrace } from 'millrace'
export default millrace({
  store: { module: './store.js' },
  queues: { orders: { ordered: true, shards: 8 }, old: { ordered: true, shards: 2 }, mail: {} },
  tasks: [],
})
`

/** A user's folder whose store, in memory, holds the same ordered jobs for every command anew. */
function orderedProject(): string {
  return project({ 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile })
}
