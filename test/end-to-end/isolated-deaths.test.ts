/** The death of an isolated job whose processes are killed: the worker reports it, once. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Death, Mill, Task } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../cli/project.js'
import { nextEvent } from '../next-event.js'

it('an isolated job whose processes are killed until it is buried has its death reported once', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(root, 'test/end-to-end/deaths-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [module, ledger] = [join(folder, 'encode.mjs'), join(folder, 'ledger.txt')]
  writeFileSync(ledger, '')
  writeFileSync(
    module,
    `
import { appendFileSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
export const got = []
const obituary = defineTask({ name: 'obituary', queue: 'obituaries', run: async (death) => void got.push(death) })
export const encode = defineTask({
  name: 'encode',
  queue: 'videos',
  isolate: 'process',
  module: import.meta.url,
  env: [],
  retry: { max: 2, backoff: () => 0 },
  onDead: obituary,
  async run(film) {
    appendFileSync(${JSON.stringify(ledger)}, film + ' in ' + process.pid + '\\n')
    process.kill(process.pid, 'SIGKILL')
  },
})
export const mill = millrace({
  store: ${JSON.stringify(`sqlite:${join(folder, 'jobs.db')}`)},
  tasks: [encode, obituary],
})
`,
  )
  const { encode, mill, got } = (await import(pathToFileURL(module).href)) as {
    encode: Task<'encode', string, string, void>
    mill: Mill
    got: Death[]
  }
  onTestFinished(() => mill.close())
  const done = nextEvent(mill, 'job.completed', ({ queue }) => queue === 'obituaries')
  const job = await mill.enqueue(encode, 'film')
  const worker = mill.worker()
  await worker.start()
  await done
  await worker.stop()

  const runs = readFileSync(ledger, 'utf8').trim().split('\n')
  expect(new Set(runs).size).toBe(3)
  expect(runs).toHaveLength(3)
  expect(got).toEqual([
    {
      ...{ job: job.id, queue: 'videos', task: 'encode', input: 'film', reason: 'max-retries', crashes: 0, attempt: 3 },
      ...{
        error: expect.stringMatching(/^ProcessDiedError: .* was killed by SIGKILL/),
        diedAt: (await job.record())!.finishedAt!.getTime(),
      },
    },
  ])
  expect(await mill.queue('videos').depth()).toMatchObject({ dead: 1, ready: 0, running: 0 })
  expect(await mill.queue('obituaries').depth()).toMatchObject({ processed: 1, ready: 0, running: 0 })
})
