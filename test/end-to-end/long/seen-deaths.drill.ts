/** How a worker process died stands with the job that killed it. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'

const config = `
import { appendFileSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
const note = (what) => appendFileSync('notes', JSON.stringify(what) + '\\n')
const kill = defineTask({
  name: 'kill',
  run: (how, { job }) => {
    note({ before: job.lastError ?? null })
    if (typeof how === 'number') process.exit(how)
    process.kill(process.pid, how)
    return new Promise(() => {})
  },
  onExhausted: ({ error }) => note({ code: error.code, by: error.by, told: error.message }),
})
export default millrace({ store: 'sqlite:jobs.db', queues: { default: { maxCrashes: 2 } }, tasks: [kill] })
`
const kill = defineTask({ name: 'kill' })

describe.each([
  [134, 'exit', 'exited with code 134'],
  ['SIGKILL', 'signal', 'was killed by SIGKILL: by somebody, or by the kernel if memory was short'],
  ['SIGSEGV', 'signal', 'was killed by SIGSEGV'],
] as const)('a job that ends its worker process by %s', { timeout: 60_000 }, (how, by, words) => {
  it.each([1, 2])(
    'has that in its record, the morgue, its event, its next run and onExhausted, with %s processes',
    async (processes) => {
      const folder = project({ 'millrace.config.js': config, 'package.json': '{"type":"module"}' })
      const mill = millrace({ store: `sqlite:${join(folder, 'jobs.db')}`, tasks: [kill] })
      onTestFinished(() => mill.close())
      await mill.enqueue(kill, how, { id: 'k' })
      const command = new CommandProcess(['work', '--json', '--processes', String(processes)], { cwd: folder })
      const [buried] = await command.events('job.buried')
      const notes = () =>
        existsSync(join(folder, 'notes'))
          ? readFileSync(join(folder, 'notes'), 'utf8')
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as object)
          : []
      const exhausted = await poll(async () => notes().find((note) => 'told' in note), {
        what: 'it is told',
        withinMs: 10_000,
      })

      expect(buried).toMatchObject({ id: 'k', reason: 'crashed', error: expect.stringContaining(words) })
      expect((await mill.queue('default').morgue.get('k'))?.error).toContain(words)
      expect(exhausted).toEqual({ code: 'process-died', by, told: expect.stringContaining(words) })
      expect(notes().filter((note) => 'before' in note)).toEqual([
        { before: null },
        ...Array(notes().length - 2).fill({ before: expect.stringContaining(words) }),
      ])
    },
  )
})
