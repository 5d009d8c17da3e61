/** The page of those who come from Blueque, against the names of its README and its code. */

import { describe, expect, it } from 'vitest'
import { Document, plain } from './document.js'
import { membersOf } from './interface-members.js'

const page = new Document('docs/coming-from/blueque.md')

/** Every method and attribute of its README, and what its code has beyond. */
const names = `
Client get_queue enqueue schedule enqueue_due_tasks delete_task get_task get_listener listen on_new_task claim_orphan
get_processor start complete fail ForkingRunner
id status queue parameters result error node pid created updated eta reclaimed_node
scheduled pending reserved started complete succeeded failed
MULTI WATCH RPOPLPUSH HMSET
`
const keys = ['pending', 'reserved', 'scheduled', 'started', 'complete', 'failed']

describe('the page for users of Blueque', () => {
  const rows = page.tables.flatMap((table) => table.rows)
  const left = rows.map(([was]) => was!).join('\n')

  it("says what replaces every name in Blueque's documentation", () => {
    const isNamed = (name: string) => new RegExp(`(?<![\\w-])${name}(?![a-z_])`).test(left)
    const all = names.split(/\s+/).filter((name) => name !== '')
    expect(all.filter((name) => !isNamed(name))).toEqual([])
  })

  it('has every key, and every state next to its own name', () => {
    const ofKeys = page
      .rows('Keys')
      .map(([was]) => plain(was!))
      .join('\n')
    for (const key of [
      ...keys.map((state) => `${state}_tasks_[queue]`),
      'task_[id]',
      'tasks_[queue]',
      'listeners_[queue]',
      'queues',
    ])
      expect(ofKeys).toContain(`blueque_${key}`)
    const states = page.rows('States').map(([was, now]) => [plain(was!), plain(now!)])
    for (const [was, now] of [
      ['pending', 'ready'],
      ['failed', 'dead'],
      ['scheduled', 'scheduled'],
    ])
      expect(states.find(([state]) => state === was)?.[1]).toMatch(new RegExp(`^${now}`))
  })

  it('has in each row a counterpart, or the reason for its absence', () => {
    expect(rows.length).toBeGreaterThan(65)
    expect(rows.filter((row) => row.length < 2 || row.some((cell) => cell === ''))).toEqual([])
  })

  it('names every option of a listener, and every method of a claim', () => {
    const right = rows.map(([, now]) => plain(now!)).join('\n')
    const left = (members: readonly { readonly name: string }[]) =>
      members.map(({ name }) => name).filter((name) => !new RegExp(`\\b${name}\\b`).test(right))
    expect(left(membersOf('mill/options/listener-options.ts', 'ListenerOptions'))).toEqual([])
    expect(left(membersOf('workers/listener/listener-claim.ts', 'ListenerClaim'))).toEqual([])
  })
})
