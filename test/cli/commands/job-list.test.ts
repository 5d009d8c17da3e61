import type { JobRecord } from 'millrace'
import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { pageLines } from '#src/cli/commands/jobs/job-list.js'
import type { Terminal } from '#src/cli/terminal/terminal.js'

const at = new Date(0)
const record = { id: 'a', task: 'encode', queue: 'video', input: null, priority: 0, crashes: 0, suspect: false }
const dead = { ...record, state: 'dead', attempt: 4, reason: 'max-retries', createdAt: at, updatedAt: at, runAt: at }

function shown(job: object, limits: { readonly columns?: number } = { columns: 200 }): string {
  const terminal = { colors: picocolors.createColors(false), ...limits } as Terminal
  return pageLines([{ queue: 'video', jobs: [job as unknown as JobRecord] }], terminal).join('\n')
}

describe('the table of jobs', () => {
  it('shortens no id if no terminal limits the line, so that ids can be copied', () => {
    const id = `confirm-${'7'.repeat(200)}`

    expect(shown({ ...dead, id }, {})).toContain(id)
    expect(shown({ ...dead, id })).not.toContain(id)
  })

  it('begins the note on a failed command with its last output', () => {
    const error =
      'ProcessDiedError: the command exited with code 3. The last that it printed:\nreading\nno such file\n    at x (y.js:1:1)'
    expect(shown({ ...dead, error })).toContain('max-retries · no such file (the command exited with code 3)')
    expect(shown({ ...dead, error: 'Error: first\n    at x' })).toContain('max-retries · Error: first')
  })
})
