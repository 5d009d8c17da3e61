/** How a command names a job: by its queue and id, by both in one word, or by its id alone. */

import { describe, expect, it } from 'vitest'
import { run, runJson } from './command-in-process.js'
import { project } from './project.js'

/** Jobs that wait, as `slow/a`. */
async function waiting(...jobs: readonly string[]): Promise<{ readonly cwd: string }> {
  const cwd = project()
  for (const job of jobs) {
    const [queue, ...id] = job.split('/')
    const where = ['--queue', queue!, '--id', id.join('/'), '--delay', '1h']
    await runJson(['enqueue', 'echo', '1', ...where], { cwd })
  }
  return { cwd }
}

describe('a job', () => {
  it.each(['b', 'slow/b'])('that waits is found by %s in every command', async (word) => {
    const place = await waiting('default/a', 'slow/b')
    expect(await runJson(['jobs', 'show', word], place)).toMatchObject({ queue: 'slow', id: 'b' })
    expect(await runJson(['jobs', 'run-now', word], place)).toEqual({ queue: 'slow', dueNow: 1 })
    const fields = { node: 'eu-3' }
    expect(await runJson(['jobs', 'fields', word, 'node=eu-3'], place)).toEqual({ queue: 'slow', id: 'b', fields })
    expect(await runJson(['jobs', 'fields', word], place)).toEqual({ queue: 'slow', id: 'b', fields })
    expect(await run(['jobs', 'fail', word], place)).toMatchObject({
      code: 1,
      stderr: "millrace: job 'b' does not run in queue 'slow'; nothing was changed.\n",
    })
    expect(await runJson(['jobs', 'bury', word], place)).toEqual({ queue: 'slow', buried: 1 })
    expect(await runJson(['morgue', 'show', word], place)).toMatchObject({ queue: 'slow', id: 'b', state: 'dead' })
    expect(await runJson(['morgue', 'revive', word], place)).toEqual({ queue: 'slow', revived: 1 })
    expect(await runJson(['jobs', 'cancel', word], place)).toEqual({ queue: 'slow', cancelled: 1 })
    expect(await runJson(['jobs', 'show', 'a'], place)).toMatchObject({ state: 'scheduled' })
  })

  it('whose id holds a slash is that before it is one of the queue in front of the slash', async () => {
    const place = await waiting('default/slow/b', 'slow/b')
    expect(await runJson(['jobs', 'show', 'slow/b'], place)).toMatchObject({ queue: 'default', id: 'slow/b' })
    expect(await runJson(['jobs', 'delete', 'slow/b'], place)).toEqual({ queue: 'default', deleted: 1 })
    expect(await runJson(['jobs', 'delete', 'slow/b'], place)).toEqual({ queue: 'slow', deleted: 1 })
  })

  it('whose id several queues have is not guessed', async () => {
    const place = await waiting('default/a', 'slow/a')
    expect(await run(['jobs', 'cancel', 'a'], place)).toMatchObject({
      code: 2,
      stderr: "millrace: job 'a' is in the queues default, slow: name the one that is meant before the id.\n",
    })
    expect(await runJson(['jobs', 'cancel', 'slow/a'], place)).toEqual({ queue: 'slow', cancelled: 1 })
    expect(await runJson(['jobs', 'show', 'default/a'], place)).toMatchObject({ queue: 'default', state: 'scheduled' })
  })

  it('that is not there is told from a queue that is not declared', async () => {
    expect(await run(['jobs', 'delete', 'film-b'], await waiting())).toMatchObject({
      code: 1,
      stderr:
        "millrace: 'film-b' is neither a declared queue nor a job that one of them keeps; declared are: default, slow.\n",
    })
  })
})
