/** The steps, sleeps and signals of a job in processes of its own, which die between the steps. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { DefinedSignal, Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { workerRedis } from '../worker-redis.js'

type Order = Task<'order', unknown, unknown, string[]>

const stores = {
  sqlite: async (folder: string) => `sqlite:${join(folder, 'jobs.db')}`,
  redis: async () => (await workerRedis()).url,
}

it.each(Object.entries(stores))(
  'an isolated job on %s that is killed after each step does none of them twice',
  {
    timeout: 90_000,
  },
  async (_, storeIn) => {
    const folder = mkdtempSync(join(root, 'test/end-to-end/steps-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const module = join(folder, 'order.mjs')
    const ledger = join(folder, 'ledger.txt')
    writeFileSync(ledger, '')
    const program = `
import { appendFileSync } from 'node:fs'
import { defineSignal, defineTask, millrace } from 'millrace'
export const approved = defineSignal({ name: 'approved' })
export const order = defineTask({
  name: 'order',
  isolate: 'process',
  timeLimit: '1m',
  module: import.meta.url,
  env: [],
  retry: { max: 9, backoff: () => 0 },
  async run(_, ctx) {
    const kinds = []
    for (const name of ['charge', 'pack', 'ship']) {
      const isNew = { value: false }
      kinds.push(await ctx.step(name, () => {
        isNew.value = true
        appendFileSync(${JSON.stringify(ledger)}, name + '\\n')
        return name + ' done'
      }))
      if (isNew.value) process.kill(process.pid, 'SIGKILL')
      if (name === 'charge') await ctx.sleep('nap', 50)
      if (name === 'pack') kinds.push(String((await ctx.waitFor(approved)).by))
    }
    return kinds
  },
})
export const connect = () => millrace({ store: ${JSON.stringify(await storeIn(folder))}, tasks: [order] })
export default connect()
`
    writeFileSync(module, program)
    const { order, approved, connect } = (await import(pathToFileURL(module).href)) as {
      order: Order
      approved: DefinedSignal<{ by: string }>
      connect: () => Mill
    }
    const mill = connect()
    onTestFinished(() => mill.close())
    const waiting = new Promise<void>((resolve) => {
      mill.on('job.released', ({ reason }) => {
        if (reason === 'waiting') resolve()
      })
    })
    await mill.worker({ concurrency: 1 }).start()
    const job = await mill.enqueue(order, undefined)
    await waiting
    expect(await mill.signal(job, approved, { by: 'ada' })).toBe('delivered')

    expect(await job.result({ timeout: '60s' })).toEqual(['charge done', 'pack done', 'ada', 'ship done'])
    expect(readFileSync(ledger, 'utf8')).toBe('charge\npack\nship\n')
  },
)
