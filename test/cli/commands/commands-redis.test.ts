import { faultProxy, startRedis } from 'millrace/store-testing'
import { expect, it, onTestFinished } from 'vitest'
import { runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { configFile, project, projectFiles } from '../project.js'

interface Listing {
  queues: { queue: string; jobs: { id: string; state: string }[] }[]
}

interface Stats {
  totals: Record<string, number>
  workers: { count: number; slots: number }
}

/** The usual project, in a namespace of its own. */
function projectIn(namespace: string): string {
  const config = configFile.replace('  queues:', `  namespace: '${namespace}',\n  queues:`)
  return project({ ...projectFiles, 'millrace.config.js': config })
}

it('the commands work together on Redis, and each namespace sees only its own jobs', { timeout: 60_000 }, async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const env = { MILLRACE_STORE: redis.url }
  const [shop, other] = [
    { cwd: projectIn('shop'), env },
    { cwd: projectIn('other'), env },
  ]
  const worker = new CommandProcess('work --json --concurrency 3', shop)
  expect(await worker.events('worker.started')).toMatchObject([{ store: `redis://127.0.0.1:${redis.port}` }])

  expect(await runJson('enqueue echo {"n":1} --id good', shop)).toMatchObject({ outcome: 'added' })
  expect(await runJson('enqueue echo {"n":2} --id good', shop)).toMatchObject({ outcome: 'duplicate' })
  await runJson(['enqueue', 'fail', '"no such luck"', '--id', 'bad'], shop)
  await runJson('enqueue echo 3 --id later --delay 1h', shop)
  await worker.events('job.buried')

  expect(await runJson<Stats>('stats', shop)).toMatchObject({
    totals: { ready: 0, scheduled: 1, running: 0, dead: 1, processed: 1, failed: 1 },
    workers: { count: 1, slots: 3 },
  })
  expect((await runJson<{ workers: object[] }>('workers', shop)).workers).toMatchObject([
    { process: 'alive', queues: ['default', 'slow'], slots: 3 },
  ])
  expect((await runJson<{ queues: object[] }>('queues list', shop)).queues).toMatchObject([
    { queue: 'default', waiting: 1, running: 0, workers: 1 },
    { queue: 'slow', waiting: 0, running: 0, workers: 1 },
  ])
  expect(await runJson('jobs show good', shop)).toMatchObject({ state: 'completed', input: { n: 1 } })
  const listed = await runJson<Listing>('jobs list default --by id', shop)
  expect(listed.queues[0]!.jobs).toMatchObject([
    { id: 'bad', state: 'dead' },
    { id: 'good', state: 'completed' },
    { id: 'later', state: 'scheduled' },
  ])
  const morgue = await runJson<Listing>('morgue list default', shop)
  expect(morgue.queues[0]!.jobs).toMatchObject([{ id: 'bad' }])
  expect(await runJson('morgue revive default bad', shop)).toEqual({ queue: 'default', revived: 1 })
  // What is revived wakes the worker.
  await worker.events('job.buried', 2)
  worker.kill('SIGTERM')
  expect(await worker.end()).toMatchObject({ code: 0, stderr: '' })

  expect(await runJson<Stats>('stats', shop)).toMatchObject({ totals: { failed: 2 }, workers: { count: 0 } })
  expect((await runJson<Stats>('stats', other)).totals).toMatchObject({ scheduled: 0, dead: 0, processed: 0 })
  const keys = (await redis.ask('KEYS', '*')) as string[]
  expect(keys.filter((key) => !/^\{(shop|other)[:}]/.test(key))).toEqual([])
})

it('`jobs show --follow` waits while Redis is away, and says so once', { timeout: 60_000 }, async () => {
  const redis = await startRedis()
  const proxy = await faultProxy(redis)
  onTestFinished(async () => {
    await proxy.close()
    await redis.stop()
  })
  const cwd = project()
  const direct = { cwd, env: { MILLRACE_STORE: redis.url } }
  await runJson('enqueue echo 1 --id a', direct)
  const args = ['jobs', 'show', 'a', '--follow']
  const following = new CommandProcess(args, { cwd, env: { MILLRACE_STORE: proxy.url } })
  await following.stdoutMatches(/^state +ready$/m)

  await proxy.inject('refuse')
  proxy.cut()
  await following.stderrMatches(/The command goes on when the store is back\.\n/)
  await proxy.inject('none')
  const worker = new CommandProcess('work --json', direct)
  const { code, stdout, stderr } = await following.end()
  expect(code).toBe(0)
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d completed\b.*\n$/m)
  expect(stderr.match(/The command goes on/g)).toHaveLength(1)
  worker.kill('SIGTERM')
  await worker.end()
})
