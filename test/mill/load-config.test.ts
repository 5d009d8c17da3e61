import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { millrace } from 'millrace'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configFile, project, root, tasksFile } from '../cli/project.js'

interface Answer {
  file?: string
  tasks?: string[]
  store?: string
  /** Whether the mill was made by the copy of the library that loaded it. */
  own?: boolean
  unknown?: string[]
  error?: { code: string; message: string; cause?: string }
}

const dist = (path: string) => JSON.stringify(pathToFileURL(join(root, 'dist', path)).href)

/**
 * Asked in a process of its own, as the loader of the test runner is not that of Node. One answers all, because each project
 * has a folder of its own.
 */
const script = `
import { loadMill } from ${dist('mill/load-mill.js')}
import { Mill } from ${dist('mill/mill.js')}
async function answerTo(request) {
  try {
    const { mill, file, unknownTasks } = await loadMill(request)
    const own = mill instanceof Mill
    return { file, tasks: [...mill.tasks.keys()], store: mill.store?.text, own, unknown: unknownTasks.map(({ name }) => name) }
  } catch ({ code, message, cause }) {
    return { error: { code, message, cause: cause?.message } }
  }
}
process.on('message', async (request) => process.send(await answerTo(request)))`

let loader: ChildProcess
beforeAll(() => {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
  loader = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: [...stdio] })
})
afterAll(() => loader.disconnect())

async function load(request: { cwd: string; env?: object; configs?: string[]; module?: string }): Promise<Answer> {
  const answered = once(loader, 'message', { signal: AbortSignal.timeout(20_000) })
  loader.send({ env: {}, ...request })
  return (await answered)[0] as Answer
}

/** Those of the project; a module's are in the order of its exports, a configuration's in its own. */
const everyTask = expect.arrayContaining(['echo', 'fail', 'hold', 'spin', 'abort', 'quit', 'stray'])

/** With an enum, which no loader can merely strip, and a type. */
const typedFiles = {
  'tasks.ts': tasksFile,
  'millrace.config.ts': `
enum Weight {
  Default = 40,
  Slow = 5,
}
${configFile.replace('weight: 40', 'weight: Weight.Default as number').replace('weight: 5', 'weight: Weight.Slow')}`,
}

const plainConfig = `import { defineTask, millrace } from 'millrace'
export default millrace({ store: 'memory:', tasks: [defineTask({ name: 'plain' })] })`

describe('loading a configuration', () => {
  it('finds and loads a TypeScript configuration with an enum, and its mill comes from the same copy of the library', async () => {
    const cwd = project(typedFiles)
    expect(await load({ cwd })).toEqual({
      file: join(cwd, 'millrace.config.ts'),
      tasks: everyTask,
      store: 'sqlite:jobs.db',
      own: true,
      unknown: [],
    })
  })

  it.each(['ts', 'mts', 'js', 'mjs'])('finds millrace.config.%s', async (extension) => {
    const name = `millrace.config.${extension}`
    const cwd = project({ [name]: plainConfig, 'package.json': '{"type":"module"}' })
    expect(await load({ cwd })).toMatchObject({ file: join(cwd, name), tasks: ['plain'], own: true })
  })

  it('prefers the TypeScript file; MILLRACE_CONFIG overrides it, and a path overrides both', async () => {
    const named = (name: string) => plainConfig.replace("'plain'", `'${name}'`)
    const cwd = project({
      'millrace.config.ts': named('found'),
      'millrace.config.mjs': named('not this one'),
      'conf/path.ts': named('path'),
      'conf/env.mjs': named('env'),
    })
    const env = { MILLRACE_CONFIG: 'conf/env.mjs' }
    expect((await load({ cwd })).tasks).toEqual(['found'])
    expect((await load({ cwd, env })).tasks).toEqual(['env'])
    expect((await load({ cwd, env, configs: ['conf/path.ts'] })).tasks).toEqual(['path'])
    expect((await load({ cwd, env: { MILLRACE_CONFIG: '' } })).tasks).toEqual(['found'])
  })

  it('refuses an import of an unknown name in a TypeScript file, with file and line', async () => {
    const cwd = project({
      'tasks.ts': `import { defineTask } from 'millrace'\nexport const mail = defineTask({ name: 'mail' })`,
      'millrace.config.ts': `import { millrace } from 'millrace'
import { mail, typo } from './tasks'
export default millrace({ store: 'memory:', tasks: [mail, typo] })`,
    })
    const { error } = await load({ cwd })

    expect(error!.code).toBe('config-invalid')
    expect(error!.message).toContain(join(cwd, 'millrace.config.ts'))
    expect(error!.message).toMatch(/ tasks\.1: .*is undefined: is it exported under that name\?/)
  })

  it.each([
    ['store', { store: undefined }],
    ['tasks.0', { tasks: [undefined] }],
    ['tasksElsewhere.0', { tasksElsewhere: [undefined] }],
    ['middleware', { middleware: undefined }],
    ['middleware.0', { middleware: [undefined] }],
    ['codec', { codec: undefined }],
    ['queues.default', { queues: { default: undefined } }],
    ['queues.default.throttle', { queues: { default: { throttle: undefined } } }],
    ['queues.default.throttle.0', { queues: { default: { throttle: [undefined] } } }],
  ])('does not take an undefined import for an omitted one: %s', (path, options) => {
    const make = () => millrace({ store: 'memory:', ...options } as never)

    expect(make).toThrow(new RegExp(` ${path}: .*is undefined: is it exported under that name\\?`))
  })

  it('reports which files were looked for, and where, if there is none', async () => {
    const cwd = project({})
    const { error } = await load({ cwd })
    expect(error!.code).toBe('config-invalid')
    for (const part of [
      cwd,
      'millrace.config.ts',
      'millrace.config.mts',
      'millrace.config.js',
      'millrace.config.mjs',
      '--config',
    ])
      expect(error!.message).toContain(part)
  })

  it('reports the configuration of a parent folder if there is none', async () => {
    const above = project({ 'millrace.config.mjs': '', 'src/tasks/a.ts': '' })
    const { error } = await load({ cwd: join(above, 'src/tasks') })
    expect(error!.message).toContain(`There is ${join(above, 'millrace.config.mjs')}`)
  })

  it.each([
    ['no default export', `export const x = 1`, 'default export: must be a mill, as in `export default millrace({'],
    ['something else as default', `export default [1]`, 'got [object Array]'],
    ['an error of its own', `throw new Error('no database today')`, 'no database today'],
    [
      'a wrong option',
      `import { millrace } from 'millrace'\nexport default millrace({ store: 'memory:', taks: [] })`,
      'taks',
    ],
  ])('reports the file for %s', async (_, text, part) => {
    const cwd = project({ 'millrace.config.mjs': text })
    const { error } = await load({ cwd })
    expect(error!.code).toBe('config-invalid')
    expect(error!.message).toContain(join(cwd, 'millrace.config.mjs'))
    expect(error!.message).toContain(part)
  })

  it.each(['ts', 'mjs'])('reports the line of a .%s file that threw', async (extension) => {
    const cwd = project({
      [`millrace.config.${extension}`]: `import './database.mjs'\n`,
      'database.mjs': `function connect() {\n  throw new Error('no database today')\n}\n\nconnect()\n`,
    })
    const { error } = await load({ cwd })
    const frames = error!.message.split('\n').slice(2)
    expect(error!.message).toContain('no database today')
    expect(frames[0]).toMatch(/^ {4}at connect .*database\.mjs:2:9/)
    expect(frames[1]).toMatch(/database\.mjs:5:1/)
    expect(frames.filter((frame) => /node:|\/dist\//.test(frame))).toEqual([])
  })

  it.each(['ts', 'mjs'])(
    'reports file, line and column of a syntax error in a .%s file, and keeps the original error as its cause',
    async (extension) => {
      const cwd = project({ [`millrace.config.${extension}`]: `export default = 3\n` })
      const { error } = await load({ cwd })
      expect(error!.code).toBe('config-invalid')
      expect(error!.message).toContain(join(cwd, `millrace.config.${extension}`))
      expect(error!.cause).toMatch(/unexpected/i)
      expect(error!.message).toMatch(/millrace\.config\.\w+:1:16: Unexpected token$/)
    },
  )
})

describe('loading a module', () => {
  it('makes a mill from its exported tasks and the store of the environment', async () => {
    const cwd = project({ 'tasks.ts': tasksFile })
    const env = { MILLRACE_STORE: 'sqlite:mine.db' }
    expect(await load({ cwd, env, module: 'tasks.ts' })).toMatchObject({
      tasks: everyTask,
      store: 'sqlite:mine.db',
      own: true,
    })
    expect(await load({ cwd, module: 'tasks.ts' })).toMatchObject({ store: 'sqlite:.millrace/jobs.db' })
  })

  it('reports a module with neither tasks nor a mill', async () => {
    const cwd = project({ 'empty.ts': 'export const x = 1' })
    expect((await load({ cwd, module: 'empty.ts' })).error!.message).toMatch(
      /empty\.ts is not valid:\n.*must hold a task/,
    )
  })

  it('uses its default export as the mill if no configuration was named', async () => {
    const cwd = project({ ...typedFiles, 'mill.ts': plainConfig })
    expect(await load({ cwd, module: 'mill.ts' })).toMatchObject({ file: join(cwd, 'mill.ts'), tasks: ['plain'] })
    expect(await load({ cwd, module: 'mill.ts', configs: ['millrace.config.ts'] })).toMatchObject({
      tasks: everyTask,
    })
  })

  it('reports tasks that the configuration does not know', async () => {
    const cwd = project({
      ...typedFiles,
      'more.ts': `import { defineTask } from 'millrace'\nexport { echo } from './tasks.js'\nexport const lost = defineTask({ name: 'lost' })`,
    })
    expect(await load({ cwd, module: 'more.ts' })).toMatchObject({ tasks: everyTask, unknown: ['lost'] })
  })

  it('accepts a mill made by another copy of the library', async () => {
    const cwd = project({
      'millrace.config.mjs': `class Mill { tasks = new Map(); queues = new Map(); enqueue() {} worker() {} queue() {} close() {} }\nexport default new Mill()`,
    })
    expect(await load({ cwd })).toMatchObject({ own: false, tasks: [] })
  })

  it('lets a configuration in JavaScript and handlers in TypeScript share the tasks they both import', async () => {
    const cwd = project({
      'tasks.mjs': `import { defineTask } from 'millrace'\nexport const t = defineTask({ name: 't' })`,
      'millrace.config.mjs': `import { millrace } from 'millrace'\nimport { t } from './tasks.mjs'\nexport default millrace({ store: 'memory:', tasks: [t.handle(async () => 1)] })`,
      'handlers.ts': `import { t } from './tasks.mjs'\nexport const seen: boolean = t.run === undefined\nif (!seen) throw new Error('two copies')`,
    })
    expect(await load({ cwd, module: 'handlers.ts' })).toMatchObject({ tasks: ['t'] })
  })
})
