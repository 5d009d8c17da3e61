/** Joins on the command line: what waits is counted and shown, and a dead join is revived with its members. */

import { join } from 'node:path'
import { defineTask, type Mill, many, millrace } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { run, runJson } from './command-in-process.js'
import { project } from './project.js'

const row = defineTask({
  name: 'row',
  queue: 'rows',
  retry: { max: 0 },
  run: async (n: number) => {
    if (n === 7) throw new Error('row 7 is broken')
    return n
  },
})
const table = defineTask({ name: 'table', queue: 'tables', joins: { rows: many(row) }, run: async () => 'done' })
const books = defineTask({ name: 'books', joins: { table }, run: async () => 'bound' })
const tasks = [row, table, books] as const
const config = `
import { defineTask, many, millrace } from 'millrace'
const row = defineTask({ name: 'row', queue: 'rows', run: async () => {} })
const table = defineTask({ name: 'table', queue: 'tables', joins: { rows: many(row) }, run: async () => {} })
const books = defineTask({ name: 'books', joins: { table }, run: async () => {} })
export default millrace({ store: 'sqlite:jobs.db', tasks: [row, table, books] })
`

/** A project, and a mill on its store. */
function made(edit = (text: string) => text): { readonly cwd: string; readonly mill: Mill } {
  const cwd = project({ 'package.json': '{"type":"module"}', 'millrace.config.js': edit(config) })
  const mill = millrace({ store: `sqlite:${join(cwd, 'jobs.db')}`, tasks })
  onTestFinished(() => mill.close())
  return { cwd, mill }
}

const bind = (mill: Mill, ...numbers: number[]) =>
  mill.flow((f) => {
    const rows = f.jobs(row, numbers)
    return {
      rows,
      table: f.job(table, undefined, { after: { rows }, id: 'table' }),
      books: f.job(books, undefined, { id: 'books', after: { table: f.job(table, undefined, { after: { rows } }) } }),
    }
  })

it('stats has a column for jobs that wait for others, if there are some', async () => {
  const { cwd, mill } = made()
  const before = await run('stats', { cwd })
  await bind(mill, 1)
  const after = await run('stats', { cwd })

  expect(before.stdout).not.toMatch(/waiting/)
  expect(after.stdout).toMatch(/ready +scheduled +waiting +running/)
  expect(after.stdout).toMatch(/^tables +0 +0 +2 +0/m)
})

it('morgue revive --members revives a dead join with its members, and theirs', async () => {
  const { cwd, mill } = made()
  const { books: bound } = await bind(mill, 1, 7)
  const worker = mill.worker({ queues: ['rows', 'tables', 'default'] })
  await worker.start()
  await expect(bound.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-dead' })
  await worker.stop()

  expect(await runJson('morgue revive default books --members', { cwd })).toEqual({ queue: 'default', revived: 3 })
  expect(await bound.status()).toBe('waiting')
  expect((await mill.queue('rows').depth()).ready).toBe(1)
  const again = await run('morgue revive default books --members', { cwd })
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/1 of 1 job was left as it is.*'books' is not there/),
  })
})

it('jobs show says why a join is dead, and that the members of one that has ended are no longer listed', async () => {
  const { cwd, mill } = made()
  await bind(mill, 7)
  await mill.enqueue(table, undefined, { id: 'empty', after: { rows: [] } })
  const worker = mill.worker({ queues: ['rows', 'tables', 'default'] })
  await worker.start()
  await expect(mill.job(books, 'books').result({ timeout: '10s' })).rejects.toThrow(/is dead: Error: row 7 is broken$/)
  await mill.job(table, 'empty').result({ timeout: '10s' })
  await worker.stop()

  expect((await run('jobs show default books', { cwd })).stdout).toMatch(/member .* is dead: Error: row 7 is broken/)
  expect((await run('jobs show tables empty', { cwd })).stdout).toMatch(/waited for\n +other jobs\. It has ended/)
  expect(await runJson('jobs show tables empty', { cwd })).toMatchObject({ join: { sets: [] } })
})

it('morgue revive says why a join stays dead', async () => {
  const { cwd, mill } = made()
  const { rows, table: joined } = await bind(mill, 1, 2)
  await rows[0]!.cancel()
  expect(await joined.status()).toBe('dead')

  for (const more of ['', ' --members'])
    expect(await run(`morgue revive tables table${more}`, { cwd })).toMatchObject({
      ...{
        code: 1,
        stderr: expect.stringMatching(/stayed dead, because a job that it waits for was cancelled.*'table'/),
      },
    })
})

it('morgue revive says nothing of a job that has died again meanwhile', async () => {
  const again = `
const queue = mill.queue('rows')
const { revive } = queue.morgue
queue.morgue.revive = async (which) => {
  const revived = await revive(which)
  await queue.jobs.bury(which)
  return revived
}
mill.queue = () => queue
`
  const { cwd, mill } = made((text) => `${text.replace('export default', 'const mill =')}${again}export default mill`)
  const buried = await mill.enqueue(row, 1, { id: 'row' })
  await mill.queue('rows').jobs.bury(['row'])

  expect(await run('morgue revive rows row', { cwd })).toMatchObject({ code: 0, stdout: 'rows: 1 job revived.\n' })
  expect(await buried.status()).toBe('dead')
})

it('morgue revive --members counts the jobs that it left, however many are named', async () => {
  const { cwd, mill } = made()
  const ids = Array.from({ length: 101 }, (_, i) => `row-${i}`)
  await mill.enqueueMany(ids.map((id, n) => [row, n, { id }] as const))
  await mill.queue('rows').jobs.bury(ids)

  expect(await run(`morgue revive rows ${ids.join(' ')} nobody --members`, { cwd })).toMatchObject({
    ...{ code: 1, stdout: 'rows: 101 jobs revived.\n' },
    stderr: expect.stringMatching(/1 of 102 jobs was left as it is.*'nobody' is not there/),
  })
})
