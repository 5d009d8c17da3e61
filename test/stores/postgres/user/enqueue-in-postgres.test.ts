/** `enqueueIn` on a Postgres store: in the transactions of the clients that users have. */

import { bury, type Death, defineTask, type Mill, type MillOptions, millrace } from 'millrace'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { nextEvent } from '../../../next-event.js'
import { lentPostgresAddress, schemaOf, workerPostgres } from '../../../worker-postgres.js'
import { type Client, clients, type Isolation } from './postgres-clients.js'

interface Bill {
  readonly text: string
}

const hostile = `'); DROP TABLE orders; -- "x" \\' \\\\ $1 ?? :name {a,"b"} NULL\n\0\u0001 ÿ 𝄞`

/** A mill on a schema that nobody else uses, and what its jobs were given. */
async function scene(options: Partial<MillOptions> = {}) {
  const seen: string[] = []
  const store = await lentPostgresAddress()
  const bill = defineTask({ name: 'bill', queue: 'bills', run: async ({ text }: Bill) => void seen.push(text) })
  const mill = millrace({ store, tasks: [bill], queues: { bills: {} }, ...options })
  onTestFinished(() => mill.close())
  await mill.ready()
  return { mill, seen, bill, schema: schemaOf(store) }
}

const waiting = async (mill: Mill) => (await mill.depths(['bills']))[0]!.ready

const isolations: readonly Isolation[] = ['read committed', 'serializable']

describe.each(Object.keys(clients))('in a transaction of %s', (name) => {
  let client: Client
  beforeAll(async () => {
    const { url } = await workerPostgres()
    client = await clients[name]!(url)
  })
  afterAll(() => client.close())

  it.each(isolations)('a job is committed with the rows, and rolled back with them (%s)', async (isolation) => {
    const { mill, seen, bill } = await scene()
    const eyes = await ownOrders()

    await client.transact(isolation, async ({ tx, run }) => {
      await run(eyes.insert, hostile.replace('\0', ''))
      const handle = await mill.enqueueIn(
        tx,
        bill,
        { text: hostile },
        { id: `hostile-${'"\\\''}`, meta: { by: hostile } },
      )
      expect(handle.outcome).toBe('added')
      expect(await waiting(mill)).toBe(0)
    })
    const failed = client.transact(isolation, async ({ tx, run }) => {
      await run(eyes.insert, 'never')
      await mill.enqueueIn(tx, bill, { text: 'never' })
      throw new Error('the user changes his mind')
    })
    await expect(failed).rejects.toThrow('changes his mind')

    expect(await eyes.items()).toEqual([hostile.replace('\0', '')])
    expect(await waiting(mill)).toBe(1)
    const completed = nextEvent(mill, 'job.completed')
    await mill.worker().start()
    await completed
    expect(seen).toEqual([hostile])
  })

  it.skipIf(name === 'a function')(
    'what the client has outside a transaction is refused, and stores nothing',
    async () => {
      const { mill, bill } = await scene()
      for (const outside of client.outside)
        await expect(mill.enqueueIn(outside, bill, { text: 'a cup' })).rejects.toMatchObject({
          code: 'argument-invalid',
          message: expect.stringContaining('each statement is committed by itself. Give '),
        })

      expect(client.outside.length).toBeGreaterThan(0)
      expect(await waiting(mill)).toBe(0)
    },
  )

  it('a job of a task with onDead has its death reported as any', async () => {
    const told: unknown[] = []
    const report = defineTask({ name: 'report', run: async ({ job }: Death) => void told.push(job) })
    const send = defineTask({ name: 'send', onDead: report, run: async () => bury('refused') })
    const { mill } = await scene({ tasks: [send, report], queues: {} })
    const done = nextEvent(mill, 'job.completed')
    await client.transact('read committed', async ({ tx }) => void (await mill.enqueueIn(tx, send, 1, { id: 'a' })))
    await mill.worker().start()
    await done
    expect(told).toEqual(['a'])
  })

  it('a refusal is an answer: the transaction goes on', async () => {
    const { mill, bill } = await scene({ queues: { bills: { maxPending: 1 } } })
    const eyes = await ownOrders()
    await client.transact('read committed', async ({ tx, run }) => {
      const first = await mill.enqueueIn(tx, bill, { text: 'a' }, { id: 'a' })
      expect((await mill.enqueueIn(tx, bill, { text: 'b' }, { id: 'a' })).outcome).toBe('duplicate')
      await expect(mill.enqueueIn(tx, bill, { text: 'c' })).rejects.toMatchObject({ code: 'queue-full' })
      expect((await mill.enqueueIn(tx, bill, { text: 'd' }, { id: 'a', ifWaiting: 'replace' })).outcome).toBe(
        'replaced',
      )
      await run(eyes.insert, first.id)
    })
    expect(await eyes.items()).toEqual(['a'])
    expect(await waiting(mill)).toBe(1)
  })

  it('an error of the server says its remedy, however the client wraps it', async () => {
    const { mill, bill } = await scene()
    const readOnly = client.transact('read committed', async ({ tx, run }) => {
      await run(`SELECT set_config('transaction_read_only', $1, true)`, 'on')
      await mill.enqueueIn(tx, bill, { text: 'never' })
    })

    await expect(readOnly).rejects.toMatchObject({
      code: 'argument-invalid',
      message: expect.stringContaining('Begin it READ WRITE'),
    })
    // Knex writes the statement into the error of the server itself.
    if (name !== 'Knex') await expect(readOnly).rejects.not.toThrow('set_config')
  })

  // Those of postgres.js go on without a word, and a function says nothing of its own.
  it.skipIf(/postgres\.js|function/.test(name))('no job is enqueued once it has ended', async () => {
    const { mill, bill } = await scene()
    let ended: object = {}
    await client.transact('read committed', async ({ tx }) => {
      ended = tx
    })

    await expect(mill.enqueueIn(ended, bill, { text: 'late' })).rejects.toBeInstanceOf(Error)
    expect(await waiting(mill)).toBe(0)
  })
})

describe.each(['pg', 'Drizzle on pg'])('in a transaction of %s', (name) => {
  it('a call that is not awaited says that its job was committed by itself', async () => {
    const { mill, bill } = await scene()
    const client = await clients[name]!((await workerPostgres()).url)
    onTestFinished(() => void client.close())
    const calls: Promise<unknown>[] = []
    await client.transact('read committed', async ({ tx }) => {
      calls.push(mill.enqueueIn(tx, bill, { text: 'a cup' }).catch((error: unknown) => error))
    })

    expect(await calls[0]).toMatchObject({
      code: 'argument-invalid',
      message: expect.stringMatching(/had ended when the statement was sent.*committed by itself\. Await the call/),
    })
  })
})

let made = 0
/** A table of the user's, and who looks at it from outside. */
async function ownOrders() {
  const { url } = await workerPostgres()
  const eyes = new pg.Client(url)
  await eyes.connect()
  onTestFinished(() => eyes.end())
  made += 1
  const table = `orders_${process.pid}_${made}`
  await eyes.query(`CREATE TABLE ${table} (item text)`)
  return {
    eyes,
    insert: `INSERT INTO ${table} VALUES ($1)`,
    items: async () => (await eyes.query(`SELECT item FROM ${table}`)).rows.map(({ item }) => item),
  }
}

describe('a worker', () => {
  it('that waits is woken by the commit, and finds by itself what was enqueued with wake: false', async () => {
    const { mill, seen, bill } = await scene()
    const { eyes } = await ownOrders()
    const waiter = nextEvent(mill, 'job.completed')
    await mill.worker().start()
    await eyes.query('BEGIN')
    await mill.enqueueIn(eyes, bill, { text: 'rung' })
    await eyes.query('COMMIT')
    await waiter

    const found = nextEvent(mill, 'job.completed')
    await eyes.query('BEGIN')
    await mill.enqueueIn(eyes, bill, { text: 'found' }, { wake: false })
    await eyes.query('COMMIT')
    await found
    expect(seen).toEqual(['rung', 'found'])
  })

  it('is rung inside the transaction only if it waits, and not with wake: false', async () => {
    const { mill, bill, schema } = await scene()
    const { eyes } = await ownOrders()
    const heard: string[] = []
    eyes.on('notification', ({ channel }) => heard.push(channel))
    await eyes.query('LISTEN someone')
    const committed = async (text: string, options = {}) => {
      await eyes.query('BEGIN')
      await mill.enqueueIn(eyes, bill, { text }, options)
      await eyes.query('COMMIT')
    }
    await committed('nobody waits')
    await eyes.query(
      `INSERT INTO ${schema}.waiter (qid, channel, backend) SELECT qid, 'someone', pg_backend_pid() FROM ${schema}.queue`,
    )
    await committed('asleep', { wake: false })
    expect(heard).toEqual([])
    await committed('rung')
    expect(heard).toEqual(['someone'])
  })
})

it('nobody waits for a transaction that stays open, in a bounded queue either', async () => {
  const { mill, bill } = await scene({ queues: { bills: { maxPending: 10 } } })
  const { eyes } = await ownOrders()
  await eyes.query('BEGIN')
  await mill.enqueueIn(eyes, bill, { text: 'open' })
  await mill.enqueue(bill, { text: 'other' })
  expect(await waiting(mill)).toBe(1)
  const completed = nextEvent(mill, 'job.completed')
  await mill.worker().start()
  await completed
  await eyes.query('COMMIT')
})

it('a middleware may wait, and sees the job', async () => {
  const jobs: unknown[] = []
  const { mill, bill } = await scene({
    middleware: [
      {
        async enqueue(items, next) {
          await new Promise((resolve) => setImmediate(resolve))
          items[0]!.options = { ...items[0]!.options, priority: 3 }
          await next()
          jobs.push(items[0]!.job?.id)
        },
      },
    ],
  })
  const { eyes } = await ownOrders()
  await eyes.query('BEGIN')
  await mill.enqueueIn(eyes, bill, { text: 'a' }, { id: 'a' })
  await eyes.query('COMMIT')
  expect(jobs).toEqual(['a'])
})

describe('a client of pg', () => {
  it('is in a transaction once BEGIN was sent, whether or not it has arrived', async () => {
    const { mill, bill } = await scene()
    const { eyes } = await ownOrders()
    void eyes.query('BEGIN')
    await mill.enqueueIn(eyes, bill, { text: 'a cup' })
    await eyes.query('ROLLBACK')

    expect(await waiting(mill)).toBe(0)
    await expect(mill.enqueueIn(eyes, bill, { text: 'a cup' })).rejects.toMatchObject({ code: 'argument-invalid' })
  })
})

describe('what cannot be used', () => {
  it('is refused with a remedy', async () => {
    const { mill, bill } = await scene()
    const { eyes } = await ownOrders()
    const refused = (tx: object, text: RegExp, code = 'argument-invalid') =>
      expect(mill.enqueueIn(tx, bill, { text: '' })).rejects.toMatchObject({
        code,
        message: expect.stringMatching(text),
      })

    await refused({}, /expected a transaction of pg, postgres\.js, Drizzle.*\(sql, params\) => rows/)
    await refused(async () => 5, /answered a statement with .*5.*must resolve with the rows/)
    await eyes.query('BEGIN READ ONLY')
    await refused(eyes, /read-only\. Begin it READ WRITE/)
    await refused(eyes, /an earlier statement of this transaction has failed.*Roll it back/)
    await eyes.query('ROLLBACK')

    const other = `other_${process.pid}`
    await eyes.query(`CREATE DATABASE ${other}`)
    const elsewhere = new pg.Client((await workerPostgres()).url.replace(/postgres$/, other))
    await elsewhere.connect()
    await elsewhere.query('BEGIN')
    await refused(elsewhere, /does not hold the jobs of the mill in its schema 'mill_.*the database of the store/)
    await elsewhere.end()

    await eyes.query(`CREATE ROLE stranger_${process.pid}; SET ROLE stranger_${process.pid}; BEGIN`)
    await refused(eyes, /may not use the schema 'mill_.*Grant it/, 'store-refused')
    expect(() => mill.enqueueIn(eyes, bill, { text: '' }, { wake: 1 as never })).toThrow(
      /wake must be true or false; got 1/,
    )
  })

  it('an error that says to begin anew comes as the client throws it', async () => {
    const { mill, bill } = await scene()
    const { eyes } = await ownOrders()
    await eyes.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    await mill.enqueue(bill, { text: 'a' }, { id: 'a' })
    await expect(mill.enqueueIn(eyes, bill, { text: 'b' }, { id: 'a' })).rejects.toMatchObject({ code: '40001' })
    await eyes.query('ROLLBACK')
  })
})
