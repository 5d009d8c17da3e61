/** An isolated job that somebody ends: it is cancelled, its worker stops, or its process is told to end. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Mill, millrace, type Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { root } from '../cli/project.js'
import { nextEvent, recorded } from '../next-event.js'
import { tryWriteLock } from '../write-lock.js'

/**
 * The module of the tasks. `film` in a process of its own waits for the file `gate` while it is loaded; `spin` blocks
 * its process for ever; `cut` notes each run, prints, and returns once the file `end` is there; `dub` ends when it is cancelled, and what
 * is called after its end takes 6 s; `mix` is in a step when it is told to stop, which takes 1.5 s more, and then returns or fails.
 */
const tasks = (folder: string) => `
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
const file = (name) => ${JSON.stringify(`${folder}/`)} + name
if (process.argv[1]?.endsWith('process-child-entry.js')) {
  writeFileSync(file('loading'), '')
  while (!existsSync(file('gate'))) await new Promise((resolve) => setTimeout(resolve, 20))
}
const own = { isolate: 'process', module: import.meta.url, env: [], queue: 'films' }
export const film = defineTask({ ...own, name: 'film', run: async () => writeFileSync(file('begun'), '') })
export const spin = defineTask({
  ...own,
  name: 'spin',
  timeLimit: '1m',
  run() {
    for (;;);
  },
})
export const cut = defineTask({
  ...own,
  name: 'cut',
  timeLimit: '1m',
  async run() {
    appendFileSync(file('runs'), 'run ')
    while (!existsSync(file('end'))) await sleep(20)
    console.log('cut')
    writeFileSync(file('returned'), '')
    return 'done'
  },
})
export const dub = defineTask({
  ...own,
  name: 'dub',
  queue: 'dubs',
  timeLimit: '1m',
  run: (_, ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
})
const note = (name) => appendFileSync(file(name), 'noted ')
export const mix = defineTask({
  ...own,
  name: 'mix',
  timeLimit: '1m',
  async run(how, ctx) {
    if (existsSync(file('kept'))) {
      await ctx.step('work', () => note('worked'))
      return 'run again'
    }
    await ctx.step('work', async () => {
      note('worked')
      await new Promise((told) => {
        ctx.signal.addEventListener('abort', told)
        writeFileSync(file('pid'), String(process.pid))
      })
      await sleep(1_500)
      note('kept')
    })
    if (how === 'throws') throw new Error('told to stop')
    if (how === 'fails beside its handler') setTimeout(() => { throw new Error('a program of it is gone') })
    if (how === 'goes on') await new Promise(() => {})
    return how === 'returns' ? 'cut short' : sleep(60_000)
  },
})
const settle = ({ task }) => (task.name === 'dub' ? sleep(4_500).then(() => note('told')) : undefined)
const close = () => (existsSync(file('told')) ? sleep(1_500).then(() => note('closed')) : undefined)
export const mill = millrace({
  store: 'sqlite:' + file('jobs.db'),
  queues: { films: { lease: '10s' }, dubs: { lease: '3s' } },
  tasks: [film, spin, cut, dub, mix],
  middleware: [{ settle }],
  context: () => ({ [Symbol.asyncDispose]: async () => close() }),
})
`

async function scene() {
  const folder = mkdtempSync(join(root, 'test/end-to-end/ends-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'films.mjs')
  writeFileSync(module, tasks(folder))
  const made = (await import(pathToFileURL(module).href)) as {
    film: Task<'film', void>
    spin: Task<'spin', void>
    cut: Task<'cut', void, unknown, string>
    dub: Task<'dub', void>
    mix: Task<'mix', string, unknown, string>
    mill: Mill
  }
  onTestFinished(() => made.mill.close())
  const open = () => writeFileSync(join(folder, 'gate'), '')
  return { ...made, folder, store: `sqlite:${join(folder, 'jobs.db')}`, open }
}

it('a job that is cancelled while its process still loads is reported as cancelled, and no process as failed', {
  timeout: 60_000,
}, async () => {
  const { mill, film, open } = await scene()
  const failed = recorded(mill, 'process.failed')
  const cancelled = nextEvent(mill, 'job.cancelled')
  const job = await mill.enqueue(film, undefined)
  const worker = mill.worker()
  await worker.start()
  await expect.poll(() => job.status()).toBe('running')
  await job.cancel('not wanted')
  open()

  expect(await cancelled).toMatchObject({ id: job.id })
  expect(failed).toEqual([])
  expect(await job.status()).toBe('cancelled')
})

it('a busy process that a closing mill stops costs its job neither an attempt nor a crash', {
  timeout: 60_000,
}, async () => {
  const { mill, spin, store, open } = await scene()
  open()
  const job = await mill.enqueue(spin, undefined)
  const started = nextEvent(mill, 'job.started')
  const worker = mill.worker({ grace: 10 })
  await worker.start()
  await started
  const before = performance.now()
  await mill.close()

  expect(performance.now() - before).toBeLessThan(5_000)
  const other = millrace({ store, queues: { films: {} } })
  onTestFinished(() => other.close())
  expect(await other.queue('films').jobs.get(job.id)).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
})

it('a job that ends within the grace is not run again although its settle takes longer than the stop', {
  timeout: 60_000,
}, async () => {
  const { mill, cut, store, folder, open } = await scene()
  open()
  const job = await mill.enqueue(cut, undefined)
  const started = nextEvent(mill, 'job.started')
  const worker = mill.worker({ grace: 10 })
  await worker.start()
  await started
  const db = (await loadDriver())(join(folder, 'jobs.db'))
  onTestFinished(() => db.close())
  await expect.poll(() => tryWriteLock(db)).toBe(true)
  writeFileSync(join(folder, 'end'), '')
  await expect.poll(() => existsSync(join(folder, 'returned')), { timeout: 10_000 }).toBe(true)
  await worker.stop()
  db.exec('COMMIT')

  const other = millrace({ store, queues: { films: {} } })
  onTestFinished(() => other.close())
  const record = () => other.queue('films').jobs.get(job.id)
  await expect.poll(record, { timeout: 10_000 }).toMatchObject({ state: 'completed', crashes: 0, log: 'cut\n' })
  expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run ')
})

it('a process whose cancelled job is settled has the time of its hooks and of its context', {
  timeout: 60_000,
}, async () => {
  const { mill, dub, folder, open } = await scene()
  open()
  const job = await mill.enqueue(dub, undefined)
  const [started, cancelled] = [nextEvent(mill, 'job.started'), nextEvent(mill, 'job.cancelled')]
  const worker = mill.worker()
  await worker.start()
  await started
  await job.cancel('not wanted')
  await cancelled

  await expect.poll(() => existsSync(join(folder, 'closed')), { timeout: 15_000 }).toBe(true)
})

it.each(['returns', 'throws', 'fails beside its handler', 'goes on'])(
  'a process that gets SIGTERM lets its handler end, and the job goes back uncounted if that %s',
  { timeout: 60_000 },
  async (how) => {
    const { mill, mix, folder, open } = await scene()
    open()
    const released = recorded(mill, 'job.released')
    const job = await mill.enqueue(mix, how)
    await mill.worker().start()
    const pid = () => (existsSync(join(folder, 'pid')) ? Number(readFileSync(join(folder, 'pid'), 'utf8')) : 0)
    await expect.poll(pid, { timeout: 20_000 }).toBeGreaterThan(0)
    process.kill(pid(), 'SIGTERM')

    expect(await job.result({ timeout: '20s' })).toBe('run again')
    expect(released).toMatchObject([{ id: job.id, reason: 'interrupted', delayMs: 0 }])
    expect(await mill.queue('films').jobs.get(job.id)).toMatchObject({ attempt: 1, crashes: 0 })
    expect(readFileSync(join(folder, 'worked'), 'utf8').trim().split(/\s+/)).toHaveLength(1)
  },
)
