import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CommandProcess } from '../../cli/command-process.js'
import { begins, brief, longProject, wait } from '../../end-to-end/long/long-project.js'
import { livingIn } from '../../process-group.js'

const leaseMs = 3_000

async function ownRedis() {
  const redis = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
  onTestFinished(() => redis.stop())
  return redis
}

async function pidOf(command: CommandProcess, starts = 1): Promise<number> {
  const started = (await command.events('worker.started', starts)) as unknown as { pid: number }[]
  return started.at(-1)!.pid
}

/** The supervisor first, or it would start another. */
async function killForGood(command: CommandProcess): Promise<void> {
  const pid = await pidOf(command)
  command.kill('SIGKILL')
  process.kill(pid, 'SIGKILL')
  await command.end()
}

describe('a detached job', { timeout: 90_000 }, () => {
  it('survives restarts of its worker and of Redis, and an outage longer than its lease, and runs once', async () => {
    const redis = await ownRedis()
    const of = await longProject(redis.url)
    const worker = of.worker('--concurrency', '1')
    const job = await of.mill.enqueue(wait, of.file('go'))
    const [{ pid }] = (await begins(of)) as [{ id: string; pid: number }, ...unknown[]]
    // It would take over what is lost.
    const rival = of.workerOn('elsewhere')
    await pidOf(rival)

    process.kill(await pidOf(worker), 'SIGKILL')
    await worker.events('job.adopted')
    await redis.restart()
    process.kill(await pidOf(worker, 2), 'SIGKILL')
    await worker.events('job.adopted', 2)
    await redis.kill()
    await delay(2 * leaseMs)
    await redis.restart()
    await delay(2 * leaseMs)
    expect(livingIn(pid)).toContain(pid)
    writeFileSync(of.file('go'), '')

    expect(await job.result({ timeout: '20s' })).toEqual({ pid })
    expect(of.begun()).toHaveLength(1)
    expect((await of.mill.depths(['long']))[0]).toMatchObject({ processed: 1, failed: 0, crashed: 0 })
  })

  it('is adopted by one of several workers that start at once, and none exceeds its slots', async () => {
    const redis = await ownRedis()
    const of = await longProject(redis.url)
    const first = of.worker('--concurrency', '4')
    const jobs = await of.mill.enqueueMany(wait, Array(4).fill(of.file('go')))
    await begins(of, 4)
    await killForGood(first)
    const heirs = [of.worker('--concurrency', '2'), of.worker('--concurrency', '2')]
    const adopted = await Promise.all(heirs.map((heir) => heir.events('job.adopted', 2)))
    await Promise.all(heirs.map((heir) => pidOf(heir)))

    expect(
      adopted
        .flat()
        .map(({ id }) => id)
        .sort(),
    ).toEqual(jobs.map(({ id }) => id).sort())
    writeFileSync(of.file('go'), '')
    await Promise.all(jobs.map((job) => job.result({ timeout: '20s' })))
    expect(of.begun()).toHaveLength(4)
  })

  it('that is lost with its host runs again elsewhere within its lease and 5 s, uncounted', async () => {
    const of = await longProject()
    const lost = of.workerOn('alpha')
    const job = await of.mill.enqueue(brief, of.file('go'))
    const [{ pid }] = (await begins(of)) as [{ id: string; pid: number }, ...unknown[]]
    const other = of.workerOn('beta')
    await pidOf(other)
    // First the process of the job: it would put the job back.
    process.kill(-pid, 'SIGSTOP')
    await killForGood(lost)
    process.kill(-pid, 'SIGKILL')
    const lostAt = performance.now()
    await begins(of, 2)

    expect(performance.now() - lostAt).toBeLessThan(leaseMs + 5_000)
    writeFileSync(of.file('go'), '')
    expect(await job.result({ timeout: '20s' })).toBe('done')
    expect(await of.mill.queue('long').jobs.get(job.id)).toMatchObject({ attempt: 1, crashes: 0, host: 'beta' })
  })
})
