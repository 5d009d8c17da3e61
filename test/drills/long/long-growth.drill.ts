import { expect, it } from 'vitest'
import { CommandProcess } from '../../cli/command-process.js'
import { project } from '../../cli/project.js'

const blankFile = `
import { defineTask } from 'millrace'
export const blank = defineTask({ name: 'blank', queue: 'long', isolate: 'process', module: import.meta.url, run: () => {} })
`
/** A worker that runs ten jobs at a time, and says what it holds after them, for as often as it is told. */
const program = `
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import { blank } from './blank.js'

const mill = millrace({ store: 'sqlite:jobs.db', tasks: [blank] })
await mill.worker({ concurrency: 2 }).start()
const resources = () => process.getActiveResourcesInfo()
// The lease thread keeps the process alive until it is up.
while (resources().includes('MessagePort')) await delay(20)
const handles = () => resources().filter((name) => name !== 'Timeout').sort()
const idle = handles().length

for (let round = 1; round <= Number(process.argv[2]); round += 1) {
  const jobs = await mill.enqueueMany(blank, Array(10).fill(null))
  await Promise.all(jobs.map((job) => job.result()))
  // The last of them have settled their jobs, and are still ending.
  for (let looks = 0; looks < 200 && handles().length > idle; looks += 1) await delay(20)
  const timers = resources().length - handles().length
  const open = readdirSync('/proc/self/fd').length
  console.log(JSON.stringify({ event: 'test.holds', handles: handles(), timers, open, zombies: zombies() }))
}
await mill.close()

function zombies() {
  return readdirSync('/proc').filter((name) => {
    try {
      const stat = readFileSync('/proc/' + name + '/stat', 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' && Number(parent) === process.pid
    } catch {
      return false
    }
  }).length
}
`

interface Held {
  readonly handles: string[]
  readonly timers: number
  readonly open: number
  readonly zombies: number
}

it('a worker of isolated jobs holds no more after 40 of them than after 10, and leaves no zombie', async () => {
  const cwd = project({ 'package.json': '{"type":"module"}', 'blank.js': blankFile, 'program.js': program })
  const worker = new CommandProcess('4', { cwd, script: 'program.js' })
  const after = async (jobs: number) => (await worker.events('test.holds', jobs / 10)).at(-1) as unknown as Held
  const few = await after(10)
  for (const jobs of [20, 30]) await after(jobs)
  const many = await after(40)

  expect(many).toMatchObject({ handles: few.handles, open: few.open, zombies: 0 })
  // Some of them come and go.
  expect(many.timers).toBeLessThan(few.timers + 5)
}, 90_000)
