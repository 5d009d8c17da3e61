/** The commands that repeat a job, and those that put jobs that wait elsewhere. */

import { expect, it } from 'vitest'
import { printed, run, runJson } from './command-in-process.js'
import { project } from './project.js'

interface Shown {
  readonly state: string
  readonly input: unknown
  readonly priority: number
  readonly repeatOf?: { readonly id: string }
}

const shown = (id: string, cwd: string) => runJson<Shown>(['jobs', 'show', 'default', id], { cwd })

it('a job is enqueued again with its input or another, and the new one names the old', async () => {
  const cwd = project()
  await runJson(['enqueue', 'echo', '1', '--queue', 'default', '--id', 'a', '--priority', '3'], { cwd })
  const same = await runJson<{ id: string }>('jobs enqueue-again default a', { cwd })
  const other = await runJson<{ id: string }>('jobs enqueue-again a --input 2', { cwd })

  expect(same).toEqual({ queue: 'default', id: expect.any(String), repeatOf: 'a' })
  expect(await shown(same.id, cwd)).toMatchObject({ input: 1, priority: 3, repeatOf: { id: 'a' } })
  expect(await shown(other.id, cwd)).toMatchObject({ input: 2, repeatOf: { id: 'a' } })
  expect((await printed(['jobs', 'show', other.id], { cwd })).join('\n')).toMatch(/repeatOf +a \(echo, in default\)/)
  expect(await run('jobs enqueue-again default a --input {', { cwd })).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('--input must be JSON') },
  })
  expect(await run('jobs enqueue-again default never', { cwd })).toMatchObject({ code: 1 })
})

it('a dead job is revived with another input', async () => {
  const cwd = project()
  await runJson(['enqueue', 'echo', '1', '--queue', 'default', '--id', 'a'], { cwd })
  await runJson('jobs bury default a', { cwd })
  expect(await runJson(['morgue', 'revive', 'default', 'a', '--input', '{"n":2}'], { cwd })).toEqual({
    ...{ queue: 'default', revived: 1 },
  })
  expect(await shown('a', cwd)).toMatchObject({ state: 'ready', input: { n: 2 } })
  expect(await run('morgue revive default --all --input 1', { cwd })).toMatchObject({
    ...{ code: expect.toSatisfy((code) => code !== 0), stderr: expect.stringContaining('takes one id') },
  })
})

it('jobs that wait get another priority and another due time, by ids, all, or by what they are', async () => {
  const cwd = project()
  for (const id of ['a', 'b', 'c']) await runJson(['enqueue', 'echo', '1', '--queue', 'default', '--id', id], { cwd })
  await runJson(['jobs', 'fields', 'default', 'c', 'order=7'], { cwd })

  expect(await runJson('jobs reschedule default a b --priority 5', { cwd })).toEqual({
    queue: 'default',
    rescheduled: 2,
  })
  expect(await printed('jobs reschedule default --field order=7 --delay 1h', { cwd })).toEqual([
    'default: 1 job rescheduled.',
  ])
  expect(await shown('c', cwd)).toMatchObject({ state: 'scheduled', priority: 0 })
  expect(await runJson('jobs reschedule default --all --delay 0', { cwd })).toMatchObject({ rescheduled: 1 })
  expect(await shown('c', cwd)).toMatchObject({ state: 'ready' })
  await runJson('jobs bury default b', { cwd })
  expect(await run('jobs reschedule default a b --priority 1', { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /1 of 2 jobs was left as it is, because it is not waiting for a worker .*'b' is dead/,
    ),
  })
  expect(await run('jobs reschedule default a', { cwd })).toMatchObject({
    ...{
      code: expect.toSatisfy((code) => code !== 0),
      stderr: expect.stringContaining('give --priority, --delay or --run-at'),
    },
  })
})
