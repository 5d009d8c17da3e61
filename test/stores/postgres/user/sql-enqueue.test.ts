/** The function `enqueue` in SQL: for triggers, and for programs in other languages. */

import { bury, defineTask, millrace } from 'millrace'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { nextEvent } from '../../../next-event.js'
import { postgresStoreAddress, workerPostgres } from '../../../worker-postgres.js'

async function scene() {
  const store = await postgresStoreAddress()
  const schema = store.split('schema=')[1]!
  const seen: unknown[] = []
  const bill = defineTask({
    name: 'bill',
    queue: 'bills',
    run: async (input: { readonly returns?: number; readonly dies?: true }, { job }) => {
      seen.push({ input, id: job.id, meta: job.meta })
      return input.dies ? bury('refused') : input.returns
    },
  })
  const queue = { maxPending: 3, retention: { dead: { age: '30d' } } } as const
  const mill = millrace({ store, tasks: [bill], queues: { bills: queue } })
  onTestFinished(() => mill.close())
  await mill.ready()
  const sql = new pg.Client((await workerPostgres()).url)
  await sql.connect()
  onTestFinished(() => sql.end())
  const enqueue = async (...values: unknown[]) => {
    const places = values.map((_, i) => `$${i + 1}`)
    return (await sql.query(`SELECT ${schema}.enqueue(${places.join(', ')}) AS id`, values)).rows[0].id
  }
  return { mill, sql, schema, seen, enqueue }
}

it('a trigger enqueues with the row, and not if that is rolled back; a stranger needs USAGE and EXECUTE', async () => {
  const { mill, sql, schema, seen } = await scene()
  const [table, role] = [`sale_${schema}`, `seller_${schema}`]
  await sql.query(`
    CREATE TABLE ${table} (item text);
    CREATE FUNCTION ${table}_billed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM ${schema}.enqueue('bills', 'bill', json_build_object('item', NEW.item));
      RETURN NULL;
    END $$;
    CREATE TRIGGER billed AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION ${table}_billed();
    CREATE ROLE ${role}; GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT EXECUTE ON FUNCTION ${schema}.enqueue TO ${role}; GRANT INSERT ON ${table} TO ${role}; SET ROLE ${role}`)
  await sql.query(`BEGIN; INSERT INTO ${table} VALUES ('a pot'); ROLLBACK`)
  const completed = nextEvent(mill, 'job.completed')
  await mill.worker().start()
  await sql.query(`INSERT INTO ${table} VALUES ('a "cup"')`)
  await completed

  expect(seen).toMatchObject([{ input: { item: 'a "cup"' } }])
  await expect(sql.query(`SELECT * FROM ${schema}.job`)).rejects.toMatchObject({ code: '42501' })
})

it('takes an id, a delay, a priority, meta, and keeps the text of the input', async () => {
  const { mill, sql, schema, enqueue } = await scene()
  const options = { id: 'own', delay: '5m', expiresIn: 3_600_000, priority: 7, meta: { by: 'sql' } }
  expect(await enqueue('bills', 'bill', '{"b": 1,  "a": 2}', options)).toBe('own')
  expect(await enqueue('bills', 'bill', '{}', { id: 'own' })).toBe('own')

  const { rows } = await sql.query(
    `SELECT payload, meta, rank, stamp > extract(epoch FROM now()) * 1e6 + 290e6 AS later, expires_ms - created_ms AS lasts FROM ${schema}.job`,
  )
  expect(rows).toMatchObject([
    { payload: '{"b": 1,  "a": 2}', meta: '{"by": "sql"}', rank: -7, later: true, lasts: '3600000' },
  ])
  expect((await mill.depths(['bills']))[0]).toMatchObject({ scheduled: 1, ready: 0 })
})

const own = { id: 'own' }

it.each([
  ['the memory of it has ended', '{}', 'job.completed', 'until_ms = 1'],
  ['only the result of its job is kept', '{"returns": 1}', 'job.completed', 'remember_ms = 0'],
  ['its job has been dead for as long as dead jobs are kept', '{"dies": true}', 'job.buried', 'finished_ms = 1'],
] as const)('an id is free once %s, though nothing of its queue has ended since', async (_, input, end, late) => {
  const { mill, sql, schema, seen, enqueue } = await scene()
  const ended = nextEvent(mill, end)
  await enqueue('bills', 'bill', input, own)
  await mill.worker().start()
  await ended
  const { rowCount } = await sql.query(`UPDATE ${schema}.ended SET ${late} WHERE id = 'own'`)
  expect(rowCount).toBe(1)
  const again = nextEvent(mill, 'job.completed')
  expect(await enqueue('bills', 'bill', '{}', own)).toBe('own')
  await again

  expect(seen).toMatchObject([{ id: 'own' }, { id: 'own', input: {} }])
})

it('an id that is remembered enqueues nothing, and one in the morgue is refused', async () => {
  const { mill, seen, enqueue } = await scene()
  const [completed, buried] = [nextEvent(mill, 'job.completed'), nextEvent(mill, 'job.buried')]
  await enqueue('bills', 'bill', '{}', own)
  await enqueue('bills', 'bill', '{"dies": true}', { id: 'dead' })
  await mill.worker().start()
  await Promise.all([completed, buried])
  expect(await enqueue('bills', 'bill', '{}', own)).toBe('own')
  await expect(enqueue('bills', 'bill', '{}', { id: 'dead' })).rejects.toMatchObject({
    message: "millrace: a job with the id 'dead' is in the morgue of queue 'bills'",
    hint: expect.stringContaining('Revive that job or delete it'),
  })

  expect(seen).toHaveLength(2)
  expect((await mill.depths(['bills']))[0]).toMatchObject({ ready: 0, running: 0, dead: 1 })
})

it('takes fields, by which the job is found', async () => {
  const { mill, enqueue } = await scene()
  const fields = { order: 4711, paid: false, tenant: 'ü "a"' }
  const [id] = [await enqueue('bills', 'bill', '{}', { fields }), await enqueue('bills', 'bill', '{}', { fields: {} })]

  const { jobs } = await mill.queue('bills').jobs.list({ fields: { order: 4711 } })
  expect(jobs).toMatchObject([{ id, fields }])
})

const many = (n: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`field-${i}`, value]))

it('refuses fields that no job can have', async () => {
  const { mill, enqueue } = await scene()
  for (const [what, fields] of [
    ['null', null],
    ['a number', 5],
    ['a list', ['a']],
    ['a name with a blank', { 'an order': 1 }],
    ['a value of null', { order: null }],
    ['an object as a value', { order: {} }],
    ['a value of 257 bytes', { order: 'x'.repeat(255) }],
    ['a name of 65 letters', { ['x'.repeat(65)]: 1 }],
    ['the name __proto__', JSON.parse('{ "__proto__": 1 }')],
    ['33 fields', many(33, 1)],
    ['more than 4 KiB', many(32, 'x'.repeat(200))],
  ] as const)
    await expect(enqueue('bills', 'bill', '{}', { fields }), what).rejects.toThrow('fields must be an object of texts')
  expect((await mill.depths(['bills']))[0]).toMatchObject({ ready: 0 })
})

it('what it refuses ends the statement and says what to do', async () => {
  const { enqueue } = await scene()
  await expect(enqueue('bils', 'bill', '{}')).rejects.toThrow("there is no plain queue 'bils'")
  await expect(enqueue('bills', 'bill', '{}', { dely: '5m' })).rejects.toThrow('unknown option dely')
  await expect(enqueue('bills', '', '{}')).rejects.toThrow('must be the name of a task')
  await expect(enqueue('bills', 'bill', '{}', { id: 'x'.repeat(257) })).rejects.toThrow('1 to 256 bytes')
  for (let n = 0; n < 3; n += 1) await enqueue('bills', 'bill', '{}')
  await expect(enqueue('bills', 'bill', '{}')).rejects.toThrow("queue 'bills' is full")
})
