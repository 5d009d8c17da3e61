/** The movers: from other queues on Postgres, run on stores that those queues have made; and from one of our stores to another. */

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTask, type Mill, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { postgresDatabase } from '../worker-postgres.js'
import { Document } from './document.js'
import { folderOf, shellLines, shownAfter } from './documented-project.js'
import { changed, dies, graphileOn, jobsOf, lookingAt, pageOn, pgBossOn } from './mover-scene.js'

const inAnHour = () => new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000)

/** Runs the ordered job, and says its id. */
const syncing = `
import { mill } from './mails.mjs'
const ended = new Promise((resolve) => mill.on('job.completed', ({ id }) => resolve(console.log(id))))
await mill.worker({ queues: ['syncs'] }).start()
await ended
await mill.close()`

describe('the mover from pg-boss', { timeout: 180_000 }, () => {
  it('moves waiting jobs as they are, and schedules; what runs, waits for others or has no task stays', async () => {
    const { url, db, run, mover } = await pageOn('pg-boss')
    const from = await pgBossOn(url)
    await from.createQueue('other')
    const runAt = inAnHour()
    const failed = (await from.send('welcome', { to: 'failed@once' }))!
    await from.fail('welcome', (await from.fetch('welcome'))[0]!.id)
    await db.query(`UPDATE pgboss.job SET start_after = now() WHERE state = 'retry'`)
    const running = (await from.send('welcome', { to: 'runs@now' }, { priority: 9 }))!
    expect((await from.fetch('welcome'))[0]!.id).toBe(running)
    const later = (await from.send('welcome', { to: 'later@on' }, { startAfter: runAt, priority: 3, retryLimit: 7 }))!
    const urgent = (await from.send('welcome', { to: 'urgent@now' }, { priority: 70_000 }))!
    await from.send('other', {})
    const flow = await from.flow([
      { ref: 'first', name: 'welcome', data: { to: 'first@flow' } },
      { ref: 'then', name: 'welcome', data: { to: 'then@flow' }, dependsOn: ['first'] },
    ])
    await from.schedule(
      'welcome',
      '0 4 * * 1',
      { to: 'ops@example.com' },
      { tz: 'Europe/Zurich', key: 'ops', priority: 2 },
    )

    expect(run(mover)).toEqual({
      status: 0,
      stderr: '',
      stdout: [
        '4 moved, 2 left',
        ...[flow['first'], flow['then']].sort().map((id) => `${id}: it belongs to a flow`),
        'still in pg-boss: 1 created in other',
        'still in pg-boss: 2 created in welcome',
        'still in pg-boss: 1 active in welcome',
      ],
    })

    const mill = lookingAt(url)
    const moved = await jobsOf(mill, 'mails')
    const asWas = { task: 'welcome', state: 'ready' }
    expect(moved).toHaveLength(3)
    expect(moved).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ ...asWas, id: failed, input: { to: 'failed@once' }, meta: { attemptsLeft: 2 } }),
        expect.objectContaining({ ...asWas, id: urgent, priority: 32_767, meta: { attemptsLeft: 3 } }),
        expect.objectContaining({ id: later, state: 'scheduled', runAt, priority: 3, meta: { attemptsLeft: 8 } }),
      ]),
    )
    const { schedules } = await mill.schedules.list()
    expect(schedules).toEqual([
      expect.objectContaining({ name: 'welcome-ops', cron: '0 4 * * 1', timeZone: 'Europe/Zurich' }),
    ])
    expect(await from.getSchedules()).toEqual([])
    expect(run(mover).stdout[0]).toBe('0 moved, 2 left')
  })

  it('leaves each of 600 jobs in one place when it dies, and moves the rest in their order when it runs again', async () => {
    const { page, url, cwd, db, run, mover } = await pageOn('pg-boss')
    const from = await pgBossOn(url)
    await from.insert(
      'welcome',
      Array.from({ length: 600 }, (_, n) => ({ data: { to: `${n}@example.com` } })),
    )
    // Those of one insert have the same time.
    const nth = `split_part(data ->> 'to', '@', 1)::int * interval '1 ms'`
    await db.query(`UPDATE pgboss.job SET created_on = created_on + ${nth}`)
    const places = async () => {
      const there = (await db.query(`SELECT id FROM pgboss.job WHERE state < 'active'`)).rows.map(
        ({ id }) => id as string,
      )
      const here = (await jobsOf(lookingAt(url), 'mails')).map(({ id }) => id)
      expect(new Set([...there, ...here]).size).toBe(600)
      expect(there.length + here.length).toBe(600)
      return here.length
    }
    const beforeCommit = changed(page, cwd, mover, { [`await db.query('COMMIT')`]: dies })
    expect(run(beforeCommit).status).toBe('SIGKILL')
    expect(await places()).toBe(0)
    const afterCommit = changed(page, cwd, mover, { 'moved += taken.length': dies })
    expect(run(afterCommit).status).toBe('SIGKILL')
    expect(await places()).toBe(500)

    expect(run(mover)).toMatchObject({ status: 0, stdout: ['100 moved, 0 left'] })
    expect(await places()).toBe(600)
    const inputs = (await jobsOf(lookingAt(url), 'mails')).map(({ input }) => (input as { to: string }).to)
    expect(inputs).toEqual(Array.from({ length: 600 }, (_, n) => `${n}@example.com`))
  })
})

describe('the mover from graphile-worker', { timeout: 180_000 }, () => {
  it('moves waiting jobs as they are, named queues into ordered ones; what runs, has failed or has no task stays', async () => {
    const { url, db, cwd, run, mover } = await pageOn('graphile-worker')
    const from = await graphileOn(url)
    const runAt = inAnHour()
    const plain = await from.addJob('welcome', { to: 'plain@now' }, { priority: 5 })
    await from.addJob('welcome', { to: 'keyed@later' }, { jobKey: 'mail-42', runAt, maxAttempts: 4, priority: -3 })
    const named = await from.addJob('welcome', { to: 'named@queue' }, { queueName: 'mails' })
    for (const version of [1, 2]) await from.addJob('sync', { account: 'ignored', version }, { queueName: 'account 7' })
    await from.addJob('other', {})
    const running = await from.addJob('welcome', { to: 'runs@now' })
    await db.query(
      `UPDATE graphile_worker._private_jobs SET locked_at = now(), locked_by = 'w', attempts = 1 WHERE id = $1`,
      [running.id],
    )
    await from.permanentlyFailJobs([(await from.addJob('welcome', { to: 'failed@ever' })).id])

    expect(run(mover)).toEqual({
      status: 0,
      stderr: '',
      stdout: [
        '4 moved, 1 left',
        `${named.id}: in the queue 'mails', and its task is not ordered`,
        'still in graphile-worker: 1 other',
        'still in graphile-worker: 1 welcome',
        'still in graphile-worker: 1 welcome, failed',
        'still in graphile-worker: 1 welcome, running',
      ],
    })

    const mill = lookingAt(url)
    expect(await jobsOf(mill, 'mails')).toEqual([
      expect.objectContaining({
        ...{ id: `graphile-${plain.id}`, task: 'welcome', state: 'ready', priority: -5 },
        ...{ input: { to: 'plain@now' }, meta: { attemptsLeft: 25 } },
      }),
      expect.objectContaining({ id: 'mail-42', state: 'scheduled', runAt, priority: 3, meta: { attemptsLeft: 4 } }),
    ])
    expect(run(mover).stdout[0]).toBe('0 moved, 1 left')
    writeFileSync(join(cwd, 'sync.mjs'), syncing)
    expect(run('sync.mjs').stdout).toEqual(['[ 1, 2 ]', 'account 7'])
  })

  it('makes of a crontab the schedules that its page shows', async () => {
    const { page, cwd, run } = await pageOn('graphile-worker')
    const [line] = page.codeSpans.filter((code) => code.startsWith('0 4 '))
    writeFileSync(join(cwd, 'crontab'), `# a comment\n\n  ${line}\n`)

    expect(run('schedules-of-crontab.mjs')).toEqual({
      status: 0,
      stderr: '',
      stdout: [shownAfter(page.path, 'schedules-of-crontab.mjs').trim()],
    })
  })
})

it('the commands of the page on stores bring what waits in a SQLite file to Postgres, each once', {
  timeout: 120_000,
}, async () => {
  const page = new Document('docs/stores/README.md')
  const cwd = folderOf()
  const config = `
import { defineTask, millrace } from 'millrace'
const mail = defineTask({ name: 'mail', run() {} })
export default millrace({ store: process.env.MILLRACE_STORE, tasks: [mail], queues: { low: {} } })`
  writeFileSync(join(cwd, 'millrace.config.mjs'), config)
  const url = await postgresDatabase()
  const mail = defineTask({ name: 'mail', run() {} })
  const [old, mill] = [`sqlite:${cwd}/.millrace/jobs.db`, url].map((store) =>
    millrace({ store, tasks: [mail], queues: { low: {} } }),
  ) as [Mill, Mill]
  onTestFinished(async () => void (await Promise.all([old.close(), mill.close()])))
  await old.enqueue(mail, 'dead', { id: 'dead' })
  await old.queue('default').jobs.bury(['dead'])
  const numbers = Array.from({ length: 250 }, (_, n) => n)
  await old.enqueueMany(mail, numbers)
  const later = { id: 'later', runAt: inAnHour(), priority: -7, meta: { by: 'ada' }, group: 'g' }
  await old.enqueue(mail, 'later', { ...later, queue: 'low' })

  const run = (line: string) => {
    const command = line
      .replace('npx millrace', `'${process.execPath}' '${join(root, 'dist/cli/main.js')}'`)
      .replace(/postgres:\S+/, url)
    const { status, stderr } = spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8', timeout: 60_000 })
    expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: '' })
  }
  const [list, enqueue, remove] = shellLines(page)
  for (const line of [list!, enqueue!, enqueue!, remove!]) run(line)

  expect((await jobsOf(mill, 'default')).map(({ input }) => input)).toEqual(numbers)
  expect(await jobsOf(mill, 'low')).toEqual([expect.objectContaining(later)])
  expect((await jobsOf(old, 'default')).map(({ id }) => id)).toEqual(['dead'])
})
