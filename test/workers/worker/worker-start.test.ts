import { once } from 'node:events'
import { defineTask, millrace } from 'millrace'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from '#src/store-testing/servers/free-port.js'

const task = defineTask({ name: 'task', run: async () => {} })

it('a start that waits for an absent store is reported by Node if there is neither a logger nor a listener', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const store = `redis://:sesame@127.0.0.1:${await freePort()}`

  const heard = millrace({ store, tasks: [task] })
  const failed = new Promise((resolve) => heard.on('store.failed', resolve))
  const loud = heard.worker()
  void loud.start()
  await failed
  await loud.stop()
  expect(warnings).toEqual([])

  const silent = millrace({ store, tasks: [task] })
  const worker = silent.worker()
  const [warning] = await Promise.all([once(process, 'warning'), void worker.start()])
  expect(warning[0]).toMatchObject({
    code: 'MILLRACE_STORE_AWAY',
    message: expect.stringMatching(/^the Redis at redis:\/\/127\.0\.0\.1:\d+ cannot be reached: .* The worker waits/),
  })
  await worker.stop()
  await Promise.all([heard.close(), silent.close()])
}, 20_000)
