/** A join and its members in processes of their own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { JoinTask, ManyMembers, Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

type Film = Task<'film', number, number, { seconds: number }>
type Credits = JoinTask<'credits', object, object, number[], { films: ManyMembers<Film, 'fail', true> }>

it('an isolated join gets the results of its isolated members', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(root, 'test/end-to-end/joins-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'films.mjs')
  const program = `
import { defineTask, many, millrace } from 'millrace'
const isolated = { isolate: 'process', timeLimit: '1m', module: import.meta.url, env: [] }
export const film = defineTask({ name: 'film', queue: 'films', ...isolated, run: async (n) => ({ seconds: n * 60 }) })
export const credits = defineTask({
  name: 'credits',
  queue: 'credits',
  ...isolated,
  joins: { films: many(film) },
  async run(_, ctx) {
    const seconds = []
    for await (const one of ctx.joined.films) seconds.push(one.seconds)
    return seconds
  },
})
export const connect = () => millrace({
  store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)},
  tasks: [film, credits],
  queues: { films: { retention: { results: 'none' } } },
})
export default connect()
`
  writeFileSync(module, program)
  const { credits, connect } = (await import(pathToFileURL(module).href)) as { credits: Credits; connect: () => Mill }
  const mill = connect()
  onTestFinished(() => mill.close())
  await mill.worker({ concurrency: 2 }).start()
  const job = await mill.enqueue(credits, {}, { after: { films: [1, 2, 3] }, within: '1m' })

  expect(await job.result({ timeout: '45s' })).toEqual([60, 120, 180])
})
