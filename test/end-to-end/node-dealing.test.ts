import { expect, it } from 'vitest'
import { shardOf } from '#src/stores/rules/payloads.js'
import { CommandProcess, runProcess } from '../cli/command-process.js'
import { project } from '../cli/project.js'

const ids = Array.from({ length: 40 }, (_, i) => `id-${i}`)

const config = `
import { defineOrderedTask, millrace } from 'millrace'

const say = (id) => process.stdout.write(JSON.stringify({ event: 'test.running', id }) + '\\n')
const a = defineOrderedTask({ name: 'a', id: (id) => id, run: (payloadsById) => payloadsById.forEach((_, id) => say(id)) })
const mill = millrace({
  store: 'memory:',
  tasks: [a],
  queues: { first: { ordered: true, shards: 3 }, a: { shards: 4 } },
  onWorkerStart: async () => {
    await mill.enqueueMany(a, ${JSON.stringify(ids)})
  },
})
export default mill
`

it('a worker of node 1 of 2 runs its own shards first, and then the others', async () => {
  const cwd = project({ 'millrace.config.mjs': config })
  const worker = new CommandProcess('work --json --node 1/2 --queues a --concurrency 1', { cwd })
  const ran = await worker.events('test.running', ids.length)
  worker.kill('SIGTERM')
  expect(await worker.end()).toMatchObject({ code: 0 })

  // Three shards of the first queue go before: 1/2 has its shard 1, and then 0 and 2 of this one.
  const isOwn = ran.map(({ id }) => shardOf(String(id), 4) % 2 === 0)
  const own = isOwn.filter(Boolean).length
  expect(isOwn).toEqual(ids.map((_, i) => i < own))
  expect(own).toBeGreaterThan(5)
  expect(own).toBeLessThan(35)
})

it.each(['2/2', '1', '0/0', '1.5/2', '-1/2'])('an invalid node is refused before anything starts: %s', async (node) => {
  const { code, stderr } = await runProcess(['work', `--node=${node}`], {
    cwd: project({ 'millrace.config.mjs': config }),
  })

  expect(code).toBe(2)
  expect(stderr).toContain(
    `'${node}' is invalid. Expected i/n with i from 0 to n − 1, such as 0/2 and 1/2 for two hosts.`,
  )
})
