import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from './command-in-process.js'
import { runProcess } from './command-process.js'
import { project } from './project.js'

const tasks = `import { defineOrderedTask, defineTask } from 'millrace'

export const mail = defineTask({
  name: 'mail',
  attempts: 5,
  timeLimit: '1 fortnight',
  run: async () => {},
})
export const sync = defineOrderedTask({
  name: 'sync orders',
  retry: { max: -1 },
})
export const month = defineTask({ name: 'month', timeLimit: '30d' })
export const nameless = defineTask({ run: async () => {} })
`
const options = `{
  store: 'sqlite',
  queues: {
    default: { wieght: 5, limiter: { max: 1 } },
  },
  concurrency: 5,
  tasks: [mail, sync, month, nameless],
}`
const config = (what: string) => `import { millrace } from 'millrace'
import { mail, month, nameless, sync } from './tasks.js'

export default ${what}
`

/** One line for each mistake, in the order in which they are told. */
async function mistakes(cwd: string, args: readonly string[] = []): Promise<string[]> {
  const { code, stderr } = await run(['stats', ...args], { cwd })
  expect(code).toBe(2)
  const [first, ...lines] = stderr.trimEnd().split('\n')
  expect(first).toMatch(/^millrace: .*millrace\.config\.\w+ is not valid:$/)
  return lines.map((line) => line.trim()).filter((line) => !line.startsWith('at '))
}

const all = (extension: string) =>
  [
    `^tasks\\.${extension}:5:3 task 'mail' attempts: is not an option.*here retry: \\{ max \\} of the task`,
    `^tasks\\.${extension}:6:3 task 'mail' timeLimit: must be a duration`,
    `^tasks\\.${extension}:9:39 ordered task 'sync orders' queue: must be given`,
    `^tasks\\.${extension}:11:12 ordered task 'sync orders' retry\\.max: must be a whole number`,
    `^tasks\\.${extension} task name: is missing`,
    `^millrace\\.config\\.${extension}:5:3 store: expected 'memory:'`,
    `^millrace\\.config\\.${extension}:7:16 queues\\.default\\.wieght: is not an option; check its spelling`,
    `^millrace\\.config\\.${extension}:7:27 queues\\.default\\.limiter: .*here throttle of the queue`,
    `^millrace\\.config\\.${extension}:9:3 concurrency: .*here worker: \\{ concurrency \\}`,
  ].map((form) => expect.stringMatching(new RegExp(form)))

describe('mistakes in a configuration', () => {
  it.each(['js', 'ts'])('in all .%s files are reported at once, with file, line and column', async (extension) => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      [`tasks.${extension}`]: tasks,
      [`millrace.config.${extension}`]: config(`millrace(${options})`),
    })
    expect(await mistakes(cwd)).toEqual(all(extension))
  })

  it('in plain exported options are reported in the file that holds the option', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'tasks.js': tasks,
      'millrace.config.js': config(options),
      'live.js': `export default {\n  store: 'sqlite:a.db',\n  queues: { default: { lease: '1s' } },\n}`,
    })
    expect(await mistakes(cwd)).toEqual(all('js'))
    const both = await run('stats --config millrace.config.js --config live.js', { cwd })
    expect(both.stderr).toMatch(/^ {2}live\.js:3:24 queues\.default\.lease: must be at least 3000 ms/m)
    expect(both.stderr).toMatch(/^ {2}millrace\.config\.js:7:16 queues\.default\.wieght/m)
    expect(both.stderr).not.toContain('expected')
  })

  it('that concern several options are reported where the task is defined', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'tasks.js': `import { defineTask } from 'millrace'\nexport const month = defineTask({\n  name: 'month',\n  timeLimit: '30d',\n})`,
      'millrace.config.js': `import { millrace } from 'millrace'\nimport { month } from './tasks.js'\nexport default millrace({ store: 'memory:', tasks: [month] })`,
    })
    expect(await mistakes(cwd)).toEqual([
      expect.stringMatching(/^tasks\.js:4:3 tasks\.month\.timeLimit: must be at most 24 days/),
    ])
  })

  it('without a known position are reported with their file only', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'millrace.config.js': `import { defineTask, millrace } from 'millrace'
const make = (name, options) => defineTask({ name, ...options })
const make2 = (options) => millrace({ ...options })
make('mail', { attempts: 1 })
export default make2(process.argv && { store: 'memory:', quues: {}, tasks: [] })
millrace({ store: 'memory:' })`,
    })
    expect(await mistakes(cwd)).toEqual([
      expect.stringMatching(/^millrace\.config\.js task 'mail' attempts: is not an option/),
      expect.stringMatching(/^millrace\.config\.js quues: is not an option/),
    ])
  })

  it('are reported together with an error that a file throws', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'tasks.js': tasks,
      'millrace.config.js': config(`await Promise.reject(new Error('no database today'))`),
    })
    const told = await mistakes(cwd)
    expect(told).toHaveLength(6)
    expect(told[0]).toMatch(/^tasks\.js:5:3/)
    expect(told.at(-1)).toBe('loading millrace.config.js: no database today')
  })

  it('end millrace work with 2 before anything starts', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'tasks.js': tasks,
      'millrace.config.js': config(`millrace(${options})`),
    })
    const { code, stdout, stderr } = await runProcess(['work'], { cwd })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`millrace: ${join(cwd, 'millrace.config.js')} is not valid:\n  tasks.js:5:3`)
  })

  it('in a queue file are reported with line and column', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'queues.yaml': 'mail:\n  wieght: 5\n',
      'millrace.config.js': `import { millrace } from 'millrace'\nexport default millrace({ store: 'memory:', queues: './queues.yaml' })`,
    })
    expect(await mistakes(cwd)).toEqual([expect.stringMatching(/^\.\/queues\.yaml:2:3: 'wieght' is not an option/)])
  })
})
