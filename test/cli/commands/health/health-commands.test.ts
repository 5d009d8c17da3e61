import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run, runJson } from '../../command-in-process.js'
import { project, projectFiles } from '../../project.js'

/** A store whose health says what it is asked for, and which cannot be opened. */
const storeFile = `
export default () => ({
  open: () => { throw new Error('opened') },
  close: async () => {},
  health: {
    examine: async () => [
      { level: 'ok', what: 'version', text: 'Redis 7.0.15' },
      { level: 'warning', what: 'persistence', text: 'none\\u001b[2J' },
    ],
    check: async (queue) => [
      { level: 'error', what: 'queue ' + (queue ?? 'all'), text: "missing from 'line': a. They never run." },
      { level: 'error', what: 'unknown keys', text: 'x' },
    ],
    repair: async (queue) => ({
      mended: [{ what: 'queue ' + (queue ?? 'all'), text: 'counted again: ready 3 -> 2\\u001b[2J' }],
      left: [{ level: queue === undefined ? 'error' : 'ok', what: 'queue mail', text: 'x' }],
    }),
  },
})
`
const configFile = `
import { millrace } from 'millrace'
export default millrace({ store: { module: './store.js' }, queues: { default: {} }, tasks: [] })
`
const files = { 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile }

describe('doctor and fsck', () => {
  it('print what the store finds, one line each, and open no queue', async () => {
    const cwd = project(files)

    expect(await run('doctor', { cwd })).toMatchObject({
      code: 0,
      stdout: 'ok       version      Redis 7.0.15\nwarning  persistence  none\\u001b[2J\n',
      stderr: '',
    })
    expect(await runJson('doctor', { cwd })).toEqual({
      store: './store.js#default',
      findings: [
        { level: 'ok', what: 'version', text: 'Redis 7.0.15' },
        { level: 'warning', what: 'persistence', text: 'none\u001b[2J' },
      ],
    })
  })

  it('report what they could not read', async () => {
    const broken = storeFile.replace(
      'health:',
      'records: { queues: async () => { throw new Error("no right") } },\n  health:',
    )

    expect(await run('doctor', { cwd: project({ ...files, 'store.js': broken }) })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\nwarning {2}queues {7}could not be read: no right\n$/),
    })
  })

  it('exit with 1 if there is an error', async () => {
    const cwd = project(files)

    expect(await run('fsck --queue mail', { cwd })).toMatchObject({
      code: 1,
      stdout: "error    queue mail    missing from 'line': a. They never run.\nerror    unknown keys  x\n",
      stderr: 'millrace: fsck found 2 errors in ./store.js#default.\n',
    })
    const { code, stdout } = await run('fsck --json', { cwd })
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ findings: [{ level: 'error', what: 'queue all' }, {}] })
  })

  it('repair only on request, and exit with 1 only if an error is left', async () => {
    const cwd = project(files)

    expect(await run('fsck --repair', { cwd })).toMatchObject({
      code: 1,
      stdout: 'mended   queue all   counted again: ready 3 -> 2\\u001b[2J\nerror    queue mail  x\n',
      stderr: 'millrace: fsck left 1 error in ./store.js#default.\n',
    })
    expect(await runJson('fsck --repair --queue mail', { cwd })).toEqual({
      store: './store.js#default',
      mended: [{ what: 'queue mail', text: 'counted again: ready 3 -> 2\u001b[2J' }],
      findings: [{ level: 'ok', what: 'queue mail', text: 'x' }],
    })
  })

  it('refuse a repair that the store does not support', async () => {
    const cwd = project({ ...files, 'store.js': storeFile.replace('repair:', 'other:') })

    expect(await run('fsck --repair', { cwd })).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('cannot do this: --repair'),
    })
  })

  it('print one sentence for a store that cannot be examined, and exit with 0', async () => {
    const memory = configFile.replace("{ module: './store.js' }", "'memory:'")
    const cwd = project({ ...files, 'millrace.config.js': memory })

    for (const command of ['doctor', 'fsck']) {
      expect(await run([command], { cwd })).toMatchObject({
        code: 0,
        stdout: `memory:: there is nothing that ${command} could look at.\n`,
        stderr: '',
      })
      expect(await runJson([command], { cwd })).toEqual({ store: 'memory:', findings: [] })
    }
  })

  it('examine a SQLite store without creating one', async () => {
    const cwd = project(projectFiles)

    expect(await runJson('fsck --repair', { cwd })).toMatchObject({ mended: [], findings: [{ level: 'ok' }] })
    expect(await runJson('doctor', { cwd })).toMatchObject({ findings: [{ level: 'ok', what: 'file' }] })
    expect(existsSync(join(cwd, 'jobs.db'))).toBe(false)
  })
})
