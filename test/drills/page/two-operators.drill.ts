import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { sqliteTraits } from '#src/stores/sqlite/sqlite-traits.js'
import { run, runJson } from '../../cli/command-in-process.js'
import { CommandProcess, runProcessJson } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'

const configFile = `
import { millrace } from 'millrace'
export default millrace({
  store: 'sqlite:jobs.db',
  queues: { orders: { ordered: true, shards: Number(process.env['SHARDS'] ?? 4) }, old: { ordered: true, shards: 1 } },
})
`

/** A project whose store on disk holds so many jobs in `orders`, and a handle of its own on that. */
async function seeded(jobs: number) {
  const cwd = project({ 'millrace.config.mjs': configFile })
  const store = new SqliteStore({ file: join(cwd, 'jobs.db') })
  onTestFinished(() => store.close())
  const settings = { kind: 'ordered', order: 'fifo', maxCrashes: 3, dead: {} } as const
  await store.open([
    { ...settings, name: 'orders', shards: 4 },
    { ...settings, name: 'old', shards: 1 },
  ])
  const call = Array.from({ length: jobs }, (_, i) => ({
    id: `o${i}`,
    task: 'sync-order',
    payload: String(i),
    priority: 0,
    rememberMs: 0,
  }))
  await store.enqueue([{ callId: 'seed', queue: 'orders', jobs: call }])
  return { cwd, store }
}

describe.runIf(sqliteTraits.ordered)('two operators in separate processes at once', { timeout: 60_000 }, () => {
  it.each([
    ['jobs', 'bury', 'buried'],
    ['jobs', 'cancel', 'cancelled'],
    ['queues', 'clear', 'removed'],
  ] as const)('%s %s: the counts add up', async (noun, verb, done) => {
    const { cwd } = await seeded(2_500)
    const args = [noun, verb, 'orders', ...(noun === 'jobs' ? ['--all'] : [])]
    const counts = await Promise.all([1, 2].map(() => runProcessJson<Record<string, number>>(args, { cwd })))

    expect(counts[0]![done]! + counts[1]![done]!).toBe(2_500)
    expect((await runJson<{ totals: object }>('stats', { cwd })).totals).toMatchObject({ length: 0, payloads: 0 })
  })

  it('reshard loses nothing if both interrupt it and continue it', async () => {
    const { cwd, store } = await seeded(500)
    const { claims } = await store.claim([{ queue: 'orders', limit: 1 }], { worker: 'w', leaseMs: 600_000 })
    const first = new CommandProcess('queues reshard orders 7', { cwd })
    await first.stdoutMatches(/waits for its running jobs/)
    first.kill('SIGTERM')
    expect(await first.end()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('`millrace queues reshard orders 7`'),
    })
    expect(await run('queues reshard orders 9', { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('run `millrace queues reshard orders 7` to its end first'),
    })

    const both = [1, 2].map(() => new CommandProcess('queues reshard orders 7', { cwd }))
    await Promise.all(both.map((one) => one.stdoutMatches(/waits for its running jobs/)))
    await store.settle([{ queue: 'orders', id: claims[0]!.id, fence: claims[0]!.fence, kind: 'complete' }])
    for (const one of both) expect(await one.end()).toMatchObject({ code: 0, stderr: '' })
    const { depths } = await store.depth(['orders'])
    expect(depths[0]).toMatchObject({ ready: 499, payloads: 499, processed: 1, shardLagsMs: { length: 7 } })
  })

  it('doctor reports different shards, and reshard resolves it', async () => {
    const { cwd } = await seeded(10)
    const env = { SHARDS: '6' }

    expect((await run('doctor', { cwd, env })).stdout).toMatch(
      /^warning +shards +queue 'orders' has 4 shards, but 6 are/m,
    )
    expect((await run('queues reshard orders 6', { cwd, env })).stdout).toMatch(
      /^orders: has 6 shards; \d+ jobs? moved\.\n$/,
    )
    const { findings } = (await runJson('doctor', { cwd, env })) as { findings: { what: string }[] }
    expect(findings.filter(({ what }) => what === 'shards')).toEqual([])
    expect(await runJson('queues move orders old', { cwd, env })).toMatchObject({ moved: 10, left: 0 })
  })
})
