import { expect, it } from 'vitest'
import { LinkedList, ListNode } from '#src/core/values/linked-list.js'

class Numbered extends ListNode {
  readonly number: number

  constructor(number: number) {
    super()
    this.number = number
  }
}

it('a linked list holds the nodes that were added and not removed, in their order', () => {
  const list = new LinkedList<Numbered>()
  const expected: Numbered[] = []
  const gone: Numbered[] = []
  for (let i = 0; i < 2_000; i += 1) {
    // A fixed sequence that grows, shrinks and becomes empty again.
    const isRemoved = (i * 7919) % 100 < (i % 400 < 200 ? 30 : 80)
    if (isRemoved && expected.length > 0) {
      const [node] = expected.splice((i * 104_729) % expected.length, 1)
      expect(list.remove(node!)).toBe(true)
      gone.push(node!)
    } else {
      const node = new Numbered(i)
      list.add(node)
      expected.push(node)
    }
    expect(list.size).toBe(expected.length)
    expect(list.first).toBe(expected[0])
    if (i % 50 === 0) expect([...list]).toEqual(expected)
  }
  expect(gone.length).toBeGreaterThan(500)
  expect(gone.filter((node) => list.remove(node))).toEqual([])
  expect(gone.flatMap(({ previous, next }) => [previous, next]).filter((node) => node !== undefined)).toEqual([])
  list.clear()
  expect([list.size, list.first, [...list]]).toEqual([0, undefined, []])
})
