/** A mill on a Postgres store: by its address, and by a module of the user's. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { defineTask, type Mill, type MillOptions, millrace, postgresStore } from 'millrace'
import pg from 'pg'
import { expect, it, onTestFinished, vi } from 'vitest'
import { root } from '../../cli/project.js'
import { nextEvent } from '../../next-event.js'
import { postgresStoreAddress, workerPostgres } from '../../worker-postgres.js'

function closedMill(options: MillOptions): Mill {
  const mill = millrace(options)
  onTestFinished(() => mill.close())
  return mill
}

/** Runs the program with `store` in TEST_STORE; resolves with what it prints, and its exit code if that is not 0. */
async function printed(program: string, store: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { ...process.env, TEST_STORE: store },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  const [code] = await once(child, 'close')
  return code === 0 ? text : `${text}exit code ${code}`
}

it('a worker is woken by what another mill enqueues, and makes the schema that the namespace names', async () => {
  const { url } = await workerPostgres()
  const namespace = `shop-${process.pid}.jobs`
  const done: unknown[] = []
  const hello = defineTask({ name: 'hello', queue: 'greetings', run: async (name) => void done.push(name) })
  const mill = closedMill({ store: url, namespace, tasks: [hello] })
  await mill.worker().start()

  const producer = closedMill({ store: url, namespace, tasks: [hello] })
  for (const name of ['Ada', 'Grace']) {
    const completed = nextEvent(mill, 'job.completed')
    await producer.enqueue(hello, name)
    await completed
  }

  expect(done).toEqual(['Ada', 'Grace'])
  const eyes = new pg.Client(url)
  await eyes.connect()
  const { rows } = await eyes.query('SELECT nspname FROM pg_namespace WHERE nspname = $1', [namespace])
  await eyes.end()
  expect(rows).toHaveLength(1)
})

it('a handler that blocks its process for longer than its lease keeps its job: a thread renews it', async () => {
  const store = await postgresStoreAddress()
  const program = `
    import { defineTask, millrace } from 'millrace'
    const block = defineTask({ name: 'block', queue: 'q', run() {
      process.send?.('begun')
      // Longer than the lease, which is longer than a busy machine needs to start the thread.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 11_000)
    } })
    const mill = millrace({ store: process.env.TEST_STORE, tasks: [block], queues: { q: { lease: '9s' } } })
    const end = async (how) => { console.log(how); await mill.close(); process.disconnect?.() }
    mill.on('job.completed', () => end('completed'))
    mill.on('lease.lost', () => end('lost'))
    await mill.enqueue(block, null)
    await mill.worker().start()`
  const others: unknown[] = []
  const block = defineTask({ name: 'block', queue: 'q', run: async (_, ctx) => void others.push(ctx.job) })
  const mill = closedMill({ store, tasks: [block], queues: { q: { lease: '9s' } } })
  await mill.ready()
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { ...process.env, TEST_STORE: store },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let text = ''
  child.stdout!.on('data', (chunk) => (text += chunk))
  await once(child, 'message')
  await mill.worker().start()
  await once(child, 'close')

  expect({ text, others }).toEqual({ text: 'completed\n', others: [] })
}, 60_000)

it.each([
  ['a pool', (url: string) => new pg.Pool({ connectionString: url })],
  [
    'the configuration of a pool, with a password that is asked for',
    (url: string) => ({ connectionString: url, password: async () => 'any' }),
  ],
])('postgresStore() takes %s, and leaves it alone', async (_, poolAt) => {
  const { url } = await workerPostgres()
  const pool = poolAt(url)
  const namespace = `pooled_${process.pid}_${'options' in pool}`
  const store = await postgresStore({ pool, namespace })
  await store.open([{ name: 'mail', kind: 'plain', order: 'fifo' }])
  expect((await store.depth(['mail'])).depths).toMatchObject([{ ready: 0 }])
  await store.close()

  if (pool instanceof pg.Pool) {
    expect(pool.totalCount).toBe(0)
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  }
})

it('a program that has closed its mill goes on to its end', async () => {
  const program = `
    import { defineTask, millrace } from 'millrace'
    const hello = defineTask({ name: 'hello', run: async () => 'hello' })
    const mill = millrace({ store: process.env.TEST_STORE, tasks: [hello] })
    const job = await mill.enqueue(hello, null)
    await mill.worker().start()
    console.log(await job.result({ timeout: '20s' }))
    await mill.close()
    console.log('closed')`
  expect(await printed(program, await postgresStoreAddress())).toBe('hello\nclosed\n')
})

it('an address and a namespace that name two schemas are refused', async () => {
  const address = 'postgres://postgres@127.0.0.1:1/postgres?schema=one'
  expect(() => millrace({ store: address, namespace: 'two' })).toThrow(
    /the schema 'one', and `namespace` another, 'two'/,
  )
  await expect(postgresStore({ url: address, namespace: 'two' })).rejects.toMatchObject({ code: 'config-invalid' })
  expect(millrace({ store: address, namespace: 'one' }).store.text).toBe('postgres://postgres@127.0.0.1:1/postgres')
  expect(() => millrace({ store: 'postgres://h/db', namespace: 'pg_jobs' })).toThrow(
    /`namespace` is the name of a schema/,
  )
})

it('without pg the first call says what to install', async () => {
  const hooks = `data:text/javascript,${encodeURIComponent(
    `export const resolve = (name, context, next) => {
       if (name === 'pg') throw new Error("Cannot find package 'pg'")
       return next(name, context)
     }`,
  )}`
  const program = `
    import { register } from 'node:module'
    register(${JSON.stringify(hooks)})
    const { defineTask, millrace } = await import('millrace')
    const task = defineTask({ name: 'a' })
    const mill = millrace({ store: process.env.TEST_STORE, tasks: [task] })
    await mill.enqueue(task, 1).catch(({ code, message }) => console.log(code, message))
    await mill.close()`

  expect(await printed(program, 'postgres://postgres@127.0.0.1:1/postgres')).toMatch(
    /^config-invalid .*needs the package 'pg'.*Install it: npm install pg/s,
  )
})

it('the command line takes the address from the environment', async () => {
  const store = await postgresStoreAddress()
  const program = `
    import { writeFileSync, mkdtempSync } from 'node:fs'
    import { tmpdir } from 'node:os'
    import { join } from 'node:path'
    import { spawnSync } from 'node:child_process'
    const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
    const file = join(folder, 'millrace.config.mjs')
    writeFileSync(file, \`import { defineTask } from '\${import.meta.resolve('millrace')}'
      export default { store: 'memory:', tasks: [defineTask({ name: 'mail' })] }\`)
    const run = (...args) => spawnSync(process.execPath, [${JSON.stringify(join(root, 'dist/cli/main.js'))}, ...args, '--config', file],
      { encoding: 'utf8', env: { ...process.env, MILLRACE_STORE: process.env.TEST_STORE } })
    console.log(run('enqueue', 'mail', '1').stderr, run('stats', '--json').stdout)`

  expect(await printed(program, store)).toMatch(/"ready":1/)
})

it('a call that hangs when the mill closes has failed before it has closed', async () => {
  const store = await postgresStoreAddress()
  const [url, schema] = store.split('?schema=')
  const admin = new pg.Client(url)
  await admin.connect()
  onTestFinished(() => admin.end())
  const hang = defineTask({
    name: 'hang',
    run: async () => void (await admin.query(`BEGIN; LOCK TABLE ${schema}.job`)),
  })
  const mill = closedMill({ store, tasks: [hang] })
  const order: string[] = []
  mill.on('store.failed', ({ call }) => order.push(call))
  await mill.enqueue(hang, null)
  await mill.worker({ grace: 0 }).start()
  const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = '${schema}.job'::regclass`
  await vi.waitFor(async () => expect((await admin.query(waiting)).rowCount).toBe(1))
  await mill.close()
  order.push('closed')
  await admin.query('ROLLBACK')

  expect(order).toEqual(['settle', 'closed'])
})
