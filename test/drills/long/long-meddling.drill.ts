import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'

/** Every descriptor that a worker shares with the process of a job: messages, what it prints, what it passes on, its assignment. */
const shared = [3, 4, 5, 6]

const tasksFile = `
import { closeSync, writeSync } from 'node:fs'
import { defineTask } from 'millrace'

const huge = Buffer.alloc(65_536, 'x')
const lines = (...messages) => messages.map((line) => JSON.stringify(line) + '\\n').join('')
const what = {
  junk: [Buffer.from([0, 0, 0, 4, 1, 2, 3, 4, 255]), 'junk\\n{"kind":\\n\\0\\n', 'null\\n17\\n"text"\\n[]\\n{}\\n'],
  'half a line': ['{"kind":"settled"', '["printed",'],
  'messages that are wrong': [
    lines({ kind: 'settled' }, { kind: 'settled', verdict: {} }, { kind: 'settled', verdict: { kind: 1 } }),
    lines({ kind: 'unknown' }, ['printed', 5], ['printed', null], ['printed'], ['unknown'], [null]),
  ],
  'a line without end': Array.from({ length: 64 }, () => huge),
}
// Some are read by nobody.
let patience = 100
const write = (fd, data) => {
  for (let bytes = Buffer.from(data); bytes.length > 0 && patience > 0; )
    try {
      bytes = bytes.subarray(writeSync(fd, bytes))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      patience -= 1
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
}
export const meddle = defineTask({
  name: 'meddle',
  isolate: 'process',
  run: async ({ fd, how }) => {
    if (how === 'nothing') return 'done'
    if (how === 'the end of it') closeSync(fd)
    else for (const data of what[how]) write(fd, data)
    if (how !== 'the end of it') process.exit(7)
    process.kill(process.pid, 'SIGKILL')
  },
})
`
const configFile = `
import { millrace } from 'millrace'
import { meddle } from './tasks.js'
export default millrace({ store: 'sqlite:jobs.db', tasks: [meddle] })
`
const meddle = defineTask({ name: 'meddle' })

describe('a worker whose isolated job writes into their channel', { timeout: 120_000 }, () => {
  it.each(['junk', 'half a line', 'messages that are wrong', 'a line without end', 'the end of it'])(
    'goes on and has its slot free, whatever is written: %s',
    async (how) => {
      const files = { 'package.json': '{"type":"module"}', 'tasks.js': tasksFile, 'millrace.config.js': configFile }
      const folder = project(files)
      const mill = millrace({ store: `sqlite:${join(folder, 'jobs.db')}`, tasks: [meddle] })
      onTestFinished(() => mill.close())
      const work = new CommandProcess('work --json --concurrency 1', { cwd: folder })
      const jobs = await mill.enqueueMany(
        meddle,
        shared.map((fd) => ({ fd, how })),
      )
      const last = await mill.enqueue(meddle, { fd: 0, how: 'nothing' })

      expect(await last.result({ timeout: '60s' })).toBe('done')
      const states = await Promise.all(jobs.map((job) => job.status()))
      expect(states).toEqual(shared.map(() => 'dead'))
      work.kill('SIGTERM')
      const { code, stdout } = await work.end()
      expect(stdout).not.toContain('process.exited')
      expect(code).toBe(0)
    },
  )
})
