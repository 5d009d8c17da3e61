import picocolors from 'picocolors'
import { expect, it } from 'vitest'
import { recordLines } from '#src/cli/terminal/record-lines.js'
import type { Terminal } from '#src/cli/terminal/terminal.js'
import type { JobRecord } from '#src/core/job/job.js'

const terminal = { json: false, colors: picocolors.createColors(false), columns: 100 } as Terminal
const at = new Date('2026-11-25T03:00:00Z')
const job = {
  ...{ id: 'film-b', queue: 'video', task: 'encode', state: 'running', attempt: 1, priority: 0 },
  ...{ createdAt: at, updatedAt: at, runAt: at, startedAt: at },
} as unknown as JobRecord

it.each([
  [{ fraction: 0.11666666666666667, note: 'frame 7\u001b[31m' }, '12% frame 7\\u001b[31m'],
  [{ fraction: 1 }, '100%'],
  [{ fraction: 0 }, '0%'],
])('a job record shows its progress as lists do: %j is %s', (progress, words) => {
  const lines = recordLines({ ...job, progress } as JobRecord, terminal)
  expect(lines.filter((line) => line.startsWith('progress'))).toEqual([`progress   ${words}`])
})

it.each([
  ['dead', 'max-retries', 4, 'attempt    4  the last: none is left'],
  ['dead', 'unrecoverable', 2, 'attempt    2  after 1 failure'],
  ['dead', 'buried', 1, 'attempt    1'],
  ['scheduled', undefined, 2, 'attempt    2  after 1 failure'],
])('a record shows the attempt of a %s job (%s): %i', (state, reason, attempt, line) => {
  const lines = recordLines({ ...job, state, reason, attempt } as JobRecord, terminal)
  expect(lines).toContain(line)
})
