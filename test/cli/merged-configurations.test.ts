import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run, runJson } from './command-in-process.js'
import { CommandProcess, runProcess } from './command-process.js'
import { project } from './project.js'

const tasks = `import { defineTask } from 'millrace'
export const mail = defineTask({ name: 'mail', queue: 'mails', run: async () => 'sent' })
export const encode = defineTask({ name: 'encode', queue: 'video', isolate: 'process', run: async (n) => n * 2 })`

const files = {
  'package.json': '{"type":"module"}',
  'tasks.js': tasks,
  'base.js': `import { encode, mail } from './tasks.js'
export default { store: 'sqlite:base.db', queues: { mails: { weight: 20 } }, tasks: [mail], worker: { concurrency: 3 } }`,
  'conf/live.js': `import { encode } from '../tasks.js'
export default { store: 'sqlite:live.db', queues: { mails: { maxPending: 5 }, video: {} }, tasks: [encode] }`,
  'mill.js': `import { millrace } from 'millrace'\nexport default millrace({ store: 'sqlite:mill.db', tasks: [] })`,
}
const both = ['--config', 'base.js', '--config', 'conf/live.js']

interface Stats {
  readonly store: string
  readonly queues: readonly { readonly queue: string }[]
}
const stats = (cwd: string, args: readonly string[], env = {}) => runJson<Stats>(['stats', ...args], { cwd, env })
const refusal = async (cwd: string, args: readonly string[], env = {}) => {
  const { code, stderr } = await run(['stats', ...args], { cwd, env })
  expect(code).toBe(2)
  return stderr
}

describe('several configurations', () => {
  it('are merged from left to right, named by flags or by MILLRACE_CONFIG', async () => {
    const cwd = project(files)
    const byFlags = await stats(cwd, both)
    const byVariable = await stats(cwd, [], { MILLRACE_CONFIG: ['base.js', 'conf/live.js'].join(delimiter) })
    expect(byFlags.store).toBe('sqlite:live.db')
    expect(byFlags.queues.map(({ queue }) => queue)).toEqual(['mails', 'video'])
    expect(byVariable).toMatchObject({ store: byFlags.store, queues: byFlags.queues })
    expect((await stats(cwd, [...both.slice(2), ...both.slice(0, 2)])).store).toBe('sqlite:base.db')
  })

  it('are refused if one exports a mill, and the error says what to write instead', async () => {
    const cwd = project(files)
    const said = await refusal(cwd, ['--config', 'base.js', '--config', 'mill.js'])
    expect(said).toContain(`${join(cwd, 'mill.js')} is not valid`)
    expect(said).toMatch(/default export: is a mill.*only options can be merged.*satisfies Partial<MillOptions>/)
  })

  it('are refused if one is named twice', async () => {
    expect(await refusal(project(files), ['--config', 'base.js', '--config', './base.js'])).toMatch(
      /base\.js: is named twice/,
    )
  })

  it('each have their own folder for the queue file they name', async () => {
    const cwd = project({
      ...files,
      'far/package.json': '{"type":"module"}',
      'far/queues.yaml': 'bulk:\n  weight: 5\n',
      'far/queues.js': `export default { queues: './queues.yaml' }`,
    })
    const below = project({ 'package.json': '{}' })
    const args = ['--config', join(cwd, 'base.js'), '--config', join(cwd, 'far/queues.js')]
    expect((await stats(below, args)).queues.map(({ queue }) => queue)).toEqual(['mails', 'bulk'])
  })

  it('are served by millrace work, with their isolated tasks', async () => {
    const cwd = project(files)
    const { id } = await runJson<{ id: string }>(['enqueue', 'encode', '21', ...both], { cwd })
    const command = new CommandProcess(['work', '--json', ...both], { cwd })
    const [line] = await command.events('worker.started')
    expect(line).toMatchObject({ concurrency: 3 })
    expect((await runProcess(['jobs', 'show', id, '--follow', ...both], { cwd })).code).toBe(0)
    command.kill('SIGTERM')
    expect((await command.end()).code).toBe(0)
    expect(await runJson(['jobs', 'show', id, ...both], { cwd })).toMatchObject({ state: 'completed', result: 42 })
  }, 40_000)
})

describe('the environment', () => {
  it('overrides configurations that export options', async () => {
    const cwd = project(files)
    expect((await stats(cwd, both, { MILLRACE_STORE: 'sqlite:env.db' })).store).toBe('sqlite:env.db')
  })

  it('is refused if it contradicts a mill, and accepted if it agrees', async () => {
    const cwd = project(files)
    const config = ['--config', 'mill.js']
    expect(await refusal(cwd, config, { MILLRACE_STORE: 'sqlite:env.db' })).toMatch(
      /mill\.js is not valid:\n {2}store: is 'sqlite:mill\.db' in the mill .* MILLRACE_STORE says otherwise\. Write `store: process\.env\.MILLRACE_STORE \?\? 'sqlite:mill\.db'` there/,
    )
    expect(await refusal(cwd, config, { MILLRACE_NAMESPACE: 'shop' })).toMatch(
      /namespace: is 'millrace' .* MILLRACE_NAMESPACE says/,
    )
    expect((await stats(cwd, config, { MILLRACE_STORE: 'sqlite:mill.db', MILLRACE_NAMESPACE: 'millrace' })).store).toBe(
      'sqlite:mill.db',
    )
  })

  it('is refused with the names of all invalid variables; empty ones count as unset', async () => {
    const cwd = project(files)
    const said = await refusal(cwd, both, { MILLRACE_STORE: 'jobs.db', MILLRACE_NAMESPACE: 'a b' })
    expect(said).toMatch(
      /the environment is not valid:\n {2}MILLRACE_STORE: expected 'memory:'.*\n {2}MILLRACE_NAMESPACE: must be/,
    )
    expect((await stats(cwd, both, { MILLRACE_STORE: '', MILLRACE_NAMESPACE: '' })).store).toBe('sqlite:live.db')
  })

  it('sets what flags leave open for workers, and overrides configurations', async () => {
    const cwd = project(files)
    const env = { MILLRACE_CONCURRENCY: '7', MILLRACE_QUEUES: 'video', MILLRACE_PROCESSES: '1' }
    const command = new CommandProcess(['work', '--json', ...both], { cwd, env })
    const [line] = await command.events('worker.started')
    command.kill('SIGTERM')
    await command.end()
    expect(line).toMatchObject({ concurrency: 7, queues: { video: expect.anything() } })
    expect(Object.keys(line!['queues'] as object)).toEqual(['video'])
    const { code, stderr } = await new CommandProcess(['work', ...both], {
      cwd,
      env: { MILLRACE_CONCURRENCY: 'many' },
    }).end()
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--concurrency.*MILLRACE_CONCURRENCY.*whole number from 1 to 100,000/),
    })
  }, 40_000)
})

describe('the paths of a tsconfig', () => {
  it('are honoured: those of the tsconfig nearest to the configuration, with comments and extends', async () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'tsconfig.base.json':
        '{ "compilerOptions": { "paths": { "@app/*": ["./src/*"], "zod": ["./src/own-zod.ts"] } } }',
      'tsconfig.json': '{\n  // where the app is\n  "extends": "./tsconfig.base.json",\n}',
      'src/own-zod.ts': `export const owned: string = 'own'`,
      'src/tasks.ts': `import { defineTask } from 'millrace'\nimport { owned } from 'zod'\nexport const mail = defineTask({ name: owned, run: async (): Promise<number> => 1 })`,
      'millrace.config.ts': `import { millrace } from 'millrace'\nimport { mail } from '@app/tasks'\nexport default millrace({ store: 'memory:', tasks: [mail] })`,
    })
    const { code, stdout, stderr } = await run('enqueue own {} --json', { cwd })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ task: 'own', outcome: 'added' })
  })
})
