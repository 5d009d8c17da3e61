import { type AuditEntry, auditBreaches, auditKind } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'

type States = Pick<AuditEntry, 'from' | 'to'>

function entry(id: string, { from, to }: States, fence: number): AuditEntry {
  return { at: 0, queue: 'mail', id, kind: auditKind(from, to)!, from, to, fence, worker: null }
}
const enqueue: States = { from: null, to: 'ready' }
const claim: States = { from: 'ready', to: 'running' }
const requeue: States = { from: 'running', to: 'ready' }
const leave: States = { from: 'running', to: null }

describe('the rules of an audit', () => {
  it('hold for a job that is claimed, put back, claimed again and done', () => {
    const entries = [
      entry('a', enqueue, 0),
      entry('a', claim, 1),
      entry('a', requeue, 1),
      entry('a', claim, 2),
      entry('a', leave, 2),
    ]

    expect(auditBreaches(entries)).toEqual([])
  })

  it('hold for several jobs of one claim, which share a fence', () => {
    expect(auditBreaches([entry('a', claim, 1), entry('b', claim, 1), entry('a', leave, 1)])).toEqual([])
  })

  it.each<[string, AuditEntry[], RegExp]>([
    ['a job is claimed twice at once', [entry('a', claim, 1), entry('a', claim, 2)], /fence 1 has not ended/],
    ['fences go back', [entry('a', claim, 2), entry('b', claim, 1)], /fence 2 was given before/],
    ['a superseded claim ends the job', [entry('a', claim, 2), entry('a', leave, 1)], /current claim has fence 2/],
    ['a job that nobody claimed ends as running', [entry('a', leave, 1)], /current claim has fence undefined/],
    ['a scheduled job is claimed', [entry('a', { from: 'scheduled', to: 'running' }, 1)], /scheduled, not ready/],
    [
      'a running job is taken as a waiting one',
      [entry('a', claim, 1), entry('a', { from: 'ready', to: 'dead' }, 0)],
      /is running with fence 1/,
    ],
  ])('are broken if %s', (_, entries, breach) => {
    const breaches = auditBreaches(entries)

    expect(breaches).toHaveLength(1)
    expect(breaches[0]).toMatch(breach)
  })
})

describe('a change of state', () => {
  it.each<[AuditEntry['from'], AuditEntry['to'], string | undefined]>([
    [null, 'scheduled', 'enqueue'],
    ['scheduled', 'ready', 'promote'],
    ['running', 'scheduled', 'requeue'],
    ['running', 'completed', 'keep'],
    ['ready', 'dead', 'bury'],
    ['dead', 'ready', 'revive'],
    ['scheduled', null, 'leave'],
    ['scheduled', 'scheduled', undefined],
  ])('from %s to %s is called %s', (from, to, kind) => {
    expect(auditKind(from, to)).toBe(kind)
  })
})
