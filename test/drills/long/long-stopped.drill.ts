import { writeFileSync } from 'node:fs'
import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { CommandProcess } from '../../cli/command-process.js'
import { begins, deadAfter, type LongProject, longProject, wait } from '../../end-to-end/long/long-project.js'
import { tryWriteLock } from '../../write-lock.js'

const leaseMs = 3_000

async function redis(): Promise<string> {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  return server.url
}

/** A worker of one slot whose job has begun, and has told its pid. */
async function atWork(of: LongProject): Promise<{ readonly worker: CommandProcess; readonly pid: number }> {
  const worker = of.worker('--concurrency', '1')
  await of.mill.enqueue(wait, of.file('go'), { id: 'film' })
  const { pid } = (await begins(of))[0]!
  const look = async () => ((await of.mill.queue('long').jobs.get('film'))?.pid === pid ? true : undefined)
  await poll(look, { what: 'its process keeps the lease', withinMs: 20_000 })
  return { worker, pid }
}

/** Stops a process at a moment at which it holds no lock of the file: one that does keeps everybody else from it, too. */
async function stop({ env }: LongProject, pid: number): Promise<void> {
  const [scheme, file] = env.MILLRACE_STORE.split(/:(.*)/s)
  process.kill(pid, 'SIGSTOP')
  if (scheme !== 'sqlite') return
  const db = (await loadDriver())(file!)
  const lock = async () => (tryWriteLock(db) ? true : undefined)
  while (!(await poll(lock, { what: 'nobody writes', withinMs: 500 }).catch(() => false))) {
    process.kill(pid, 'SIGCONT')
    await poll(lock, { what: 'its write has ended', withinMs: 10_000 })
    db.exec('ROLLBACK')
    process.kill(pid, 'SIGSTOP')
  }
  db.exec('ROLLBACK')
  db.close()
}

describe.each([
  ['SQLite', async () => undefined],
  ['Redis', redis],
])('on %s, the process of a job that is stopped', { timeout: 60_000 }, (_, started) => {
  it('is killed after a lease, its slot is free, and its job runs again, uncounted', async () => {
    const of = await longProject(await started())
    const { worker, pid } = await atWork(of)
    const stoppedAt = performance.now()
    await stop(of, pid)

    expect(await worker.events('lease.lost')).toMatchObject([{ id: 'film', child: pid }])
    expect(performance.now() - stoppedAt).toBeLessThan(leaseMs + 2_000)
    await deadAfter(pid, 1_000)
    const begun = await begins(of, 2)
    expect(begun[1]!.pid).not.toBe(pid)
    writeFileSync(of.file('go'), '')
    expect(await of.mill.job('film').result({ timeout: '20s' })).toEqual({ pid: begun[1]!.pid })
    expect(await of.mill.queue('long').jobs.get('film')).toMatchObject({ attempt: 1, crashes: 0 })
  })

  it('is killed after a lease by the worker that has adopted it', async () => {
    const of = await longProject(await started())
    const { worker, pid } = await atWork(of)
    const [{ pid: first }] = (await worker.events('worker.started')) as [{ pid: number }]
    process.kill(first, 'SIGKILL')
    await worker.events('job.adopted')
    await stop(of, pid)

    expect(await worker.events('lease.lost')).toMatchObject([{ id: 'film', child: pid }])
    await deadAfter(pid, 1_000)
    await begins(of, 2)
  })

  it('is killed as soon as it wakes up and learns that another worker has its job', async () => {
    const of = await longProject(await started())
    const { worker, pid } = await atWork(of)
    // Nobody watches it any more.
    worker.kill('SIGTERM')
    await worker.end()
    await stop(of, pid)
    // A host that knows nothing of that process.
    of.workerOn('elsewhere', '--concurrency', '1')
    await begins(of, 2)
    process.kill(pid, 'SIGCONT')

    expect(await deadAfter(pid, 10_000)).toBeLessThan(1_000)
  })
})
