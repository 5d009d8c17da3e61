import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run, runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project } from '../project.js'

interface Workers {
  workers: {
    id: string
    host: string
    pid: number
    process: string
    queues: string[]
    slots: number
    running: number
  }[]
}
interface Queues {
  queues: { queue: string; waiting: number; running: number; workers: number }[]
}

/** What waits, runs and serves, by queue. */
async function use(cwd: string, env = {}): Promise<Record<string, number[]>> {
  const { queues } = await runJson<Queues>('queues list', { cwd, env })
  return Object.fromEntries(queues.map(({ queue, waiting, running, workers }) => [queue, [waiting, running, workers]]))
}

async function worker(cwd: string, queue: string, slots: number): Promise<number> {
  const args = ['work', '--json', '--queues', queue, '--concurrency', String(slots)]
  const [{ pid }] = (await new CommandProcess(args, { cwd, env: here }).events('worker.started')) as [{ pid: number }]
  return pid
}

/** How many workers have been heard of: one has started before its first beat is stored. */
async function known(cwd: string): Promise<number> {
  return (await runJson<Workers>('workers', { cwd, env: here })).workers.length
}

const here = { MILLRACE_HOST: 'here' }
const elsewhere = { MILLRACE_HOST: 'elsewhere' }

/** A worker that nobody watches over, and of which nobody hears where it dies. */
const loneWorker = `
import { defineTask, millrace } from 'millrace'
const hold = defineTask({ name: 'hold', queue: 'slow', run: async () => {} })
const mill = millrace({ store: 'sqlite:jobs.db', tasks: [hold] })
await mill.worker().start()
console.log(JSON.stringify({ event: 'started' }))
`

describe('workers and queues list', { timeout: 60_000 }, () => {
  it('show that nobody serves', async () => {
    const cwd = project()
    await runJson('enqueue echo 1', { cwd })
    await runJson('enqueue echo 1 --delay 1h', { cwd })

    expect(await use(cwd)).toEqual({ default: [2, 0, 0], slow: [0, 0, 0] })
    expect(await run('workers', { cwd })).toMatchObject({ code: 0, stdout: 'no worker runs\n', stderr: '' })
    expect(await runJson('workers list', { cwd })).toEqual({ workers: [] })
    expect(await runJson('workers', { cwd })).toEqual({ workers: [] })
    expect(await run('workers --queue nowhere', { cwd })).toMatchObject({ code: 2, stdout: '' })
  })

  it('count the workers of each queue, and show where they run and how busy they are', async () => {
    const cwd = project()
    for (const id of ['a', 'b', 'c'])
      await runJson(['enqueue', 'hold', JSON.stringify(join(cwd, 'go')), '--id', id], { cwd })
    const pid = await worker(cwd, 'slow', 2)
    await worker(cwd, 'default,slow', 3)
    const env = here
    await expect.poll(() => known(cwd), { timeout: 20_000 }).toBe(2)

    const { workers } = await runJson<Workers>('workers --queue default', { cwd, env })
    expect(workers).toEqual([
      expect.objectContaining({ host: 'here', process: 'alive', queues: ['default', 'slow'], slots: 3 }),
    ])
    expect((await use(cwd, env))['default']).toEqual([0, 0, 1])
    expect((await use(cwd, env))['slow']![2]).toBe(2)
    expect(workers[0]).toMatchObject({ state: 'running', selector: 'reduced-lottery', version: expect.any(String) })
    expect(workers[0]).toMatchObject({ tasks: expect.any(Number), rssBytes: expect.any(Number) })
    const { stdout } = await run('workers', { cwd, env })
    expect(stdout.split('\n')[0]).toMatch(/^2 workers, \d of 5 slots in use$/)
    const stats = await run('stats', { cwd, env })
    expect(stats.stdout.split('\n')[0]).toMatch(/ · 2 workers, \d of 5 slots in use, heard (now|\d+(\.\d+)?m?s ago)$/)
    const { at, workers: all } = await runJson<{ at: string; workers: { seenAt: string } }>('stats', { cwd, env })
    expect(Date.parse(at) - Date.parse(all.seenAt)).toBeLessThan(15_000)
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toContainEqual([
      'here',
      String(pid),
      'alive',
      expect.stringMatching(/^\d+ MB$/),
      expect.stringMatching(/^\d\/2$/),
      expect.stringMatching(/^(now|.* ago)$/),
      expect.stringMatching(/^(now|.* ago)$/),
      'slow',
      expect.stringContaining(`/${pid}/`),
    ])
    writeFileSync(join(cwd, 'go'), '')
  })

  it('stop counting a killed worker at once; if its death cannot be seen, they show its last report', async () => {
    const cwd = project()
    const script = join(cwd, 'lone-worker.mjs')
    writeFileSync(script, loneWorker)
    const lone = new CommandProcess([], { cwd, env: here, script })
    await lone.events('started')
    await expect.poll(() => known(cwd), { timeout: 20_000 }).toBe(1)
    expect((await use(cwd, here))['slow']).toEqual([0, 0, 1])
    lone.kill('SIGKILL')
    await lone.end()

    const dead = await runJson<Workers>('workers', { cwd, env: here })
    expect(dead.workers).toEqual([expect.objectContaining({ pid: lone.pid, process: 'dead' })])
    expect((await use(cwd, here))['slow']).toEqual([0, 0, 0])
    expect(await runJson('stats', { cwd, env: here })).toMatchObject({ workers: { count: 0, slots: 0, running: 0 } })
    expect((await run('workers', { cwd, env: here })).stdout).toMatch(/^no worker runs\nhost .*\nhere .* dead /)

    const unknown = await runJson<Workers>('workers', { cwd, env: elsewhere })
    expect(unknown.workers).toEqual([expect.objectContaining({ process: 'unknown', seenAt: expect.any(String) })])
    expect((await use(cwd, elsewhere))['slow']).toEqual([0, 0, 1])
    expect((await run('workers', { cwd, env: elsewhere })).stdout).toMatch(/\nhere .* unknown .* (now|\d+m?s ago) /)
  })
})

/** Prints when its worker has stopped by itself. */
const obedientWorker = `
import { defineTask, millrace } from 'millrace'
const hold = defineTask({ name: 'hold', queue: 'slow', run: async () => {} })
const mill = millrace({ store: 'sqlite:jobs.db', tasks: [hold] })
const worker = mill.worker()
mill.on('worker.signalled', ({ signal }) => console.log(JSON.stringify({ event: 'signalled', signal })))
await worker.start()
await worker.finished()
await mill.close()
console.log(JSON.stringify({ event: 'finished' }))
`

describe('signals to workers', { timeout: 60_000 }, () => {
  /** The id of the one worker that lives. */
  async function idOf(cwd: string): Promise<string> {
    await expect.poll(() => known(cwd), { timeout: 20_000 }).toBe(1)
    return (await runJson<Workers>('workers', { cwd, env: here })).workers[0]!.id
  }

  it('replace the worker on recycle, and not on stop', async () => {
    const cwd = project()
    const command = new CommandProcess('work --json', { cwd, env: here })
    const [first] = await command.events('worker.started')
    expect(await runJson<object>(['workers', 'recycle', await idOf(cwd)], { cwd, env: here })).toMatchObject({
      signal: 'recycle',
    })
    expect(await command.events('worker.recycling')).toMatchObject([{ pid: first!.pid, reason: 'signalled' }])
    const [, second] = await command.events('worker.started', 2)
    expect(second!.pid).not.toBe(first!.pid)
    await command.events('worker.stopped')
    expect((await run(['workers', 'stop', await idOf(cwd)], { cwd, env: here })).stdout).toMatch(/: told to stop\.\n$/)
    const { code, stdout, stderr } = await command.end()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toMatch(/process\.exited/)
    expect(await runJson('workers', { cwd, env: here })).toEqual({ workers: [] })
  })

  it('stop an unsupervised worker in either case', async () => {
    const cwd = project()
    const script = join(cwd, 'obedient-worker.mjs')
    writeFileSync(script, obedientWorker)
    const lone = new CommandProcess([], { cwd, env: here, script })
    await run(['workers', 'recycle', await idOf(cwd)], { cwd, env: here })
    expect(await lone.events('signalled')).toMatchObject([{ signal: 'recycle' }])
    await lone.events('finished')
    expect((await lone.end()).code).toBe(0)
  })

  it('are refused if there is no such worker', async () => {
    const cwd = project()
    expect(await run('workers stop nobody', { cwd })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no worker 'nobody'; `millrace workers list` shows the live ones."),
    })
  })
})
