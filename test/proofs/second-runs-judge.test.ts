import { describe, expect, it } from 'vitest'
import type { EffectLine, Kind } from '../../proofs/everything/effect-lines.js'
import type { Halt, Leave } from '../../proofs/everything/everything-crew.js'
import { type StoreSpan, secondRuns, unsettledAtKills } from '../../proofs/everything/second-runs-judge.js'

const leaseMs = 4_000

type Words = readonly [at: number, pid: number, what: EffectLine['what'], kind: Kind, id: string, more?: string]

const linesOf = (words: readonly Words[]): EffectLine[] =>
  words.map(([at, pid, what, kind, id, more = '']) => ({ at, pid, what, kind, id, more, fence: pid }))
const killed = (pid: number, from: number): Halt => ({ pid, kind: 'kill', from, until: Number.POSITIVE_INFINITY })
const again: Words[] = [
  [9_000, 3, 'begun', 'plain', 'p1'],
  [9_001, 3, 'ended', 'plain', 'p1'],
]

function causes(
  words: readonly Words[],
  halts: readonly Halt[] = [],
  storeSpans: readonly StoreSpan[] = [],
  leaves: readonly Leave[] = [],
) {
  return secondRuns({ lines: linesOf(words), halts, leaves, storeSpans, leaseMs }).map(({ cause }) => cause)
}

describe('the judge of second runs', () => {
  const begun: Words = [1_000, 2, 'begun', 'plain', 'p1']
  const ended: Words = [1_005, 2, 'ended', 'plain', 'p1']

  it('finds none if each job ran once', () => {
    expect(causes([begun, ended])).toEqual([])
  })

  it('separates a kill during a run from one between effect and settle', () => {
    expect(causes([begun, ...again], [killed(2, 1_002)])).toEqual(['killed while it ran'])
    expect(causes([begun, ended, ...again], [killed(2, 1_010)])).toEqual(['killed between effect and settle'])
  })

  it('finds no cause for a run after a stored completion', () => {
    expect(causes([begun, ended, [1_008, 2, 'completed', 'plain', 'p1'], ...again], [killed(2, 1_010)])).toEqual([
      'unknown',
    ])
  })

  it('blames a stop if it was longer than half a lease and met the run', () => {
    const stop = (ms: number): Halt => ({ pid: 2, kind: 'stop', from: 1_002, until: 1_002 + ms })
    expect(causes([begun, ended, ...again], [stop(6_000)])).toEqual(['stopped beyond its lease'])
    expect(causes([begun, ended, ...again], [stop(1_000)])).toEqual(['unknown'])
  })

  it('blames the store if it was away for longer than the lease', () => {
    const span = { name: 'outages', from: 1_002, until: 7_002 }
    expect(causes([begun, ended, ...again], [], [span])).toEqual(['the store was away beyond the lease: outages'])
  })

  it('separates a job put back after the grace of a deploy from one that failed', () => {
    const told = (more: string): Words => [1_500, 2, 'told', 'plain', 'p1', more]
    expect(causes([begun, told('job.released|interrupted'), ...again])).toEqual([
      'put back: the grace of a deploy was over',
    ])
    expect(causes([begun, ended, told('job.failed|Error:_no'), ...again])).toEqual(['its handler failed: Error:_no'])
  })

  it('blames a deploy for a job that its worker left behind unreported, also an isolated one', () => {
    const deployed = 'put back: the grace of a deploy was over'
    expect(causes([begun, ...again], [], [], [{ pid: 2, at: 1_500 }])).toEqual([deployed])
    const long: Words[] = [
      [1_000, 8, 'begun', 'long', 'l1'],
      [1_100, 7, 'told', 'long', 'l1', 'job.started'],
      [9_000, 9, 'begun', 'long', 'l1'],
    ]
    expect(causes(long, [], [], [{ pid: 7, at: 1_500 }])).toEqual([deployed])
    expect(causes(long, [killed(7, 1_500)])).toEqual(['killed with its worker'])
    expect(causes(long, [killed(8, 1_500)])).toEqual(['its own process was killed'])
  })

  it('judges each revision of an ordered id separately', () => {
    const lines: Words[] = [
      [1_000, 2, 'begun', 'ordered', 'o1', '1,2'],
      [2_000, 3, 'begun', 'ordered', 'o1', '2,3'],
    ]
    expect(
      secondRuns({ lines: linesOf(lines), halts: [killed(2, 1_500)], leaves: [], storeSpans: [], leaseMs }),
    ).toHaveLength(1)
  })

  it('counts for each killed worker the jobs that had ended without a stored completion', () => {
    const lines = linesOf([begun, ended, [1_006, 2, 'completed', 'plain', 'p1'], [1_007, 2, 'ended', 'plain', 'p2']])
    expect(unsettledAtKills({ lines, halts: [killed(2, 1_010)] })).toEqual([1])
  })
})
