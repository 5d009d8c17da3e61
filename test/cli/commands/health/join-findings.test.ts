/** What doctor says of joins that wait: for long, for dead members, and for queues that nobody serves. */

import { defineSignal, defineTask, type Mill, many } from 'millrace'
import { testMill as millOfTests } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { joinFindings, judgeJoins, type WaitingJoin } from '#src/cli/commands/queues/join-findings.js'
import type { StoredSet } from '#src/stores/contract/joins.js'
import { testMill } from '../../../test-mill.js'

const dayMs = 86_400_000
const none = { completed: 0, dead: 0, cancelled: 0, expired: 0 }

function setOf(more: Partial<StoredSet> = {}): StoredSet {
  return {
    ...{ name: 'sales', queue: 'sums', ids: 'a.sales', isMany: true, onDead: 'fail', keepsResults: true },
    ...{ size: 3, added: 3, counts: { ...none, completed: 1 }, oldest: 1 },
    ...more,
  }
}

function join(more: Partial<WaitingJoin> = {}, ...sets: StoredSet[]): WaitingJoin {
  return {
    ...{ queue: 'reports', id: 'a', task: 'report', waitedMs: 1_000 },
    join: { sets: sets.length > 0 ? sets : [setOf()] },
    ...more,
  }
}

const served = new Map([['sums', 1]])
const judged = (waiting: WaitingJoin[], workers: ReadonlyMap<string, number> | undefined = served) =>
  judgeJoins({ waiting, workers, unread: new Map() })
const textsOf = (waiting: WaitingJoin[], workers?: ReadonlyMap<string, number>) =>
  judged(waiting, workers).map(({ text }) => text)

describe('the findings about joins', () => {
  it('are none while they wait for less than a day, for members that live, in queues that are served', () => {
    expect(judged([join(), join({ id: 'b' })])).toEqual([])
    expect(judged([])).toEqual([])
  })

  it('name a join that has waited for longer than a day, and the first member for which it waits', () => {
    const long = join({ waitedMs: 2 * dayMs + 3_600_000, oldest: { state: 'scheduled' } })

    expect(judged([long])).toEqual([
      {
        level: 'warning',
        what: 'joins',
        text: "join 'a' of task 'report' in queue 'reports' has waited for 2d 1h for 2 of 3 members, first for 'a.sales.1' in queue 'sums', which is scheduled. `millrace jobs show sums a.sales.1` says more; to bound such waits, enqueue with `within`.",
      },
    ])
    expect(textsOf([{ ...long, oldest: undefined }])[0]).toContain("in queue 'sums', of which nothing is kept.")
  })

  it('say of a join whose members are still being added how to go on', () => {
    const { size: _, ...open } = setOf()

    expect(textsOf([join({ waitedMs: 2 * dayMs, id: 'my report' }, open)])).toEqual([
      "join 'my report' of task 'report' in queue 'reports' has waited for 2d, and its members are still being added: if its producer has died, enqueue it again under the same id, or cancel it: `millrace jobs cancel reports 'my report'`.",
    ])
  })

  it('name a join that waits for a dead member, at once and whatever its age', () => {
    const holding = setOf({ onDead: 'hold', counts: { ...none, completed: 1, dead: 1 } })
    const waiting = join({ join: { sets: [holding], waitsUntil: Date.UTC(2026, 11, 1) } })

    expect(
      textsOf([waiting, join({ id: 'b', waitedMs: 5 * dayMs }, setOf({ ...holding, counts: { ...none, dead: 2 } }))]),
    ).toEqual([
      "join 'a' of task 'report' in queue 'reports' waits until a dead member of set 'sales' in queue 'sums' is revived and completes, at the latest until 2026-12-01T00:00:00.000Z. `millrace morgue list sums` shows them, `millrace morgue revive sums <id>` brings one back.",
      "join 'b' of task 'report' in queue 'reports' waits until 2 dead members of set 'sales' in queue 'sums' are revived and complete. `millrace morgue list sums` shows them, `millrace morgue revive sums <id>` brings one back.",
    ])
  })

  it('name a join that was revived without its dead members', () => {
    const revived = setOf({ onDead: 'fail', counts: { ...none, dead: 1 } })

    expect(textsOf([join({}, revived)])).toEqual([expect.stringContaining('waits until a dead member of set')])
  })

  it('name a queue that no worker serves once for all joins, unless the store does not know its workers', () => {
    const waiting = [join(), join({ id: 'b' }), join({ id: 'c' }, setOf({ queue: 'mails' }))]

    expect(textsOf(waiting, new Map())).toEqual([
      "2 joins wait for jobs of queue 'sums', which no worker serves. Start one: `millrace work --queues sums`.",
      "1 join waits for jobs of queue 'mails', which no worker serves. Start one: `millrace work --queues mails`.",
    ])
    expect(judgeJoins({ waiting, unread: new Map(), workers: undefined })).toEqual([])
    expect(textsOf([join({}, setOf({ counts: { ...none, completed: 3 } }))], new Map())).toEqual([])
  })

  it('name at most five joins of a queue for one reason, and count the others', () => {
    const long = Array.from({ length: 7 }, (_, i) => join({ id: `${i}`, waitedMs: 2 * dayMs }))

    expect(textsOf(long)).toHaveLength(6)
    expect(textsOf(long).at(-1)).toBe("2 more joins of queue 'reports' have waited for longer than a day.")
    expect(
      judgeJoins({
        waiting: long.slice(0, 1),
        unread: new Map([['reports', { waiting: 500, examined: 100 }]]),
        workers: served,
      }).at(-1),
    ).toMatchObject({
      text: "of the 500 jobs that wait in queue 'reports', the 100 that were enqueued first were examined.",
    })
  })
})

const sum = defineTask({ name: 'sum', queue: 'sums', retry: { max: 0 }, run: async (n: number) => n })
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { sales: many(sum, { onDead: 'hold' }) },
  run: async (_: object) => {},
})
const approved = defineSignal({ name: 'approved' })
const approval = defineTask({
  name: 'approval',
  queue: 'reports',
  joins: { sales: many(sum) },
  signals: [approved],
  run: (_: object, ctx) => ctx.waitFor(approved, { timeout: '30d' }),
})
const tasks = [sum, report, approval]

describe('what is read of a store', () => {
  it('is enough for all three findings', async () => {
    const mill = millOfTests({ tasks })
    onTestFinished(() => mill.close())
    const sales = [1, 2]
    const held = await mill.enqueue(report, {}, { after: { sales }, within: '9d' })
    const late = await mill.enqueue(report, {}, { after: { sales }, within: '9d' })
    await mill.queue('sums').jobs.bury([`${held.id}.sales.0`])
    mill.advance('25h')
    const texts = (await joinFindings(mill as unknown as Mill, (await mill.storedQueues())!)).map(({ text }) => text)

    expect(texts).toEqual([
      expect.stringContaining("2 joins wait for jobs of queue 'sums', which no worker serves"),
      expect.stringContaining(`join '${held.id}' of task 'report' in queue 'reports' waits until a dead member`),
      expect.stringContaining(`first for '${late.id}.sales.0' in queue 'sums', which is ready.`),
    ])
  })

  it('passes over joins that have run and wait for a signal, and goes on behind them', async () => {
    const mill = millOfTests({ tasks })
    onTestFinished(() => mill.close())
    for (let i = 0; i < 101; i += 1) await mill.enqueue(approval, {}, { after: { sales: [] } })
    await mill.drain()
    const late = await mill.enqueue(report, {}, { after: { sales: [1] }, within: '9d' })
    mill.advance('25h')
    const texts = (await joinFindings(mill as unknown as Mill, (await mill.storedQueues())!)).map(({ text }) => text)

    expect(texts).toEqual([
      expect.stringContaining("1 join waits for jobs of queue 'sums', which no worker serves"),
      expect.stringContaining(`first for '${late.id}.sales.0' in queue 'sums'`),
    ])
  })

  it('is at most 100 joins of a queue', async () => {
    const mill = testMill({ tasks }, 'sqlite')
    for (let i = 0; i < 101; i += 1) await mill.enqueue(report, {}, { after: { sales: [i] }, within: '9d' })
    const findings = await joinFindings(mill, (await mill.storedQueues())!)

    expect(findings.map(({ text }) => text.slice(0, 60))).toEqual(
      [
        "100 joins wait for jobs of queue 'sums', which no worker serv",
        "of the 101 jobs that wait in queue 'reports', the 100 that w",
      ].map((text) => text.slice(0, 60)),
    )
  })
})
