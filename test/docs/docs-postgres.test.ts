/** The guides whose programs need a Postgres: each runs on a database of its own, and prints what its page shows. */

import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { millrace } from 'millrace'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { postgresDatabase } from '../worker-postgres.js'
import { Document } from './document.js'
import { execute, folderOf, shownAfter } from './documented-project.js'

const timeout = 60_000

it('the guide for Drizzle commits an order and its job together, and the end of the job with the row', {
  timeout,
}, async () => {
  const path = 'docs/guides/drizzle.md'
  const env = { DATABASE_URL: await postgresDatabase() }
  const { status, stdout, stderr } = execute('server.mjs', folderOf(new Document(path)), env)

  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: shownAfter(path, 'server.mjs'), stderr: '' })
})

it('the guide for Prisma does the same, on the client that `prisma generate` makes of its schema', {
  timeout,
}, async () => {
  const path = 'docs/guides/prisma.md'
  const page = new Document(path)
  const cwd = folderOf(page)
  const made = join(root, 'test/stores/postgres/user/prisma-client.mjs')
  mkdirSync(join(cwd, 'generated'))
  symlinkSync(made, join(cwd, 'generated/client.js'))
  const url = await postgresDatabase()
  // Stands for a migration of Prisma.
  const db = new pg.Client(url)
  await db.connect()
  await db.query(
    'CREATE TABLE orders (id serial PRIMARY KEY, item text NOT NULL, shipped boolean NOT NULL DEFAULT false)',
  )
  await db.end()
  const { status, stdout, stderr } = execute('orders.mjs', cwd, { DATABASE_URL: url })

  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: shownAfter(path, 'orders.mjs'), stderr: '' })
  const { inlineSchema } = (await import(made)) as { inlineSchema: string }
  expect(page.blocks.map(({ text }) => text)).toContain(inlineSchema.trim())
})

it('the SQL of the page of the store enqueues, by hand and in a trigger', async () => {
  const url = await postgresDatabase()
  const mill = millrace({ store: url, queues: { default: {} } })
  onTestFinished(() => mill.close())
  await mill.ready()
  const db = new pg.Client(url)
  await db.connect()
  onTestFinished(() => db.end())
  const { blocks } = new Document('docs/stores/postgres.md')
  await db.query('CREATE TABLE orders (id serial PRIMARY KEY)')
  await db.query(blocks.find(({ text }) => text.includes('CREATE TRIGGER'))!.text)
  await db.query('INSERT INTO orders DEFAULT VALUES')

  expect([
    await mill.queue('default').jobs.get('ship-1'),
    await mill.queue('default').jobs.get('welcome-42'),
  ]).toMatchObject([
    { task: 'ship', state: 'ready', input: { order: 1 } },
    { task: 'send-email', state: 'scheduled', priority: 3, input: { to: 'ada@example.com' } },
  ])
})
