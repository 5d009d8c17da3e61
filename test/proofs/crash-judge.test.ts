import { describe, expect, it } from 'vitest'
import type { EffectLine } from '../../proofs/everything/effect-lines.js'
import { crashJudgement } from '../../proofs/postgres/crash-judge.js'

let at = 0

function line(what: EffectLine['what'], id: string, rest: Partial<EffectLine> = {}): EffectLine {
  at += 1
  return { pid: 1, what, at, kind: 'plain', id, fence: 0, more: '', ...rest }
}

const run = (id: string, rest: Partial<EffectLine>): EffectLine[] => [
  line('begun', id, rest),
  line('ended', id, rest),
  line('completed', id, rest),
]
const ordered = { kind: 'ordered' } as const
const nothing = { lost: [], cameBack: [], sharedFences: [], overlaps: [], disorders: [] }

describe('the judge of crashes', () => {
  it('finds nothing if each accepted job completes, also after a run without an end', () => {
    const lines = [
      ...[line('accepted', 'a'), line('accepted', 'e:1', ordered), line('accepted', 'e:2', ordered)],
      line('begun', 'a', { fence: 1 }),
      ...run('a', { pid: 2, fence: 2 }),
      ...run('e', { ...ordered, fence: 3, more: '1,2' }),
    ]
    expect(crashJudgement(lines)).toMatchObject({
      ...nothing,
      ...{ accepted: { plain: 1, ordered: 2 }, runs: 3, runsAgain: 1, completed: 3 },
    })
  })

  it('finds a job that nobody ran to its end', () => {
    const lines = [line('accepted', 'a'), line('begun', 'a', { fence: 1 }), line('accepted', 'e:1', ordered)]
    expect(crashJudgement(lines).lost).toEqual(['plain a', 'ordered e:1'])
  })

  it('finds a claim that was made after a completion, and none that was made before it', () => {
    const stale = line('begun', 'a', { pid: 2, fence: 1 })
    expect(crashJudgement([...run('a', { fence: 2 }), stale])).toMatchObject(nothing)
    const late = line('begun', 'a', { pid: 2, fence: 3 })
    expect(crashJudgement([...run('a', { fence: 2 }), late]).cameBack).toEqual(['plain a'])
  })

  it('finds a fence that two processes were given', () => {
    const lines = [line('begun', 'a', { fence: 1 }), line('begun', 'a', { pid: 2, fence: 1 })]
    expect(crashJudgement(lines).sharedFences).toEqual(['plain a under 1'])
  })

  it('finds runs of one id at the same time', () => {
    const [first, second] = [
      run('e', { ...ordered, fence: 1, more: '1' }),
      run('e', { ...ordered, pid: 2, fence: 2, more: '2' }),
    ]
    const lines = [first[0]!, second[0]!, ...first.slice(1), ...second.slice(1)]
    const inTime = lines.map((one, n) => ({ ...one, at: n }))
    expect(crashJudgement(inTime).overlaps).toEqual(['ordered e under 2'])
  })

  it('finds an accepted payload that was claimed after one that came later', () => {
    const accepted = [line('accepted', 'e:1', ordered), line('accepted', 'e:2', ordered)]
    const runs = [...run('e', { ...ordered, fence: 1, more: '2' }), ...run('e', { ...ordered, fence: 2, more: '1' })]
    expect(crashJudgement([...accepted, ...runs]).disorders).toEqual(['ordered e:1'])
    expect(crashJudgement([accepted[1]!, ...runs]).disorders).toEqual([])
  })
})
