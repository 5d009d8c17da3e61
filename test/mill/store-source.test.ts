import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { inspect, promisify } from 'node:util'
import { millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { runProcess } from '../cli/command-process.js'
import { project } from '../cli/project.js'

describe('an unusable store address', () => {
  it.each([
    'valkey://:pa/sesame@h:1',
    'Redis://u:p@sesame@h',
    ':sesame@h:6379',
    'redis//:sesame',
    'redis:/:sesame',
    'rediss//u:sesame/0',
    'valkey://:sesame',
    'valkey:sesame',
    ':sesame',
    'memory::sesame',
    'redis://:sesame',
    'redis://h/sesame',
    'redis://h?sesame',
    'redis+cluster://h/sesame',
    '"redis://:sesame@h"',
    'memory://:sesame@h',
    'redis://:sesame@h/x',
    'redis://:ses%ame@h',
    'postgres://u:sesame@h',
    'postgres://u:pa/sesame@h/db',
    'postgres:sesame',
    'postgres://u@h/db?sesame=1',
    'postgres://u:ses%ame@h/db',
  ])('is refused without showing its password: %s', (store) => {
    let error: unknown
    try {
      millrace({ store })
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'config-invalid' })
    expect(inspect(error)).not.toMatch(/ses%?ame/)
  })
})

it.each([
  ['redis://user:sesame@127.0.0.1:1/2', 'redis://user@127.0.0.1:1/2'],
  ['postgres://user:sesame@127.0.0.1:1/shop?schema=jobs', 'postgres://user@127.0.0.1:1/shop'],
])('the store of a mill is printed without its password in every way: %s', (store, text) => {
  const mill = millrace({ store })
  expect(mill.store.text).toBe(text)
  expect(
    inspect(mill, { depth: 9, showHidden: true }) + inspect(mill.store) + JSON.stringify(mill.store),
  ).not.toContain('sesame')
})

it.each(['sqlite://jobs.db', 'sqlite://.millrace/jobs.db', 'sqlite:///srv/app/jobs.db'])(
  '%s is refused as ambiguous between relative and absolute',
  (store) => {
    expect(() => millrace({ store })).toThrow(
      `'sqlite:.millrace/jobs.db' is relative, 'sqlite:/srv/app/jobs.db' absolute; got '${store}'`,
    )
  },
)

const config = `
import { defineTask, millrace } from 'millrace'
export const mail = defineTask({ name: 'mail', run: async () => {} })
export default millrace({ store: 'sqlite:.millrace/jobs.db', tasks: [mail] })
`
const enqueue = `
import mill, { mail } from './millrace.config.mjs'
mill.on('store.strayed', ({ file }) => console.log('strayed', file))
await mill.enqueue(mail, null, { id: 'a' })
await mill.close()
`
const files = { 'millrace.config.mjs': config, 'enqueue.mjs': enqueue }
const named = { 'package.json': '{"type":"module","name":"shop"}' }

/** Runs a script from this folder. */
async function run(cwd: string, script: string): Promise<string> {
  mkdirSync(cwd, { recursive: true })
  const { stdout } = await promisify(execFile)(process.execPath, [script], { cwd })
  return stdout
}

it('a program and the command line find the same file, wherever they are started', async () => {
  const shop = project({ ...named, ...files })
  const elsewhere = join(shop, 'elsewhere')
  expect(await run(elsewhere, join(shop, 'enqueue.mjs'))).toBe('')

  for (const cwd of [shop, elsewhere]) {
    const { stdout } = await runProcess(['jobs', 'list', '--json', '--config', join(shop, 'millrace.config.mjs')], {
      cwd,
    })
    expect(stdout).toContain('"id":"a"')
  }
  expect(existsSync(join(elsewhere, '.millrace'))).toBe(false)
})

it('a package.json of built files, which has no name, is not the project', async () => {
  const built = project({ ...named, 'dist/package.json': '{"type":"module"}', ...inFolder('dist') })
  await run(join(built, 'elsewhere'), join(built, 'dist/enqueue.mjs'))

  expect([existsSync(join(built, '.millrace/jobs.db')), existsSync(join(built, 'dist/.millrace'))]).toEqual([
    true,
    false,
  ])
})

it('a tool in the dependencies runs for the project that has it', async () => {
  const shop = project({
    ...named,
    ...inFolder('node_modules/tool'),
    'node_modules/tool/package.json': '{"name":"tool"}',
  })
  await run(join(shop, 'sub'), join(shop, 'node_modules/tool/enqueue.mjs'))

  expect(existsSync(join(shop, '.millrace/jobs.db'))).toBe(true)
})

it('without a project the file is created in the working directory, and an event says so once', async () => {
  const folder = project(files)
  const cwd = join(folder, 'somewhere')
  const file = join(realpathSync(folder), 'somewhere/.millrace/jobs.db')

  expect(await run(cwd, join(folder, 'enqueue.mjs'))).toBe(`strayed ${file}\n`)
  expect(await run(cwd, join(folder, 'enqueue.mjs'))).toBe('')
})

function inFolder(folder: string): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))
}
