import { describe, expect, it } from 'vitest'
import { BlockWatch, blockedLine, givenUpLine } from '#src/runtime/leases/lease-thread-loop.js'

/** Ticks each half second from `from`; the loop gave its signs at these times. Returns the news with the time of each. */
function news(signs: readonly number[], untilMs: number, maxBlockMs = 30_000) {
  const watch = new BlockWatch(0)
  const told = []
  for (let now = 500; now <= untilMs; now += 500) {
    const heard = signs.filter((at) => at <= now && at > now - 500).at(-1)
    const heardNews = watch.tick(now, heard, maxBlockMs)
    if (heardNews !== undefined) told.push({ at: now, ...heardNews })
  }
  return told
}

describe('the block watch', () => {
  it('reports nothing about a running event loop', () => {
    const each = Array.from({ length: 200 }, (_, i) => i * 480)
    expect(news(each, 90_000)).toEqual([])
    expect(news([4_000, 8_800], 13_500)).toEqual([])
  })

  it('reports a block after five seconds, giving up at maxBlock, and the return', () => {
    expect(news([100, 31_900], 40_000)).toEqual([
      { at: 5_500, kind: 'blocked', forMs: 5_400 },
      { at: 30_500, kind: 'given-up', forMs: 30_400 },
      { at: 32_000, kind: 'back', forMs: 31_900 },
      { at: 37_000, kind: 'blocked', forMs: 5_100 },
    ])
  })

  it('reports a block at half of a short maxBlock', () => {
    expect(news([0], 3_000, 2_000)).toEqual([
      { at: 1_500, kind: 'blocked', forMs: 1_500 },
      { at: 2_000, kind: 'given-up', forMs: 2_000 },
    ])
  })

  it('reports giving up again if other leases may be held for longer', () => {
    const watch = new BlockWatch(0)
    const told = []
    for (let now = 500; now <= 9_000; now += 500) {
      const heardNews = watch.tick(now, undefined, now <= 2_000 ? 2_000 : 8_000)
      if (heardNews !== undefined) told.push({ at: now, kind: heardNews.kind })
    }

    expect(told).toEqual([
      { at: 1_500, kind: 'blocked' },
      { at: 2_000, kind: 'given-up' },
      { at: 8_000, kind: 'given-up' },
    ])
  })

  it('does not mistake a stopped process for a blocked event loop', () => {
    const watch = new BlockWatch(0)
    expect(watch.tick(500, 400, 30_000)).toBeUndefined()
    // Nothing ran for a minute, neither the loop nor the listener.
    expect(watch.tick(60_500, undefined, 30_000)).toBeUndefined()
    expect(watch.tick(61_000, 60_600, 30_000)).toBeUndefined()
    // The sign was given before the stop and is read after it.
    expect(watch.tick(121_000, 61_100, 30_000)).toBeUndefined()
    for (let now = 121_500; now <= 124_500; now += 500) expect(watch.tick(now, undefined, 30_000)).toBeUndefined()
  })
})

describe('the message on a blocked event loop', () => {
  const job = (id: string) => ({ queue: 'video', id, task: 'encode' })

  it('names at most five jobs and counts the rest', () => {
    const jobs = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(job)
    expect(blockedLine(41, 5_230, jobs)).toBe(
      'millrace: the event loop of process 41 has been blocked for 5.2 s. The leases of its jobs are kept for now. In hand: video/a (encode), video/b (encode), video/c (encode), video/d (encode), video/e (encode), and 2 more.\n',
    )
    expect(givenUpLine(41, 30_100, 7)).toContain(
      'blocked for 30.1 s. That is longer than maxBlock: 7 leases are let go',
    )
  })

  it('is one line, whatever an id contains', () => {
    expect(blockedLine(41, 5_000, [job('x\n\u001b[2Jy')]).match(/\p{Cc}/gu)).toEqual(['\n'])
  })
})
