import type { Candidate, Claimed, Selector } from 'millrace'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { queueOf, queueOptionsSchema } from '#src/core/queue.js'
import { Draw } from '#src/workers/draw.js'

const queue = (name: string, iterations = 1) => queueOf(name, v.parse(queueOptionsSchema, { iterations }))
const granted = (name: string): Claimed => ({
  now: 0,
  queue: name,
  claims: [],
  crashed: [],
  buried: [],
  waits: [],
  more: false,
})
const nothing: Claimed = { now: 0, claims: [], crashed: [], buried: [], waits: [], more: false }
const inOrder: Selector = (queues) => queues.map(({ name }) => name)
const onlyFirst: Selector = (queues) => [queues[0]!.name]

describe('a draw', () => {
  it('asks each queue once until one grants or it is time to look again', () => {
    const draw = new Draw(onlyFirst, [queue('a'), queue('b')], Math.random)
    expect(draw.next()).toEqual(['a'])
    draw.answered(['a'], nothing)
    expect(draw.next()).toEqual(['b'])
    draw.answered(['b'], nothing)
    expect(draw.next()).toEqual([])
    expect(draw.tried).toEqual(['a', 'b'])

    draw.sweep()
    expect(draw.next()).toEqual(['a'])
    draw.answered(['a'], nothing)
    draw.answered(['b'], granted('b'))
    expect(draw.next()).toEqual(['a'])
  })

  it('stays on a queue for its iterations, as long as it grants', () => {
    const draw = new Draw(inOrder, [queue('a'), queue('b', 3)], Math.random)
    draw.answered(['a', 'b'], granted('b'))
    expect(draw.next()).toEqual(['b'])
    draw.answered(['b'], granted('b'))
    expect(draw.next()).toEqual(['b'])
    draw.answered(['b'], granted('b'))
    expect(draw.next()).toEqual(['a', 'b'])

    draw.answered(['a', 'b'], granted('b'))
    draw.answered(['b'], nothing)
    expect(draw.next()).toEqual(['a'])
  })

  it('leaves alone what a selector leaves out, and rests when it names none', () => {
    const draw = new Draw(
      (queues) => queues.filter(({ name }) => name !== 'b').map(({ name }) => name),
      [queue('a'), queue('b')],
      Math.random,
    )
    draw.answered(['a'], nothing)
    expect(draw.next()).toEqual([])
    expect(draw.tried).toEqual(['a'])
  })

  it('asks at most sixteen in one trip, then the others', () => {
    const names = Array.from({ length: 20 }, (_, i) => `q${i}`)
    const draw = new Draw(
      inOrder,
      names.map((name) => queue(name)),
      Math.random,
    )
    expect(draw.next()).toEqual(names.slice(0, 16))
    draw.answered(names.slice(0, 16), nothing)
    expect(draw.next()).toEqual(names.slice(16))
  })

  it('asks first what was rung, and looks again at sixteen queues at most, those asked longest ago first', () => {
    const names = Array.from({ length: 20 }, (_, i) => `q${i}`)
    const draw = new Draw(
      inOrder,
      names.map((name) => queue(name)),
      Math.random,
    )
    for (const name of names) draw.answered([name], nothing)
    expect(draw.next()).toEqual([])
    draw.heard(['q19'])
    expect(draw.next()).toEqual(['q19'])
    draw.sweep()
    expect(draw.next()).toEqual(['q19', ...names.slice(0, 15)])
    draw.answered(['q19', ...names.slice(0, 16)], nothing)
    draw.sweep()
    expect(draw.next()).toEqual(expect.arrayContaining(['q16', 'q17', 'q18']))
    expect(draw.next()).toHaveLength(16)
  })

  it('drops repeated names and hands the selector the age of known heads', () => {
    const seen: (readonly Candidate[])[] = []
    const twice: Selector = (queues) => {
      seen.push(queues)
      return ['a', 'a', 'b']
    }
    const draw = new Draw(twice, [queue('a'), queue('b')], Math.random)
    draw.answered(['a'], { ...granted('a'), heads: [{ queue: 'a', ageMs: 5 }, { queue: 'b' }] })
    expect(draw.next()).toEqual(['a', 'b'])
    expect(seen[0]).toEqual([
      { name: 'a', weight: 10, headAgeMs: 5 },
      { name: 'b', weight: 10 },
    ])
  })

  it('refuses a name the worker does not serve', () => {
    expect(() => new Draw(() => ['z'], [queue('a')], Math.random).next()).toThrow(
      "'z', which this worker does not serve; it serves a",
    )
  })
})
