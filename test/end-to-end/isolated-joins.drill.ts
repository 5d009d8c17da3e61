/** A join and its members in processes of their own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { JoinTask, ManyMembers, Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'

type Film = Task<'film', number, number, { seconds: number }>
type OfFilms<Name extends string, Result> = JoinTask<
  Name,
  object,
  object,
  Result,
  { films: ManyMembers<Film, 'fail', true> }
>
interface Films {
  readonly credits: OfFilms<'credits', number[]>
  readonly survivors: OfFilms<'survivors', unknown[]>
  readonly strict: OfFilms<'strict', void>
  readonly connect: () => Mill
}

/** A mill on a fresh file with these tasks, and a worker of it. */
async function worked(): Promise<{ mill: Mill; films: Films }> {
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
export const fragile = defineTask({
  name: 'fragile',
  queue: 'films',
  ...isolated,
  retry: { max: 0 },
  run: async (n) => {
    if (n === 2) process.kill(process.pid, 'SIGKILL')
    return n
  },
})
export const survivors = defineTask({
  name: 'survivors',
  queue: 'credits',
  joins: { films: many(fragile, { onDead: 'go-on' }) },
  async run(_, ctx) {
    const told = []
    for await (const { fate, result, error } of ctx.joined.films) told.push(result ?? [fate, error].join(': '))
    return told
  },
})
export const strict = defineTask({ name: 'strict', queue: 'credits', joins: { films: many(fragile) }, run: async () => {} })
export const connect = () => millrace({
  store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)},
  tasks: [film, credits, fragile, survivors, strict],
  queues: { films: { retention: { results: 'none' } } },
})
export default connect()
`
  writeFileSync(module, program)
  const films = (await import(pathToFileURL(module).href)) as Films
  const mill = films.connect()
  onTestFinished(() => mill.close())
  await mill.worker({ concurrency: 2 }).start()
  return { mill, films }
}

it('an isolated join gets the results of its isolated members', { timeout: 60_000 }, async () => {
  const { mill, films } = await worked()
  const job = await mill.enqueue(films.credits, {}, { after: { films: [1, 2, 3] }, within: '1m' })

  expect(await job.result({ timeout: '45s' })).toEqual([60, 120, 180])
})

it('joins hear of an isolated member whose process is killed', { timeout: 60_000 }, async () => {
  const { mill, films } = await worked()
  const survivors = await mill.enqueue(films.survivors, {}, { after: { films: [1, 2, 3] }, within: '1m' })
  const strict = await mill.enqueue(films.strict, {}, { after: { films: [2] }, within: '1m' })

  expect(await survivors.result({ timeout: '45s' })).toEqual([1, expect.stringMatching(/^dead: .*SIGKILL/s), 3])
  await expect(strict.result({ timeout: '45s' })).rejects.toThrow(/join-member-dead.* is dead: .*SIGKILL/s)
})
