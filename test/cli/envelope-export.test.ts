/** What `jobs list --envelope` writes, and what it names because it cannot move. */

import { join } from 'node:path'
import { defineSignal, defineTask, type Mill, many, millrace } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { nextEvent } from '../next-event.js'
import { run } from './command-in-process.js'
import { project } from './project.js'

const approved = defineSignal({ name: 'approved' })
const order = defineTask({
  name: 'order',
  queue: 'orders',
  async run(_: unknown, ctx) {
    await ctx.step('charge', () => 'R-1')
    if (ctx.job.id === 'asleep') await ctx.sleep('cool-off', '3d')
    await ctx.waitFor(approved, { timeout: '7d' })
  },
})
const row = defineTask({ name: 'row', queue: 'rows', run: async () => {} })
const table = defineTask({ name: 'table', queue: 'tables', joins: { rows: many(row) }, run: async () => {} })
const config = `
import { defineTask, many, millrace } from 'millrace'
const order = defineTask({ name: 'order', queue: 'orders' })
const row = defineTask({ name: 'row', queue: 'rows', run: async () => {} })
const table = defineTask({ name: 'table', queue: 'tables', joins: { rows: many(row) }, run: async () => {} })
export default millrace({ store: 'sqlite:jobs.db', tasks: [order, row, table] })
`

/** A project, and a mill on its store. */
function made(): { readonly cwd: string; readonly mill: Mill } {
  const cwd = project({ 'package.json': '{"type":"module"}', 'millrace.config.js': config })
  const mill = millrace({ store: `sqlite:${join(cwd, 'jobs.db')}`, tasks: [order, row, table] })
  onTestFinished(() => mill.close())
  return { cwd, mill }
}

const idsIn = (lines: string): string[] =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).id)
    .sort()

it('jobs that wait for a signal, or have done steps, are named, and not written', async () => {
  const { cwd, mill } = made()
  for (const id of ['awaits', 'asleep']) await mill.enqueue(order, {}, { id })
  const suspended = ['awaits', 'asleep'].map((id) => nextEvent(mill, 'job.released', (job) => job.id === id))
  const worker = mill.worker()
  await worker.start()
  await Promise.all(suspended)
  await worker.stop()
  await mill.enqueue(order, {}, { id: 'fresh' })

  const { code, stdout, stderr } = await run('jobs list orders --envelope', { cwd })
  expect({ code, ids: idsIn(stdout) }).toEqual({ code: 1, ids: ['fresh'] })
  expect(stderr).toMatch(/2 jobs .*orders asleep.*steps/)
  expect(stderr).toMatch(/orders awaits.*signal 'approved'/)
  const ready = await run('jobs list orders --envelope --state ready', { cwd })
  expect(ready).toMatchObject({ code: 0, stderr: '' })
})

it('jobs of a join are named, and neither it nor its members are written', async () => {
  const { cwd, mill } = made()
  await mill.flow((f) => f.job(table, undefined, { id: 'table', after: { rows: f.jobs(row, [1, 2]) } }))
  await mill.enqueue(row, undefined, { id: 'alone' })

  const { code, stdout, stderr } = await run('jobs list --envelope', { cwd })
  expect({ code, ids: idsIn(stdout) }).toEqual({ code: 1, ids: ['alone'] })
  expect(stderr).toMatch(/3 jobs .*tables table waits for other jobs/)
})

it('a filter chooses the jobs that are written', async () => {
  const { cwd, mill } = made()
  await mill.enqueue(row, 1, { id: 'a-1', group: 'a', fields: { n: 1 } })
  await mill.enqueue(row, 2, { id: 'a-2', group: 'a', delay: '1h' })
  await mill.enqueue(row, 3, { id: 'b-1', group: 'b' })
  const ids = async (words: string) => idsIn((await run(`jobs list rows --envelope ${words}`, { cwd })).stdout)

  expect(await ids('--group a')).toEqual(['a-1', 'a-2'])
  expect(await ids('--field n=1')).toEqual(['a-1'])
  expect(await ids('--text b-1')).toEqual(['b-1'])
  expect(await ids('--from 2100-01-01T00:00:00Z')).toEqual([])
  expect(await ids('--to 2100-01-01T00:00:00Z --task row')).toEqual(['a-1', 'a-2', 'b-1'])
  expect(await run('jobs list rows --envelope --limit 2', { cwd })).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--by and --limit'),
  })
})
