import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exactDuration } from '#src/core/values/duration.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'
import { begins, longProject, wait } from '../../end-to-end/long/long-project.js'
import { livingIn } from '../../process-group.js'

const longest = { timeout: 60_000 }

const tasksFile = `
import { defineTask } from 'millrace'

/** Heeds nothing: it never comes back to its event loop. */
const blocked = (timeLimit) => ({
  queue: 'long', isolate: 'process', onSupervisorLoss: 'detach', timeLimit,
  run: () => { for (;;); },
})
export const short = defineTask({ name: 'short', ...blocked('500ms') })
export const long = defineTask({ name: 'long', ...blocked('2s') })
`
const configFile = `
import { millrace } from 'millrace'
import { long, short } from './tasks.js'
export default millrace({ store: 'sqlite:jobs.db', queues: { long: { lease: '3s' } }, tasks: [short, long] })
`
const short = defineTask({ name: 'short', queue: 'long' })
const long = defineTask({ name: 'long', queue: 'long' })

/** A worker of a project whose tasks block their event loop for ever. */
function blockedProject() {
  const folder = project({
    'package.json': '{"type":"module"}',
    'tasks.js': tasksFile,
    'millrace.config.js': configFile,
  })
  const queues = { long: { lease: '3s' } } as const
  const mill = millrace({ store: `sqlite:${join(folder, 'jobs.db')}`, queues, tasks: [short, long] })
  onTestFinished(() => mill.close())
  return { mill, work: new CommandProcess('work --json', { cwd: folder }) }
}

/** Its supervisor starts another at once, which adopts what runs. */
async function replaceWorker(work: CommandProcess): Promise<void> {
  const [{ pid }] = (await work.events('worker.started')) as [{ pid: number }]
  process.kill(pid, 'SIGKILL')
  await work.events('job.adopted')
}

describe('an adopted job whose process is killed', longest, () => {
  it('fails within 1.5 s, and its worker says why', async () => {
    const of = await longProject()
    const work = of.worker()
    const job = await of.mill.enqueue(wait, of.file('go'))
    const { pid } = (await begins(of))[0]!
    await replaceWorker(work)
    process.kill(pid, 'SIGKILL')
    const killedAt = performance.now()

    expect(await work.events('job.buried')).toMatchObject([{ id: job.id, reason: 'no-retries' }])
    expect(performance.now() - killedAt).toBeLessThan(1_500)
    const dead = await of.mill.queue('long').jobs.get(job.id)
    expect(dead).toMatchObject({ state: 'dead', attempt: 1, crashes: 0 })
    expect(dead?.error).toMatch(/the process of the job \(\d+\) is gone, and how it ended is not known/)
  })
})

describe('a job over its time limit that blocks its event loop', longest, () => {
  it.each([
    ['short', 'by the worker that started it', 500],
    ['long', 'where another has adopted it', 2_000],
  ] as const)('(%s) is killed, and its failure names the limit: %s', async (name, _, limitMs) => {
    const { mill, work } = blockedProject()
    const job = await mill.enqueue(name === 'short' ? short : long, null)
    const look = async () => (await mill.queue('long').jobs.get(job.id))?.pid
    const pid = await poll(look, { what: 'its process is known', withinMs: 20_000 })
    if (name === 'long') await replaceWorker(work)

    await expect(job.result({ timeout: '20s' })).rejects.toThrow('is dead (no-retries)')
    const dead = await mill.queue('long').jobs.get(job.id)
    expect(dead?.error).toContain(`task '${name}' ran longer than its time limit of ${exactDuration(limitMs)}.`)
    expect(livingIn(pid)).toEqual([])
  })
})
