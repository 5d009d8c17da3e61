/** Lines that get new ids: those behind a refused one are not sent, so that `--from-line` adds none twice. */

import { expect, it } from 'vitest'
import { run, runJson } from './command-in-process.js'
import { project } from './project.js'

const filesWith = (maxPending: number) => ({
  'package.json': '{"type":"module"}',
  'millrace.config.js': `import { defineOrderedTask, defineTask, millrace } from 'millrace'
export default millrace({
  store: 'sqlite:jobs.db',
  queues: { default: { maxPending: ${maxPending} }, low: {}, sync: { ordered: true, maxPending: ${maxPending} } },
  tasks: [defineTask({ name: 'count', run: async () => {} }), defineOrderedTask({ name: 'sync', run: async () => {} })],
})`,
})

const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('')

async function storedIn(cwd: string): Promise<Record<string, number>> {
  const { queues } = await runJson<{ queues: { queue: string; length: number }[] }>('stats', { cwd })
  return Object.fromEntries(queues.map(({ queue, length }) => [queue, length]))
}

it('no line is added behind the first call that a full queue refuses', async () => {
  const cwd = project(filesWith(100))
  const { code, stderr } = await run('enqueue count - --new-ids', { cwd, input: numbers(270) })

  expect({ code, stored: await storedIn(cwd) }).toMatchObject({ code: 1, stored: { default: 0 } })
  expect(stderr).toMatch(
    /^millrace: line 1 was not taken: .*is full.* Nothing was enqueued\. Then send all of it again\./,
  )
})

it('lines go on where the refused one is, and none is added twice', async () => {
  const cwd = project(filesWith(260))
  const input = numbers(510)
  const { code, stderr } = await run('enqueue count - --new-ids', { cwd, input })

  expect({ code, stored: await storedIn(cwd) }).toMatchObject({ code: 1, stored: { default: 250 } })
  expect(stderr).toMatch(/line 251 was not taken: .* Go on there with --from-line 251: lines before it would be added/)
})

it('a full queue keeps back the lines behind it that are for another', async () => {
  const cwd = project(filesWith(1))
  const line = (queue: string) => `{"task":"count","input":1,"queue":"${queue}"}\n`
  const input = line('low') + line('default') + line('default') + line('low')
  const { stderr } = await run('enqueue - --envelope --new-ids', { cwd, input })

  expect(await storedIn(cwd)).toMatchObject({ default: 0, low: 1 })
  expect(stderr).toMatch(/line 2 was not taken: .* --from-line 2: lines before it/)
})

it('lines that a part of an ordered queue has taken behind the refused one are named', async () => {
  const cwd = project(filesWith(5))
  // Two of the five shards have room for all of their lines: those of 2 and 6.
  const input = [1, 2, 3, 4, 5, 6].map((id) => `{"task":"sync","id":"${id}","input":1}\n`).join('')
  const { stderr } = await run('enqueue - --envelope --new-ids', { cwd, input })

  expect(await storedIn(cwd)).toMatchObject({ sync: 2 })
  expect(stderr).toMatch(/line 1 was not taken: .* --from-line 1: .* Leave out lines 2, 6, which are enqueued too\.\n$/)
})
