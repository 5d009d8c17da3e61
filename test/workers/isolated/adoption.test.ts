import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { Registry } from '#src/core/registry.js'
import { identityText, processIdentity } from '#src/runtime/process/process-identity.js'
import { Adoption } from '#src/workers/isolated/adoption.js'
import { Slots } from '#src/workers/slots.js'
import { nextEvent, recorded } from '../../next-event.js'
import { deadProcess, here, idleProcess, orphanScene } from './orphan-scene.js'

/** Process 1 of this machine, as another pid namespace, another host and another boot would name theirs. */
const first = processIdentity(1)
const elsewhere = {
  container: { ...first, pidns: '4026530000' },
  host: { ...first, host: 'elsewhere' },
  boot: { ...first, boot: '00000000-0000-0000-0000-000000000000' },
}
const leaseMs = 2_500

describe('the next worker on a machine', { timeout: 30_000 }, () => {
  it('adopts a job whose process is alive, and runs a job again long before its lease ends if another process got the number', async () => {
    const { mill, orphan } = await orphanScene()
    const worker = await deadProcess()
    const { identity } = await idleProcess()
    await orphan('lives', { worker, process: identity })
    await orphan('used again', { worker, process: { ...identity, ticks: identity.ticks - 1 } })
    const adopted = recorded(mill, 'job.adopted')
    const crashed = nextEvent(mill, 'job.crashed')
    const begun = nextEvent(mill, 'job.started')
    const startedAt = performance.now()
    await mill.worker({ concurrency: 2 }).start()

    expect(await crashed).toMatchObject({ id: 'used again', charged: false })
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    expect(adopted.map(({ id, child }) => [id, child])).toEqual([['lives', identity.pid]])
    expect(await begun).toMatchObject({ id: 'used again', attempt: 1 })
    expect(await mill.job('used again').result({ timeout: '10s' })).toBe('run again')
    expect(await mill.job('lives').status()).toBe('running')
  })

  it('treats process 1 of another container, host or boot as unknown, and lets the lease decide', async () => {
    const { mill, orphan } = await orphanScene()
    const worker = await deadProcess()
    const claimedAt = performance.now()
    for (const [where, process] of Object.entries(elsewhere)) {
      await orphan(`${where}, of a worker there`, { worker: process, process, leaseMs })
      await orphan(`${where}, of a dead worker here`, { worker, process, leaseMs })
    }
    await orphan('of a dead process here', { worker, process: { ...here, ticks: 1 } })
    const adopted = recorded(mill, 'job.adopted')
    const crashed: { id: string; afterMs: number }[] = []
    mill.on('job.crashed', ({ id }) => crashed.push({ id, afterMs: performance.now() - claimedAt }))
    const all = nextEvent(mill, 'job.crashed', () => crashed.length === 1 + 2 * Object.keys(elsewhere).length)
    await mill.worker().start()
    await all

    expect(adopted).toEqual([])
    expect(crashed[0]).toMatchObject({ id: 'of a dead process here' })
    for (const { id, afterMs } of crashed.slice(1)) {
      expect(afterMs, id).toBeGreaterThanOrEqual(leaseMs - 1)
      expect(afterMs, id).toBeLessThan(leaseMs + 5_000)
    }
  })

  it('adopts nothing from a worker in another container, whatever its process number means here', async () => {
    const { mill, orphan } = await orphanScene()
    const { identity } = await idleProcess()
    const dead = await deadProcess()
    await orphan('of a worker here', { worker: dead, process: identity })
    await orphan('of a worker there', { worker: { ...dead, pidns: '4026530000' }, process: identity })
    const adopted = recorded(mill, 'job.adopted')
    await mill.worker().start()

    expect(adopted.map(({ id }) => id)).toEqual(['of a worker here'])
  })
})

describe('an adoption that the store did not answer', { timeout: 30_000 }, () => {
  it.each([
    ['was carried out', true],
    ['was not', false],
  ])('takes no slot, and is made up for after a minute, if it %s', async (_, isDone) => {
    const [{ identity }, dead] = [await idleProcess(), `${identityText(await deadProcess())}/1`]
    const claim = { queue: 'long', id: 'lives', task: 'film', fence: 1, ...identity }
    let owner = dead
    let isAway = true
    const adopt = async () => {
      if (isAway) {
        if (isDone) owner = 'me'
        throw new StoreUnavailableError('the server is away')
      }
      owner = 'me'
      return true
    }
    const film = defineTask({ name: 'film', queue: 'long', isolate: 'process', timeLimit: '1h' })
    const [slots, events] = [new Slots(1), new Events()]
    const adopted: string[] = []
    events.on('job.adopted', ({ id }) => adopted.push(id))
    const adoption = new Adoption({
      ...{ worker: 'me', affinity: '', identity: here, queues: ['long'], slots, events },
      registry: new Registry([film], []),
      workers: { held: async (worker: string) => (worker === owner ? [claim] : []), adopt },
      records: { list: async () => ({ jobs: [{ ...claim, worker: dead }] }) },
    } as unknown as ConstructorParameters<typeof Adoption>[0])
    onTestFinished(() => adoption.stop())
    const waits = vi.spyOn(globalThis, 'setTimeout')
    await adoption.start()
    const minute = waits.mock.calls.filter(([, ms]) => ms === 60_000)
    waits.mockRestore()
    expect([slots.free, adopted, adoption.held.map(({ id }) => id), minute.length]).toEqual([1, [], ['lives'], 1])
    isAway = false
    minute[0]![0]()
    await expect.poll(() => adopted).toEqual(['lives'])

    expect([slots.free, owner, adoption.held.map(({ id }) => id)]).toEqual([0, 'me', ['lives']])
  })
})

describe('the affinity of a worker', { timeout: 30_000 }, () => {
  it('decides whose processes it adopts; it leaves those of others', async () => {
    const { mill, orphan } = await orphanScene()
    const worker = await deadProcess()
    for (const gpu of ['gpu-0', 'gpu-1']) {
      const { identity } = await idleProcess({ MILLRACE_AFFINITY: gpu })
      await orphan(`on ${gpu}`, { worker, process: identity })
    }
    const adopted = recorded(mill, 'job.adopted')
    await mill.worker({ affinity: 'gpu-1' }).start()
    expect(adopted.map(({ id }) => id)).toEqual(['on gpu-1'])
    await mill.worker({ affinity: 'gpu-0' }).start()

    expect(adopted.map(({ id }) => id)).toEqual(['on gpu-1', 'on gpu-0'])
  })

  it('keeps a process from it for at most a minute: then it adopts what nobody wanted', async () => {
    const { mill, orphan } = await orphanScene()
    const { identity } = await idleProcess({ MILLRACE_AFFINITY: 'a GPU that was taken out' })
    await orphan('left', { worker: await deadProcess(), process: identity })
    const adopted = nextEvent(mill, 'job.adopted')
    const waits = vi.spyOn(globalThis, 'setTimeout')
    await mill.worker({ affinity: 'gpu-1' }).start()
    const minute = waits.mock.calls.filter(([, ms]) => ms === 60_000)
    waits.mockRestore()
    expect(minute).toHaveLength(1)
    minute[0]![0]()

    expect(await adopted).toMatchObject({ id: 'left', child: identity.pid })
  })

  it('lets an adopted process keep its slot number, which no other job of the worker gets', async () => {
    const { descriptor, film, orphan } = await orphanScene()
    const worker = await deadProcess()
    const { identity } = await idleProcess({ MILLRACE_SLOT: '0' })
    await orphan('lives', { worker, process: identity })
    const slots: number[] = []
    const probe = defineTask({ name: 'probe', queue: 'long', run: async (_, ctx) => void slots.push(ctx.slot) })
    const other = millrace({ store: descriptor, tasks: [film, probe] })
    onTestFinished(() => other.close())
    const all = nextEvent(other, 'job.completed', () => slots.length === 3)
    await other.enqueueMany(probe, [1, 2, 3])
    await other.worker({ concurrency: 2 }).start()
    await all

    expect(slots).toEqual([1, 1, 1])
  })
})

describe('the process of an adopted job', { timeout: 30_000 }, () => {
  it('that has ended is reported, with the end of its job', async () => {
    const { mill, store, orphan } = await orphanScene()
    const worker = await deadProcess()
    const [done, stopped] = [await idleProcess(), await idleProcess()]
    const claims = [
      await orphan('done', { worker, process: done.identity }),
      await orphan('stopped', { worker, process: stopped.identity }),
    ]
    await mill.worker({ concurrency: 2 }).start()
    const ended = recorded(mill, 'process.ended')
    const both = nextEvent(mill, 'process.ended', () => ended.length === 2)
    const [first, second] = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    await store.settle([
      { ...first!, kind: 'complete', result: {} },
      { ...second!, kind: 'cancel' },
    ])
    done.child.kill('SIGKILL')
    stopped.child.kill('SIGKILL')
    await both

    expect(ended.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([
      { queue: 'long', id: 'done', task: 'film', child: done.identity.pid, state: 'completed' },
      { queue: 'long', id: 'stopped', task: 'film', child: stopped.identity.pid, state: 'cancelled' },
    ])
  })
})
