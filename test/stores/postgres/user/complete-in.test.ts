/** `ctx.completeIn(tx)`: a job that ends in its handler's own transaction. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { defineTask, type JobContext, millrace } from 'millrace'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../../../cli/project.js'
import { nextEvent } from '../../../next-event.js'
import { postgresStoreAddress, workerPostgres } from '../../../worker-postgres.js'

async function connected(): Promise<pg.Client> {
  const client = new pg.Client((await workerPostgres()).url)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

async function scene(run: (input: string, ctx: JobContext, db: pg.Client) => Promise<void>) {
  const store = await postgresStoreAddress()
  const db = await connected()
  const table = `effect_${store.split('schema=')[1]}`
  await db.query(`CREATE TABLE ${table} (id text)`)
  const pay = defineTask({
    name: 'pay',
    queue: 'pays',
    retry: { max: 3, backoff: () => 0 },
    run: (input: string, ctx) => run(input, ctx, db),
  })
  const next = defineTask({ name: 'next', queue: 'nexts' })
  const mill = millrace({ store, tasks: [pay, next], queues: { pays: {}, nexts: {} } })
  onTestFinished(() => mill.close())
  await mill.ready()
  return { mill, pay, next, db, store, table }
}

it('the job ends with the commit, together with its effect and its child', async () => {
  const { mill, pay, next, table } = await scene(async (input, ctx, db) => {
    await db.query('BEGIN')
    await db.query(`INSERT INTO ${table} VALUES ($1)`, [input])
    await ctx.enqueueIn(db, next, null)
    await ctx.completeIn(db)
    await db.query('COMMIT')
  })
  const refused: unknown[] = []
  mill.on('settle.refused', (event) => refused.push(event))
  const completed = nextEvent(mill, 'job.completed')
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()
  await completed
  expect((await mill.depths(['pays', 'nexts'])).map(({ ready, running }) => [ready, running])).toEqual([
    [0, 0],
    [1, 0],
  ])
  expect(refused).toEqual([])
})

it('a handler that a closing mill waits for may still end its job in its transaction', async () => {
  let goOn = () => {}
  const { mill, pay, next, db, table, store } = await scene(async (input, ctx) => {
    await new Promise<void>((resolve) => (goOn = resolve))
    await db.query('BEGIN')
    await db.query(`INSERT INTO ${table} VALUES ($1)`, [input])
    await ctx.enqueueIn(db, next, null)
    await ctx.completeIn(db)
    await db.query('COMMIT')
  })
  const started = nextEvent(mill, 'job.started')
  const completed = nextEvent(mill, 'job.completed')
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()
  await started
  const closed = mill.close()
  goOn()
  await completed
  await closed

  expect((await db.query(`SELECT id FROM ${table}`)).rows).toEqual([{ id: 'a' }])
  expect(() => mill.enqueueIn(db, next, null)).toThrow(expect.objectContaining({ code: 'closed' }))
  const other = millrace({ store, queues: { nexts: {} } })
  onTestFinished(() => other.close())
  expect((await other.depths(['nexts']))[0]).toMatchObject({ ready: 1 })
})

it('a job whose transaction was rolled back has not ended, whatever its handler returns', async () => {
  const failures: unknown[] = []
  const { mill, pay, db, table } = await scene(async (input, ctx, db) => {
    await db.query('BEGIN')
    await db.query(`INSERT INTO ${table} VALUES ($1)`, [`${input} ${ctx.job.attempt}`])
    await ctx.completeIn(db)
    await db.query(ctx.job.attempt < 3 ? 'ROLLBACK' : 'COMMIT')
    if (ctx.job.attempt === 2) throw new Error('as it should')
  })
  mill.on('job.failed', ({ error }) => failures.push((error as Error).message))
  const completed = nextEvent(mill, 'job.completed')
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()
  await completed
  expect(failures).toEqual([expect.stringContaining('the transaction was not committed'), 'as it should'])
  expect((await db.query(`SELECT id FROM ${table}`)).rows).toEqual([{ id: 'a 3' }])
})

it('a second call in the same transaction fails the attempt, and says so', async () => {
  const { mill, pay } = await scene(async (_input, ctx, db) => {
    await db.query('BEGIN')
    await ctx.completeIn(db)
    if (ctx.job.attempt === 1)
      await ctx.completeIn(db).catch(async (error: unknown) => {
        await db.query('ROLLBACK')
        throw error
      })
    await db.query('COMMIT')
  })
  const [failed, completed] = [nextEvent(mill, 'job.failed'), nextEvent(mill, 'job.completed')]
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()

  expect(await failed).toMatchObject({
    attempt: 1,
    error: { code: 'argument-invalid', message: expect.stringContaining('Call it once in a transaction') },
  })
  expect(await completed).toMatchObject({ attempt: 2 })
})

it('a pool is refused, as it would end the job by itself', async () => {
  const pool = new pg.Pool({ connectionString: (await workerPostgres()).url })
  onTestFinished(() => pool.end())
  const { mill, pay } = await scene(async (_input, ctx) => {
    if (ctx.job.attempt === 1) await ctx.completeIn(pool)
  })
  const [failed, completed] = [nextEvent(mill, 'job.failed'), nextEvent(mill, 'job.completed')]
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()

  expect(await failed).toMatchObject({ error: { code: 'argument-invalid' } })
  expect(await completed).toMatchObject({ attempt: 2 })
})

it('a claim that is lost rejects, so that the transaction rolls back', async () => {
  const errors: unknown[] = []
  const { mill, pay, db, store, table } = await scene(async (input, ctx, db) => {
    const schema = store.split('schema=')[1]
    // As after a crash that nobody noticed: somebody else has the job.
    await db.query(`UPDATE ${schema}.job SET fence = fence + 1000000 WHERE id = '${ctx.job.id}'`)
    await db.query('BEGIN')
    await db.query(`INSERT INTO ${table} VALUES ($1)`, [input])
    await ctx.completeIn(db).catch(async (error: unknown) => {
      errors.push(error)
      await db.query('ROLLBACK')
      throw error
    })
  })
  const refused = nextEvent(mill, 'settle.refused')
  await mill.enqueue(pay, 'a')
  await mill.worker({ queues: ['pays'] }).start()
  await refused
  expect(errors).toMatchObject([{ code: 'lease-lost' }])
  expect((await db.query(`SELECT id FROM ${table}`)).rows).toEqual([])
})

it('other stores refuse it, and name an alternative', async () => {
  const task = defineTask({ name: 'pay', retry: { max: 0 }, run: async (_: unknown, ctx) => ctx.completeIn({}) })
  const mill = millrace({ store: 'memory:', tasks: [task] })
  onTestFinished(() => mill.close())
  const failed = nextEvent(mill, 'job.failed')
  await mill.enqueue(task, null)
  await mill.worker().start()
  expect(await failed).toMatchObject({ error: { code: 'unsupported-by-store', message: /fence/ } })
})

const stages = ['written', 'completed', 'committed'] as const

it('processes that are killed around the commit leave one effect for each job', { timeout: 90_000 }, async () => {
  const { mill, pay, db, store, table } = await scene(async () => {})
  const jobs = 12
  await mill.enqueueMany(
    pay,
    Array.from({ length: jobs }, (_, n) => String(n)),
  )
  const program = `
    import { defineTask, millrace } from 'millrace'
    import pg from 'pg'
    const { TEST_STORE: store, TEST_STAGE: stage, TEST_TABLE: table } = process.env
    const pool = new pg.Pool({ connectionString: store.split('?')[0] })
    let runs = 0
    const pay = defineTask({ name: 'pay', queue: 'pays', async run(input, ctx) {
      runs += 1
      const dies = (at) => { if (stage === at && runs >= 3) process.kill(process.pid, 'SIGKILL') }
      const tx = await pool.connect()
      await tx.query('BEGIN')
      await tx.query('INSERT INTO ' + table + ' VALUES ($1)', [input])
      dies('written')
      await ctx.completeIn(tx)
      dies('completed')
      await tx.query('COMMIT')
      dies('committed')
      tx.release()
    } })
    const next = defineTask({ name: 'next', queue: 'nexts' })
    const mill = millrace({ store, tasks: [pay, next], queues: { pays: { lease: '3s' }, nexts: {} } })
    await mill.ready()
    const worker = mill.worker({ queues: ['pays'], concurrency: 2 })
    await worker.start()
    for (;;) {
      const [{ ready, running, scheduled }] = await mill.depths(['pays'])
      if (ready + running + scheduled === 0) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await mill.close()
    await pool.end()`
  for (const stage of [...stages, 'none']) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: root,
      env: { ...process.env, TEST_STORE: store, TEST_STAGE: stage, TEST_TABLE: table },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code, signal] = await once(child, 'close')
    expect([stage, code, signal]).toEqual(stage === 'none' ? [stage, 0, null] : [stage, null, 'SIGKILL'])
  }
  const { rows } = await db.query(`SELECT id, count(*)::int AS effects FROM ${table} GROUP BY id`)
  expect(rows).toHaveLength(jobs)
  expect(rows.filter(({ effects }) => effects !== 1)).toEqual([])
  expect((await mill.depths(['pays']))[0]).toMatchObject({ ready: 0, running: 0, processed: jobs })
})
