import type { ExtendItem } from 'millrace/store'
import { ManualClock } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { LeaseBeats } from '#src/runtime/leases/lease-beats.js'
import { type Letter, leaseBatch, type Report } from '#src/runtime/leases/lease-messages.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { claimOf } from './claim-of.js'

const claim = claimOf()

type Answer = 'ok' | 'lost' | 'cancel'

/** Beats over a store that answers as told, on a clock that ticks by hand. */
class Scene {
  readonly clock = new ManualClock(0)
  readonly calls: { at: number; items: readonly ExtendItem[] }[] = []
  readonly reports: Report[] = []
  readonly beats: LeaseBeats
  answer: (items: readonly ExtendItem[]) => Promise<Answer[]> = async (items) => items.map(() => 'ok')

  constructor(maxBatch = 250, announces = true) {
    const extend = (items: readonly ExtendItem[]) => {
      this.calls.push({ at: this.clock.mono(), items })
      return this.answer(items)
    }
    this.beats = new LeaseBeats({
      connect: async () => ({ traits: { ...memoryTraits, maxBatch }, extend }),
      mono: () => this.clock.mono(),
      host: 'h',
      pid: 7,
      report: (told) => this.reports.push(told),
      announces,
    })
  }

  take(news: Partial<Letter>): void {
    this.beats.take({ at: 0, ...news })
  }

  /** Keeps so many leases, numbered from 1, whose handlers have begun. */
  keep(count: number, leaseMs: number, sentAt = 0): void {
    const numbers = Array.from({ length: count }, (_, i) => i + 1)
    const jobs = numbers.map((number) => ({ claim: { ...claim, id: `job-${number}` } }))
    this.take({
      kept: [leaseBatch(jobs, 1, { leaseMs, sentAt, maxBlockMs: 30_000 })],
      begun: numbers.map((number) => [number, 0]),
    })
  }

  async run(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += 500) {
      this.clock.advance(500)
      await this.beats.tick()
    }
  }

  told<Kind extends Report['kind']>(kind: Kind): Extract<Report, { kind: Kind }>[] {
    return this.reports.filter((report) => report.kind === kind) as Extract<Report, { kind: Kind }>[]
  }
}

describe('heartbeats', () => {
  it('announce a begun job after a second and renew its lease every third of it, until it is forgotten', async () => {
    const scene = new Scene()
    scene.keep(1, 30_000)
    await scene.run(32_500)
    scene.take({ forgotten: [{ first: 1, last: 1 }] })
    await scene.run(60_000)

    expect(scene.calls.map(({ at }) => at)).toEqual([1_000, 11_000, 21_000, 31_000])
    const renewal = { queue: 'q', id: 'job-1', fence: 1, leaseMs: 30_000 }
    expect(scene.calls[0]!.items).toEqual([{ ...renewal, beat: { startedMs: 1_000, host: 'h', pid: 7 } }])
    expect(scene.calls[1]!.items).toEqual([renewal])
    expect(scene.told('renewed')[1]).toEqual({ kind: 'renewed', leases: [1], sentAt: 11_000, answeredAt: 11_000 })
    expect(scene.told('lost')).toEqual([])
    expect(scene.beats.size).toBe(0)
  })

  it('do not report a lease as lost that others have renewed, and renew it a third of its lease later', async () => {
    const scene = new Scene()
    scene.keep(1, 30_000)
    scene.clock.advance(40_000)
    scene.take({ renewed: [{ leases: [1, 2], sentAt: 39_000 }] })
    await scene.run(11_000)

    expect(scene.told('lost')).toEqual([])
    expect(scene.calls.map(({ at }) => at)).toEqual([49_000])
  })

  it('send nothing for a job that is forgotten within the first second', async () => {
    const scene = new Scene()
    scene.keep(1, 30_000)
    await scene.run(500)
    scene.take({ forgotten: [{ first: 1, last: 1 }] })
    await scene.run(5_000)

    expect(scene.calls).toEqual([])
  })

  it('say that a job has started only once its handler has begun, and within two seconds', async () => {
    const scene = new Scene()
    scene.take({ kept: [leaseBatch([{ claim }], 1, { leaseMs: 30_000, sentAt: 0, maxBlockMs: 30_000 })] })
    await scene.run(3_000)
    expect(scene.calls.map(({ items }) => items[0]!.beat)).toEqual([undefined])
    scene.take({ begun: [[1, 2_600]] })
    await scene.run(2_000)
    expect(scene.calls.map(({ items }) => items[0]!.beat?.startedMs)).toEqual([undefined, 1_400])
  })

  it('announce nothing to a store that does not record the start of a handler', async () => {
    const scene = new Scene(250, false)
    scene.keep(1, 30_000)
    await scene.run(25_000)

    expect(scene.calls.map(({ at }) => at)).toEqual([10_000, 20_000])
  })

  it('renew the shortest possible lease, however late they tick', async () => {
    const scene = new Scene()
    scene.keep(1, 3_000, -7)
    for (let i = 0; i < 200; i += 1) {
      scene.clock.advance((i % 3) * 40)
      await scene.run(500)
    }

    expect(scene.told('lost')).toEqual([])
    for (const [i, { at }] of scene.calls.entries()) expect(at - (scene.calls[i - 1]?.at ?? 0)).toBeLessThan(1_700)
  })

  it('report a lease as lost at its local deadline, counted from before the last renewing call was sent', async () => {
    const scene = new Scene()
    scene.answer = async (items) => {
      if (scene.calls.length > 1) throw new Error('store away')
      scene.clock.advance(400)
      return items.map(() => 'ok')
    }
    scene.keep(1, 30_000)
    await scene.run(1_000)
    // Sent at 1,000, answered at 1,400; the margin of 30 s is 3 s: the deadline is 28,000.
    await scene.run(26_000)
    scene.clock.advance(599)
    await scene.beats.tick()
    expect(scene.clock.mono()).toBe(27_999)
    expect(scene.told('lost')).toEqual([])
    scene.clock.advance(1)
    await scene.beats.tick()
    expect(scene.told('lost')).toEqual([{ kind: 'lost', leases: [1] }])
  })

  it('report a failing store and retry at each tick, with their unsent data', async () => {
    const scene = new Scene()
    const ok = scene.answer
    scene.answer = () => Promise.reject(new Error('store away'))
    scene.keep(1, 30_000)
    scene.take({ progress: [[1, { fraction: 0.5 }]] })
    await scene.run(2_000)
    expect(scene.told('failed').map(({ error }) => (error as Error).message)).toEqual(Array(3).fill('store away'))
    scene.answer = ok
    await scene.run(500)
    expect(scene.calls.at(-1)!.items[0]!.beat).toEqual({
      startedMs: 2_500,
      host: 'h',
      pid: 7,
      progress: { fraction: 0.5 },
    })
    await scene.run(5_000)
    expect(scene.calls).toHaveLength(4)
  })

  it('never send a call while one is under way, and still notice deadlines', async () => {
    const scene = new Scene()
    let answer: (answers: Answer[]) => void = () => {}
    scene.answer = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    scene.keep(1, 30_000)
    for (let i = 0; i < 27; i += 1) {
      scene.clock.advance(1_000)
      void scene.beats.tick()
      await Promise.resolve()
    }
    expect(scene.calls).toHaveLength(1)
    expect(scene.told('lost')).toEqual([{ kind: 'lost', leases: [1] }])
    // Too late: it has been told as lost, and stays so.
    answer(['ok'])
    await scene.run(5_000)
    expect(scene.told('renewed').flatMap(({ leases }) => leases)).toEqual([])
    expect(scene.calls).toHaveLength(1)
  })

  it('send at most as many items as the store takes', async () => {
    const scene = new Scene(4)
    scene.keep(10, 30_000)
    await scene.run(1_000)
    expect(scene.calls.map(({ items }) => items.length)).toEqual([4, 4, 2])
  })

  it('carry the latest progress once, and at most one a second', async () => {
    const scene = new Scene()
    scene.keep(1, 30_000)
    scene.take({ progress: [[1, { fraction: 0.1 }]] })
    scene.take({ progress: [[1, { fraction: 0.2, note: 'on' }]] })
    await scene.run(1_000)
    scene.take({ progress: [[1, { fraction: 0.3 }]] })
    await scene.run(4_000)
    expect(scene.calls.map(({ at, items }) => [at, items[0]!.beat?.progress])).toEqual([
      [1_000, { fraction: 0.2, note: 'on' }],
      [2_000, { fraction: 0.3 }],
    ])
  })

  it('report a lost lease once, stop renewing it, and keep it listed until it is forgotten', async () => {
    const scene = new Scene()
    scene.answer = async (items) => items.map(({ id }) => (id === 'job-2' ? 'lost' : 'ok'))
    scene.keep(3, 3_000)
    await scene.run(6_000)
    expect(scene.told('lost')).toEqual([{ kind: 'lost', leases: [2] }])
    expect(scene.calls.flatMap(({ items }) => items).filter(({ id }) => id === 'job-2')).toHaveLength(1)
    expect(scene.beats.size).toBe(3)
    scene.take({ forgotten: [{ first: 1, last: 3 }] })
    expect(scene.beats.size).toBe(0)
  })

  it('renew the rest of a batch, wherever others were forgotten, each under its own id', async () => {
    for (const [forgotten, left] of [
      [[{ first: 1, last: 2 }], ['c', 'd', 'e']],
      [[{ first: 4, last: 5 }], ['a', 'b', 'c']],
      [[{ first: 3, last: 3 }], ['a', 'b', 'd', 'e']],
      [
        [
          { first: 1, last: 1 },
          { first: 2, last: 2 },
          { first: 4, last: 9 },
        ],
        ['c'],
      ],
      [[{ first: 0, last: 5 }], []],
    ] as const) {
      const scene = new Scene()
      const jobs = ['a', 'b', 'c', 'd', 'e'].map((id, i) => ({
        claim: { ...claim, id, fence: 7 + (i % 2), task: `task-${id}` },
      }))
      scene.take({ kept: [leaseBatch(jobs, 1, { leaseMs: 30_000, sentAt: 0, maxBlockMs: 30_000 })] })
      scene.take({ forgotten })
      expect(scene.beats.size).toBe(left.length)
      scene.take({ begun: [1, 2, 3, 4, 5].map((number) => [number, 0]) })
      await scene.run(1_000)

      const expected = jobs.map(({ claim }) => claim).filter(({ id }) => (left as readonly string[]).includes(id))
      expect(scene.calls.flatMap(({ items }) => items)).toMatchObject(expected.map(({ id, fence }) => ({ id, fence })))
      expect(scene.beats.running()).toEqual(expected.map(({ queue, id, task }) => ({ queue, id, task })))
    }
  })

  it('report a cancel once, and keep renewing the lease', async () => {
    const scene = new Scene()
    scene.answer = async (items) => items.map(() => 'cancel')
    scene.keep(1, 3_000)
    await scene.run(6_000)
    expect(scene.told('cancelled')).toEqual([{ kind: 'cancelled', leases: [1] }])
    expect(scene.told('lost')).toEqual([])
    expect(scene.calls.length).toBeGreaterThan(4)
  })

  it('drop every lease on request', async () => {
    const scene = new Scene()
    scene.keep(3, 3_000)
    await scene.run(1_000)
    expect(scene.beats.running().map(({ id }) => id)).toEqual(['job-1', 'job-2', 'job-3'])
    expect(scene.beats.giveUp(29_999)).toBe(0)
    expect(scene.beats.giveUp(30_000)).toBe(3)
    await scene.run(6_000)
    expect(scene.told('lost')).toEqual([{ kind: 'lost', leases: [1, 2, 3] }])
    expect(scene.calls).toHaveLength(1)
    expect(scene.beats.running()).toEqual([])
  })
})
