import { rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { CommandProcess } from '../../cli/command-process.js'
import { livingIn } from '../../process-group.js'
import { begins, brief, busy, deadAfter, deaf, die, type LongProject, longProject, wait } from './long-project.js'

const longest = { timeout: 60_000 }
/** In which a process ends that is not to outlive its worker: it looks every 200 ms, and its handler and its store have their time. */
const orphanedMs = 200 + 700 + 400
/** What all that may take longer on a busy machine. */
const busyMs = 2_000

function record({ mill }: LongProject, id: string) {
  return mill.queue('long').jobs.get(id)
}

/** The process of the first job that begins. */
async function firstOf(of: LongProject): Promise<number> {
  return (await begins(of))[0]!.pid
}

/** Its supervisor starts another at once. */
async function killWorker(command: CommandProcess): Promise<void> {
  const [{ pid }] = (await command.events('worker.started')) as [{ pid: number }]
  process.kill(pid, 'SIGKILL')
}

/** The record as soon as it is like that. */
function recordThat(
  of: LongProject,
  id: string,
  is: (job: NonNullable<Awaited<ReturnType<typeof record>>>) => boolean,
) {
  const look = async () => {
    const job = await record(of, id)
    return job !== undefined && is(job) ? job : undefined
  }
  return poll(look, { what: `job ${id} is like that`, withinMs: 20_000 })
}

/** Keeps the processes of jobs from loading anything while the file is there. */
const heldBack = `
const { existsSync } = require('node:fs')
const never = new Int32Array(new SharedArrayBuffer(4))
while (process.argv[1]?.endsWith('process-child-entry.js') && existsSync('hold')) Atomics.wait(never, 0, 0, 20)
`

describe('an isolated job', longest, () => {
  it('shows where it runs, its progress, its checkpoint and its output, while it runs and after', async () => {
    const of = await longProject()
    const worker = of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const pid = await firstOf(of)

    const running = await recordThat(of, job.id, ({ progress, log }) => progress?.fraction === 0.5 && log !== undefined)
    expect(running).toMatchObject({
      ...{ state: 'running', attempt: 1, pid, progress: { fraction: 0.5, note: 'half way' } },
      ...{ checkpoint: { begun: true, before: null }, log: `waits for ${of.file('go')}\n` },
      fields: { child: pid, slot: 0, told: '0' },
    })
    expect(running.startedAt).toBeInstanceOf(Date)
    expect(pid).not.toBe(worker.pid)
    writeFileSync(of.file('go'), '')
    expect(await job.result({ timeout: '20s' })).toEqual({ pid })
    expect(await record(of, job.id)).toMatchObject({ state: 'completed', log: `waits for ${of.file('go')}\n` })
    expect((await record(of, job.id))?.checkpoint).toBeUndefined()
    await deadAfter(pid, 2_000)
  })

  it.each([
    ['timer', /Error: in a timer/],
    ['exit', /exited with code 0\..*dies by exit/s],
    ['words', /exited with code 3\..*heap out of memory/s],
    ['SIGKILL', /was killed by SIGKILL.*dies by SIGKILL/s],
    ['SIGSEGV', /was killed by SIGSEGV.*dies by SIGSEGV/s],
    ['memory', /ran out of memory \(oom\).*dies by memory/s],
  ])('whose process dies by %s fails with that reason, runs again, and then is dead', async (how, reason) => {
    const of = await longProject()
    of.worker()
    const job = await of.mill.enqueue(die, how)

    await expect(job.result({ timeout: '30s' })).rejects.toThrow(/is dead \(max-retries\)/)
    const dead = await of.mill.queue('long').jobs.get(job.id)
    expect(dead).toMatchObject({ state: 'dead', attempt: 2, crashes: 0, reason: 'max-retries' })
    expect(dead?.error).toMatch(reason)
    const printed = dead?.log?.match(/dies by/g)?.length
    // It dies at any moment: output of which it is not known whether the store has it is logged again.
    if (how === 'memory') expect(printed).toBeGreaterThanOrEqual(2)
    else expect(printed).toBe(2)
  })

  it.each([
    ['waits', false],
    ['blocks its event loop', true],
  ])('that traps SIGTERM, has children and %s is dead with all of them soon after a cancel', async (_, blocks) => {
    const of = await longProject()
    of.worker()
    const job = await of.mill.enqueue(deaf, blocks)
    const pid = await firstOf(of)
    expect(livingIn(pid).length).toBeGreaterThanOrEqual(3)
    await recordThat(of, job.id, (it) => it.startedAt !== undefined)
    await job.cancel()

    // A third of the lease until it hears of it, and its grace of 5 s.
    expect(await deadAfter(pid, 10_000)).toBeLessThan(1_000 + 5_000 + 1_000)
    expect(await job.status()).toBe('cancelled')
  })
})

describe('an isolated job whose worker is killed', longest, () => {
  it('goes on, is adopted by the next worker before that claims anything, and runs once', async () => {
    const of = await longProject()
    const first = of.worker('--concurrency', '2')
    const jobs = [await of.mill.enqueue(wait, of.file('one')), await of.mill.enqueue(wait, of.file('two'))]
    const third = await of.mill.enqueue(wait, of.file('one'))
    const begun = await begins(of, 2)
    await killWorker(first)
    const adopted = await first.events('job.adopted', 2)
    expect(adopted.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort())

    const [, { pid: next }] = (await first.events('worker.started', 2)) as [unknown, { pid: number }]
    process.kill(next, 'SIGUSR2')
    const [{ jobs: watched }] = (await first.events('state.dumped')) as [{ jobs: { id: string; phase: string }[] }]
    expect(watched.map(({ id, phase }) => [id, phase]).sort()).toEqual(jobs.map(({ id }) => [id, 'adopted']).sort())
    expect(of.begun()).toHaveLength(2)
    expect((await of.mill.depths(['long']))[0]).toMatchObject({ running: 2, ready: 1, crashed: 0 })
    writeFileSync(of.file('one'), '')
    writeFileSync(of.file('two'), '')
    const results = await Promise.all([...jobs, third].map((job) => job.result({ timeout: '20s' })))
    expect(
      of
        .begun()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([...jobs, third].map(({ id }) => id).sort())
    expect(results.slice(0, 2)).toEqual(jobs.map(({ id }) => ({ pid: begun.find((one) => one.id === id)!.pid })))
  })

  it.each([
    ['goes on if its process has not begun to load,', 'and runs once', false],
    ['goes back uncounted', 'if its process dies before its handler was called', true],
  ])('%s %s', async (_, _when, dies) => {
    // Long enough for a busy machine to load two processes in it: what is asked here is not what becomes of a lease that ends.
    const of = await longProject(undefined, '15s')
    writeFileSync(of.file('hold'), '')
    writeFileSync(of.file('hold.cjs'), heldBack)
    const env = { ...of.env, NODE_OPTIONS: `--require ${of.file('hold.cjs')}` }
    const command = new CommandProcess('work --json', { cwd: of.folder, env })
    const job = await of.mill.enqueue(wait, of.file('go'))
    const { pid, startedAt } = await recordThat(of, job.id, (it) => it.pid !== undefined)
    expect(startedAt).toBeUndefined()
    await killWorker(command)
    expect(await command.events('job.adopted')).toMatchObject([{ id: job.id, child: pid }])

    if (dies) {
      process.kill(pid!, 'SIGKILL')
      expect(await command.events('process.failed')).toMatchObject([{ id: job.id, child: pid }])
      const released = await command.events('job.released')
      expect(released).toMatchObject([{ id: job.id, reason: 'not-loaded', delayMs: 30_000 }])
      expect(await record(of, job.id)).toMatchObject({ state: 'scheduled', attempt: 1, crashes: 0 })
    } else {
      rmSync(of.file('hold'))
      writeFileSync(of.file('go'), '')
      expect(await job.result({ timeout: '20s' })).toEqual({ pid })
      expect(of.begun()).toEqual([{ id: job.id, pid }])
      expect(await record(of, job.id)).toMatchObject({ state: 'completed', attempt: 1, crashes: 0 })
    }
  })

  it('ends soon if it may not outlive its worker, and runs again, uncounted', async () => {
    const of = await longProject()
    const first = of.worker()
    const job = await of.mill.enqueue(brief, of.file('go'))
    const pid = await firstOf(of)
    await recordThat(of, job.id, (it) => it.pid === pid)
    await killWorker(first)

    expect(await deadAfter(pid, 20_000)).toBeLessThan(orphanedMs + busyMs)
    await begins(of, 2)
    writeFileSync(of.file('go'), '')
    expect(await job.result({ timeout: '20s' })).toBe('done')
    expect(await record(of, job.id)).toMatchObject({ attempt: 1 })
  })
})

describe('an isolated job that blocks its event loop', longest, () => {
  it('ends soon after the death of a worker that it may not outlive', async () => {
    const of = await longProject()
    const first = of.worker()
    await of.mill.enqueue(busy, null)
    const pid = await firstOf(of)
    await killWorker(first)

    expect(await deadAfter(pid, 20_000)).toBeLessThan(orphanedMs + busyMs)
  })
})

describe('an isolated job whose worker stops', longest, () => {
  it('goes on if it may outlive the worker, which does not wait', async () => {
    const of = await longProject()
    const worker = of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const pid = await firstOf(of)
    await recordThat(of, job.id, (it) => it.pid === pid)
    worker.kill('SIGTERM')

    expect((await worker.end()).code).toBe(0)
    expect(livingIn(pid)).toContain(pid)
    writeFileSync(of.file('go'), '')
    expect(await job.result({ timeout: '20s' })).toEqual({ pid })
  })

  it('has its grace if it may not outlive the worker, and then goes back uncounted', async () => {
    const of = await longProject()
    const worker = of.worker('--grace', '500ms')
    const job = await of.mill.enqueue(brief, of.file('go'))
    const pid = await firstOf(of)
    worker.kill('SIGTERM')

    expect((await worker.end()).code).toBe(0)
    await deadAfter(pid, 2_000)
    expect(await record(of, job.id)).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
  })
})
