/** The layout of a graph of joins: the columns, the order in them, the sizes of boxes, and counts; all pure. */

import { describe, expect, it } from 'vitest'
import type { GraphSet, JobState, JoinGraph } from '../../dashboard/src/api/answers.js'
import { countsByTask, type GraphLayout, layoutOf } from '../../dashboard/src/pages/job/join-layout.js'

const none = { completed: 0, dead: 0, cancelled: 0, expired: 0 }

/** A graph of the jobs `0 … count − 1`; each set by the place of its join, its name and the places of its members. */
function graphOf(count: number, sets: readonly (readonly [number, string, number[], Partial<GraphSet>?])[]): JoinGraph {
  return {
    jobs: Array.from({ length: count }, (_, i) => ({
      queue: 'q',
      id: `job-${i}`,
      task: 't',
      state: 'ready' as JobState,
    })),
    sets: sets.map(([join, name, members, more]) => ({
      ...{ join, name, queue: 'q', ids: `${join}.${name}`, isMany: members.length !== 1, members },
      ...{ size: members.length, added: members.length, done: 0, counts: none },
      ...more,
    })),
    more: false,
  }
}

const columnsOf = ({ boxes }: GraphLayout) => boxes.map(({ column, jobs }) => [column, ...jobs])

/** How often two lines between the same columns cross. */
function crossings({ boxes, lines }: GraphLayout): number {
  const ends = lines.map(({ from, to }) => [boxes[from]!, boxes[to]!] as const)
  return ends.filter(([a, b], i) =>
    ends.slice(0, i).some(([c, d]) => a.column === c.column && (a.y - c.y) * (b.y - d.y) < 0),
  ).length
}

it('a set that is the beginning of another one is drawn with it, and its members may wait themselves', () => {
  const ids = { ids: 'list', isMany: true }
  const layout = layoutOf(
    graphOf(6, [
      [0, 'few', [2, 3], ids],
      [1, 'all', [2, 3, 4], ids],
      [2, 'rate', [5]],
      [3, 'rate', [5]],
      [4, 'rate', [5]],
    ]),
  )

  expect(columnsOf(layout)).toEqual([
    [0, 5],
    [1, 2, 3, 4],
    [2, 0],
    [2, 1],
  ])
})

describe('the columns', () => {
  it('go from what is waited for to who waits, as many as the longest way has steps', () => {
    const chain = layoutOf(
      graphOf(4, [
        [0, 'after', [1]],
        [1, 'after', [2]],
        [2, 'after', [3]],
      ]),
    )

    expect(columnsOf(chain)).toEqual([
      [0, 3],
      [1, 2],
      [2, 1],
      [3, 0],
    ])
    const xs = chain.boxes.map(({ x }) => x)
    expect(xs).toEqual([...xs].sort((a, b) => a - b))
    expect(new Set(xs).size).toBe(4)
  })

  it('put what waits for nothing right before whom it is for', () => {
    const layout = layoutOf(
      graphOf(4, [
        [0, 'long', [1]],
        [1, 'after', [2]],
        [0, 'short', [3]],
      ]),
    )

    expect(columnsOf(layout).sort()).toEqual([
      [0, 2],
      [1, 1],
      [1, 3],
      [2, 0],
    ])
  })

  it('leave room for a line that passes through them, so that it passes no box', () => {
    const { boxes, lines } = layoutOf(
      graphOf(4, [
        [0, 'long', [1]],
        [1, 'after', [2]],
        [0, 'early', [2]],
        [1, 'other', [3]],
      ]),
    )
    const long = lines.find(({ from, to }) => boxes[from]!.jobs[0] === 2 && boxes[to]!.jobs[0] === 0)!
    const between = boxes.find(({ column }) => column === 1)!

    expect(long.way).toHaveLength(2)
    const [{ y, fromX, toX }] = long.way as [(typeof long.way)[number]]
    expect([fromX, toX]).toEqual([between.x, between.x + between.width])
    expect(y < between.y || y > between.y + between.height).toBe(true)
  })

  it('are bounded if a damaged store says that jobs wait for each other', () => {
    const layout = layoutOf(
      graphOf(2, [
        [0, 'a', [1]],
        [1, 'b', [0]],
      ]),
    )

    expect(layout.boxes).toHaveLength(2)
    expect(layout.lines).toHaveLength(2)
  })
})

describe('the boxes', () => {
  it('do not overlap, and are inside the drawing', () => {
    const { boxes, width, height } = layoutOf(
      graphOf(40, [
        [0, 'tiles', Array.from({ length: 20 }, (_, i) => i + 10)],
        [0, 'rows', [1, 2, 3]],
        [0, 'one', [4]],
        [5, 'one', [4]],
        [6, 'first', [0]],
        [6, 'second', [5]],
      ]),
    )

    for (const box of boxes) {
      expect(box.x + box.width).toBeLessThanOrEqual(width)
      expect(box.y).toBeGreaterThanOrEqual(0)
      expect(box.y + box.height).toBeLessThanOrEqual(height)
    }
    for (const a of boxes)
      for (const b of boxes)
        expect(
          a !== b && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height,
        ).toBe(false)
  })

  it('hold a set of many: a few as rows, more as tiles, and by counts if it has no room', () => {
    const { boxes } = layoutOf(
      graphOf(12, [
        [0, 'few', [1, 2, 3]],
        [0, 'more', [4, 5, 6, 7, 8, 9, 10, 11]],
        [0, 'most', [], { isMany: true, isCounted: true, size: 100_000, added: 100_000 }],
      ]),
    )

    expect(boxes.map(({ kind, jobs }) => [kind, jobs.length]).sort()).toEqual([
      ['counts', 0],
      ['job', 1],
      ['rows', 3],
      ['tiles', 8],
    ])
  })

  it('hold members for which several jobs wait once, with a line to each, open until it waits no more', () => {
    const shared = { ids: 'shared', isMany: true }
    const { boxes, lines } = layoutOf(
      graphOf(4, [
        [0, 'sales', [2, 3], shared],
        [1, 'sales', [2, 3], { ...shared, done: 2 }],
      ]),
    )
    const set = boxes.findIndex(({ jobs }) => jobs.length === 2)

    expect(boxes).toHaveLength(3)
    expect(lines.map(({ from, to, isOpen }) => [from, boxes[to]!.jobs[0], isOpen])).toEqual([
      [set, 0, true],
      [set, 1, false],
    ])
    expect(boxes[set]!.before).toEqual([0, 1])
  })

  it('leave out a set without members', () => {
    const { boxes, lines } = layoutOf(
      graphOf(2, [
        [0, 'none', [], { isMany: true }],
        [0, 'one', [1]],
      ]),
    )

    expect([boxes.length, lines.length]).toEqual([2, 1])
  })
})

it('the lines cross no more than they must', () => {
  // Stored in the worst order: the first of one side belongs to the last of the other.
  const pairs = Array.from({ length: 8 }, (_, i) => [i + 1, 'one', [16 - i]] as const).map(
    ([join, name, members]) => [join, name, [...members]] as [number, string, number[]],
  )
  const layout = layoutOf(graphOf(17, [...pairs, [0, 'all', [1, 2, 3, 4, 5, 6, 7, 8].reverse(), { isMany: false }]]))

  expect(crossings(layout)).toBe(0)
})

describe('the counts by task and state', () => {
  it('add the jobs that are shown and the sets that are not', () => {
    const graph = graphOf(3, [
      [
        0,
        'sales',
        [2],
        {
          ...{ isMany: true, isCounted: true, task: 'sum', size: 1_000, added: 1_000, done: 7 },
          counts: { ...none, completed: 7, dead: 1 },
        },
      ],
    ])

    expect(countsByTask(graph)).toEqual([
      ['t', { ready: 2 }],
      ['sum', { 'not ended': 992, completed: 7, dead: 1 }],
    ])
  })

  it('count a member for which several jobs wait once', () => {
    const counted = { isMany: true, isCounted: true as const, ids: 'shared', task: 'sum', size: 500, added: 500 }
    const graph = graphOf(2, [
      [0, 'sales', [], counted],
      [1, 'sales', [], counted],
    ])

    expect(countsByTask(graph)).toEqual([
      ['t', { ready: 2 }],
      ['sum', { 'not ended': 500 }],
    ])
  })

  it('name jobs of which nobody knows how they have ended', () => {
    const graph: JoinGraph = { jobs: [{ queue: 'q', id: 'a' }], sets: [], more: false }

    expect(countsByTask(graph)).toEqual([[undefined, { ended: 1 }]])
  })
})
