import { once } from 'node:events'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { StoreFullError } from '#src/core/errors.js'
import { freePort } from '#src/store-testing/servers/free-port.js'
import type { Store } from '#src/stores/contract/store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeClasses, storeKinds, testMill } from '../../test-mill.js'

describe.each(storeKinds)('stopping, on %s', (kind) => {
  it('waits for running handlers and settles them', async () => {
    let finish = (_: string) => {}
    const task = defineTask({ name: 'slow', run: () => new Promise<string>((done) => (finish = done)) })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    const started = nextEvent(m, 'job.started')
    const worker = m.worker()
    await worker.start()
    await started

    const stopped = worker.stop()
    finish('done')
    await stopped

    expect(await job.result()).toBe('done')
  })

  it('gives up running jobs when its grace is over: aborted, released, not counted', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const jobs = [await m.enqueue(task, { steps: ['hang'] }), await m.enqueue(task, { steps: ['deaf'] })]
    const worker = m.worker()
    const started = Promise.all(jobs.map((job) => nextEvent(m, 'job.started', ({ id }) => id === job.id)))
    await worker.start()
    await started

    await worker.stop({ grace: 10 })

    for (const job of jobs) expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
  })

  it('begins no handler of a job that it has given up while the job was still being checked', async () => {
    const [answers, runs]: [((isDue: boolean) => void)[], number[]] = [[], []]
    const shouldRun = () => new Promise<boolean>((answer) => answers.push(answer))
    const asked = defineTask({ name: 'asked', shouldRun, run: (input: number) => void runs.push(input) })
    const m = testMill({ tasks: [asked] }, kind)
    const job = await m.enqueue(asked, 1)
    const started = nextEvent(m, 'job.started')
    const worker = m.worker()
    await worker.start()
    await started

    await worker.stop({ grace: 10 })
    for (const answer of answers) answer(true)
    await new Promise(setImmediate)

    expect([answers.length, runs]).toEqual([1, []])
    expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
  })

  it('is limited by its grace even if the store accepts no settles', { timeout: 20_000 }, async () => {
    const { prototype }: { prototype: Store } = storeClasses[kind]
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const completed = vi.spyOn(prototype, 'settle').mockRejectedValue(new StoreFullError('no room'))
    onTestFinished(() => completed.mockRestore())
    await m.enqueue(task, { steps: ['ok'] })
    const failed = nextEvent(m, 'store.failed')
    const worker = m.worker()
    await worker.start()
    await failed

    await worker.stop({ grace: 10 })
  })

  it('is not disturbed by a claim that fails after it has begun', async () => {
    const { prototype }: { prototype: Store } = storeClasses[kind]
    let fail = (_: Error) => {}
    const asked = new Promise<void>((resolve) => {
      const claim = vi.spyOn(prototype, 'claim').mockImplementation(() => {
        resolve()
        return new Promise((_, reject) => (fail = reject))
      })
      onTestFinished(() => claim.mockRestore())
    })
    const m = testMill({ tasks: [scriptedTask()] }, kind)
    const failures = recorded(m, 'worker.failed')
    const worker = m.worker()
    await worker.start()
    await asked
    const stopped = worker.stop()
    fail(new StoreFullError('no room'))
    await stopped
    // An error that nobody caught would come now, and fail the test.
    await new Promise((resolve) => setImmediate(resolve))

    expect(failures).toEqual([])
    expect(worker.status().state).toBe('stopped')
  })

  it('takes nothing more, and may be called twice and before the start', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    const worker = m.worker()
    await worker.start()
    await Promise.all([worker.stop(), worker.stop()])
    const job = await m.enqueue(task, { steps: ['ok'] })
    const never = m.worker()
    await never.stop()
    await never.start()

    expect(await m.workers()).toEqual([])
    const started = nextEvent(m, 'job.started')
    const other = m.worker()
    await other.start()
    expect(await started).toMatchObject({ id: job.id, worker: other.id })
  })
})

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
