/** The movers from other queues on Postgres that die or go by another call, and the attempts that their jobs have left. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { changed, dies, graphileOn, jobsOf, lookingAt, pageOn, pgBossOn } from './mover-scene.js'

/** Fails the job of this id again and again, without waiting, until it is dead. */
const workerOf = (id: string) => `
import { mill } from './mails.mjs'
const ended = new Promise((resolve) => {
  mill.on('job.failed', async ({ id, attempt }) => {
    console.log('failed', attempt)
    while ((await mill.queue('mails').jobs.runNow(['${id}'])).length === 0) await new Promise(setImmediate)
  })
  mill.on('job.buried', ({ reason }) => resolve(console.log(reason)))
})
await mill.worker({ queues: ['mails'] }).start()
await ended
await mill.close()`

describe('the mover from pg-boss', { timeout: 180_000 }, () => {
  it('by enqueue() finds after a crash what it had moved', async () => {
    const { page, url, cwd, run, mover } = await pageOn('pg-boss')
    const from = await pgBossOn(url)
    await from.insert('welcome', [{ data: { to: 'a@example.com' } }, { data: { to: 'b@example.com' } }])
    const byId = {
      'mill.enqueueIn(db, ': 'mill.enqueue(',
      "left.set(id, 'the mill has a job of this id, or had one lately')": 'taken.push(id)',
    }
    expect(run(changed(page, cwd, mover, { ...byId, [`await db.query('COMMIT')`]: dies })).status).toBe('SIGKILL')
    const mill = lookingAt(url)
    expect(await jobsOf(mill, 'mails')).toHaveLength(2)
    expect(run(changed(page, cwd, mover, byId)).stdout).toEqual(['2 moved, 0 left'])
    expect(await jobsOf(mill, 'mails')).toHaveLength(2)
  })

  it('takes along the attempts that a job has left', async () => {
    const { url, cwd, run, mover } = await pageOn('pg-boss')
    const from = await pgBossOn(url)
    const id = (await from.send('welcome', { to: 'nobody' }))!
    await from.fail('welcome', (await from.fetch('welcome'))[0]!.id)
    run(mover)
    writeFileSync(join(cwd, 'work.mjs'), workerOf(id))

    const { stdout } = run('work.mjs')
    expect(stdout).toEqual(['failed 1', 'failed 2', 'used the attempts that pg-boss had left it'])
  })
})

describe('the mover from graphile-worker', { timeout: 180_000 }, () => {
  it('leaves each of 600 jobs in one place when it dies, and moves the rest when it runs again', async () => {
    const { page, url, cwd, db, run, mover } = await pageOn('graphile-worker')
    const from = await graphileOn(url)
    await from.addJobs(
      Array.from({ length: 600 }, (_, n) => ({ identifier: 'welcome', payload: { to: `${n}@example.com` } })),
    )
    const places = async () => {
      const there = (await db.query('SELECT id FROM graphile_worker.jobs')).rows.map(({ id }) => `graphile-${id}`)
      const here = (await jobsOf(lookingAt(url), 'mails')).map(({ id }) => id)
      expect(new Set([...there, ...here]).size).toBe(600)
      expect(there.length + here.length).toBe(600)
      return here.length
    }
    expect(run(changed(page, cwd, mover, { [`await db.query('COMMIT')`]: dies })).status).toBe('SIGKILL')
    expect(await places()).toBe(0)
    expect(run(changed(page, cwd, mover, { 'moved += taken.length': dies })).status).toBe('SIGKILL')
    expect(await places()).toBe(500)
    expect(run(mover)).toMatchObject({ status: 0, stdout: ['100 moved, 0 left'] })
    expect(await places()).toBe(600)
  })

  it('takes along the attempts that a job has left', async () => {
    const { url, db, cwd, run, mover } = await pageOn('graphile-worker')
    const from = await graphileOn(url)
    const { id } = await from.addJob('welcome', { to: 'nobody' }, { maxAttempts: 4 })
    await db.query('UPDATE graphile_worker._private_jobs SET attempts = 3 WHERE id = $1', [id])
    run(mover)
    writeFileSync(join(cwd, 'work.mjs'), workerOf(`graphile-${id}`))

    expect(run('work.mjs').stdout).toEqual(['failed 1', 'used the attempts that graphile-worker had left it'])
  })
})
