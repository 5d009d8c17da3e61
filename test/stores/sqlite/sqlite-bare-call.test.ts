/**
 * Bare calls, runs of them, and members in a row: which jobs of an enqueue travel to the thread as text, and that nothing is
 * lost on the way.
 */

import { expect, it, onTestFinished } from 'vitest'
import type { EnqueueCall, NewJob } from '#src/stores/contract/new-job.js'
import { bareOf, graphCallOf, jobsOf, sentForm } from '#src/stores/sqlite/work/sqlite-bare-call.js'
import { job, SqliteScene } from './sqlite-scene.js'

const callOf = (...jobs: NewJob[]) => ({ callId: 'call', queue: 'work', jobs })
const others = ['b', 'c', 'd'].map((id) => job(id))

it('a call of bare jobs as text yields the same jobs, with their count and weight', () => {
  const jobs = [
    job('"a\\ü', { task: 'send "mail"', payload: '{"text":"ü\\n"}', rememberMs: 60_000 }),
    job('b', { payload: 'cut\0off' }),
    job('c', { payload: '\u0001marked' }),
    job('d'),
  ]

  const bare = bareOf(callOf(...jobs))!

  expect(jobsOf(bare)).toEqual(jobs)
  expect(bare).toMatchObject({ callId: 'call', queue: 'work', count: 4, heaviest: 15 })
  expect(bare.units).toBe(jobs.reduce((sum, { payload }) => sum + payload.length, 0))
})

it('similar jobs name their task once, and the text of different ones has it in each row', () => {
  const alike = { task: 'bill', rememberMs: 9 }
  const bills = ['a', 'b', 'c', 'd'].map((id) => job(id, alike))
  const bare = bareOf(callOf(...bills))!
  expect(bare.kind).toEqual(alike)
  expect(jobsOf(bare)).toEqual(bills)

  for (const other of [{ task: 'send' }, { rememberMs: 8 }]) {
    const jobs = [...bills, job('e', { ...alike, ...other })]
    const mixed = bareOf(callOf(...jobs))!
    expect(mixed.kind).toBeUndefined()
    expect(jobsOf(mixed)).toEqual(jobs)
  }
})

it.each([
  ['alike', ['send', 'send', 'send', 'send']],
  ['of several tasks', ['send', 'bill', 'send', 'print']],
])('jobs that are %s are stored as given, in their order', async (_, tasks) => {
  const scene = new SqliteScene()
  onTestFinished(() => scene.close())
  const store = await scene.opened()
  const jobs = tasks.map((task, i) => job(`id-${i}`, { task, payload: `{"n":"${i}\\u0000"}`, rememberMs: 60_000 }))
  expect(bareOf(callOf(...jobs))).toBeDefined()
  await store.enqueue([callOf(...jobs)])

  const { claims } = await store.claim([{ queue: 'work', limit: 10 }], { worker: 'w', leaseMs: 30_000 })
  expect(claims.map(({ id, task, payload }) => ({ id, task, payload }))).toEqual(
    jobs.map(({ id, task, payload }) => ({ id, task, payload })),
  )
  // Remembered ids are not added again.
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
  expect(await store.enqueue([{ ...callOf(...jobs), callId: 'again' }])).toEqual([tasks.map(() => 'duplicate')])
})

it.each<[string, Partial<NewJob>]>([
  ['a priority', { priority: 1 }],
  ['a codec', { codec: 'packed' }],
  ['meta', { meta: '{}' }],
  ['a group', { group: 'g' }],
  ['a score', { score: 0 }],
  ['a delay', { delayMs: 1 }],
  ['an instant', { runAt: 1 }],
  ['an end', { expiresMs: 1 }],
  ['bytes', { payload: new Uint8Array(1) }],
  ['a long payload', { payload: 'x'.repeat(2_049) }],
  ['a payload that is not Unicode', { payload: '\ud800' }],
  ['a task that is not Unicode', { task: '\ud800' }],
])('a call in which one job has %s keeps its jobs unchanged', (_, special) => {
  const call = callOf(...others, job('a', special))
  expect(bareOf(call)).toBeUndefined()
  expect(jobsOf(call)).toBe(call.jobs)
})

it('a call with few jobs keeps them unchanged', () => {
  expect(bareOf(callOf(...others))).toBeUndefined()
  expect(bareOf(callOf(...others, job('a')))).toBeDefined()
})

const single = (id: string, more: Partial<EnqueueCall> = {}) => ({
  callId: id,
  queue: 'work',
  jobs: [job(id)],
  ...more,
})
const singles = ['a', 'b', 'c', 'd'].map((id) => single(id))

it('calls with one bare job each travel together, and each gets its own answer', () => {
  const { sent, answersOf } = sentForm(singles)
  expect(sent).toMatchObject([{ queue: 'work', count: 4, isRun: true }])
  expect(jobsOf(sent[0]!).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd'])
  expect(answersOf([['added', 'full', 'duplicate', 'added']])).toEqual([['added'], ['full'], ['duplicate'], ['added']])
})

it.each<[string, EnqueueCall]>([
  ['may have been sent before', single('e', { isResent: true })],
  ['is for another queue', single('e', { queue: 'other' })],
  ['has an id other than its job', single('e', { callId: 'call' })],
  ['has two jobs', single('e', { jobs: [job('e'), job('f')] })],
  ['has a job that is not bare', single('e', { jobs: [job('e', { delayMs: 1 })] })],
])('calls travel unchanged if one of them %s', (_, other) => {
  const calls = [...singles, other]
  const { sent, answersOf } = sentForm(calls)
  expect(sent).toEqual(calls)
  const answers = calls.map(() => ['added' as const])
  expect(answersOf(answers)).toBe(answers)
})

const member = (set: string, number: number, more: Partial<NewJob> = {}) =>
  job(`join.${set}.${number}`, {
    memberOf: [{ join: { queue: 'sums', id: 'join' }, set, number, onDead: 'fail', keepsResults: true }],
    ...more,
  })
const rows = [7, 8, 9, 10, 11].map((number) => member('rows', number, { payload: `{"n":${number}}` }))
const graph = (...jobs: NewJob[]) => graphCallOf({ ...callOf(...jobs), hasNewIds: true })

it('members in a row travel as text behind the other jobs, and the text yields the same jobs', () => {
  const more = ['cut\0off', '\u0001marked', 'ü', '{}'].map((payload, i) => member('more', i, { payload, task: 'bill' }))
  const { jobs, runs } = graph(job('join'), ...rows, ...more)

  expect(jobs.map(({ id }) => id)).toEqual(['join'])
  expect(runs!.flatMap(jobsOf)).toEqual([...rows, ...more])
  expect(runs!.map(({ count, units, heaviest }) => [count, units, heaviest])).toEqual([
    [5, 37, 8],
    [4, 17, 7],
  ])
})

it.each<[string, NewJob]>([
  ['has another number', member('rows', 13)],
  ['has an id of its own', member('rows', 12, { id: 'join.rows.x2' })],
  ['has a priority', member('rows', 12, { priority: 1 })],
  ['is of another task', member('rows', 12, { task: 'bill' })],
  ['waits in two joins', member('rows', 12, { memberOf: [...rows[0]!.memberOf!, ...rows[1]!.memberOf!] })],
  ['is no member', job('join.rows.12')],
])('members before one that %s travel unchanged', (_, last) => {
  expect(graph(...rows, last).runs).toBeUndefined()
})

it('members whose ids may be taken travel unchanged', () => {
  expect(graphCallOf(callOf(...rows)).jobs).toEqual(rows)
})
