import { describe, expect, it } from 'vitest'
import { chaosJudgement } from '../../proofs/everything/chaos-judge.js'
import type { EffectLine, Kind } from '../../proofs/everything/effect-lines.js'
import type { Halt } from '../../proofs/everything/everything-crew.js'

const leaseMs = 4_000
const startsLimit = { limit: 2, windowMs: 1_000 }

type Words = readonly [at: number, pid: number, what: EffectLine['what'], kind: Kind, id: string, more?: string]

function judgement(words: readonly Words[], halts: readonly Halt[] = []) {
  const lines = words.map(([at, pid, what, kind, id, more = '']) => ({ at, pid, what, kind, id, more, fence: pid }))
  return chaosJudgement({ lines, halts, leaseMs, startsLimit })
}

const run = (pid: number, kind: Kind, id: string, from: number, until: number, more = ''): Words[] => [
  [from, pid, 'begun', kind, id, more],
  [until, pid, 'ended', kind, id],
  [until, pid, 'completed', kind, id],
]
const killed = (pid: number, from: number): Halt => ({ pid, kind: 'kill', from, until: Number.POSITIVE_INFINITY })

describe('the judge of the chaos run', () => {
  it('finds no fault if each job ran once', () => {
    const lines: Words[] = [[0, 1, 'accepted', 'plain', 'p1'], ...run(2, 'plain', 'p1', 5, 6)]

    expect(judgement(lines)).toMatchObject({ accepted: 1, runs: 1, again: 0, lost: [], twice: [], disorders: [] })
  })

  it('calls a job lost if its only run was killed', () => {
    const lines: Words[] = [
      [0, 1, 'accepted', 'plain', 'p1'],
      [5, 2, 'begun', 'plain', 'p1'],
    ]

    expect(judgement(lines, [killed(2, 6)]).lost).toEqual(['plain p1'])
  })

  it('calls a job completed twice if the store took both completions', () => {
    expect(judgement([...run(2, 'plain', 'p1', 5, 6), ...run(3, 'plain', 'p1', 7, 8)]).twice).toEqual(['plain p1'])
  })

  it('counts a run after a kill as another run, not as an overlap', () => {
    const lines: Words[] = [[5, 2, 'begun', 'plain', 'p1'], ...run(3, 'plain', 'p1', 7, 8)]
    const { again, twice, overlaps } = judgement(lines, [killed(2, 6)])

    expect([again, twice, overlaps]).toEqual([1, [], { outlived: 0, others: [] }])
  })

  it('finds two runs of a job at the same time', () => {
    const lines: Words[] = [
      [5, 2, 'begun', 'plain', 'p1'],
      [7, 3, 'begun', 'plain', 'p1'],
      [8, 2, 'ended', 'plain', 'p1'],
      [9, 3, 'ended', 'plain', 'p1'],
    ]

    expect(judgement(lines).overlaps.others).toHaveLength(1)
  })

  it('separates overlaps with a stopped process from others, and from a run during the stop', () => {
    const stop: Halt = { pid: 2, kind: 'stop', from: 6, until: 6_000 }
    const meanwhile: Words[] = [
      [5, 2, 'begun', 'plain', 'p1'],
      ...run(3, 'plain', 'p1', 5_000, 5_001),
      [6_001, 2, 'ended', 'plain', 'p1'],
    ]
    const after: Words[] = [
      [5, 2, 'begun', 'plain', 'p1'],
      [5_000, 3, 'begun', 'plain', 'p1'],
      [6_001, 2, 'ended', 'plain', 'p1'],
      [6_002, 3, 'ended', 'plain', 'p1'],
    ]

    expect(judgement(meanwhile, [stop]).overlaps).toEqual({ outlived: 0, others: [] })
    expect(judgement(after, [stop]).overlaps).toEqual({ outlived: 1, others: [] })
  })

  it('finds two jobs of one group at the same time', () => {
    const lines: Words[] = [
      [5, 2, 'begun', 'grouped', 'g1', 'a'],
      [6, 3, 'begun', 'grouped', 'g2', 'a'],
      [7, 2, 'ended', 'grouped', 'g1'],
      [8, 3, 'ended', 'grouped', 'g2'],
    ]

    expect(judgement(lines).overlaps.others).toHaveLength(1)
  })

  it('finds one start too many in a closed window, unless it was reported as late', () => {
    const starts = [0, 500, 1_000].flatMap((at, i) => run(2, 'throttled', `t${i}`, at, at, 'a'))

    expect(judgement(starts).windows.others).toHaveLength(1)
    expect(judgement([...starts, [1_001, 2, 'late', 'throttled', 't2']]).windows).toEqual({ late: 1, others: [] })
  })

  it('finds revisions that ran before an earlier one, or were handed over in the wrong order', () => {
    const first = [...run(2, 'ordered', 'x', 5, 6, '2'), ...run(2, 'ordered', 'x', 7, 8, '1')]

    expect(judgement(first).disorders).toEqual(['x: revision 2 was done before one that was sent earlier'])
    expect(judgement(run(2, 'ordered', 'x', 5, 6, '2,1')).disorders).toEqual(['x was given 2,1'])
  })
})
