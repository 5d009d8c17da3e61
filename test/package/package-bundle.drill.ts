/** The package in a bundle: what says that it cannot be bundled, and how it is left out. */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import { rolldown } from 'rolldown'
import { afterAll, describe, expect, it } from 'vitest'
import { installed, packed } from './tarball.js'

const task = `
import { defineTask, millrace } from 'millrace'
const double = defineTask({ name: 'double', run: async (n) => 2 * n })
`
const ends = `
try {
  await run()
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }))
}
`

describe('an application in a bundle', () => {
  const tarball = packed()
  afterAll(() => tarball.remove())

  /** Bundles a program of an installed package, and runs the bundle. */
  async function bundled(program: string, external: readonly string[] = [], env: Record<string, string> = {}) {
    const modules = ['ioredis', '@photostructure/sqlite']
    const cwd = installed(tarball, { 'package.json': '{"type":"module"}', 'app.js': program }, modules)
    const bundle = await rolldown({
      input: join(cwd, 'app.js'),
      platform: 'node',
      external: [...external],
      logLevel: 'silent',
    })
    await bundle.write({ dir: join(cwd, 'out/app'), entryFileNames: '[name].js' })
    await bundle.close()
    const file = join(cwd, 'out/app/app.js')
    const ran = spawnSync(process.execPath, [file], {
      cwd,
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, ...env },
    })
    return { stdout: ran.stdout.trim(), stderr: ran.stderr, status: ran.status }
  }

  const onSqlite = `${task}
const mill = millrace({ store: 'sqlite:jobs.db', tasks: [double] })
async function run() {
  const job = await mill.enqueue(double, 21)
  await mill.worker().start()
  console.log(await job.result({ timeout: '20s' }))
  await mill.close()
}
${ends}`

  it('works if the package is left out of the bundle', async () => {
    expect(await bundled(onSqlite, ['millrace'])).toEqual({ stdout: '42', stderr: '', status: 0 })
  }, 60_000)

  it('gets an error at its first call on SQLite that says to leave the package out, and nothing was sent', async () => {
    const { stdout, stderr, status } = await bundled(onSqlite)
    const { code, message } = JSON.parse(stdout)

    expect({ code, stderr, status }).toEqual({ code: 'package-bundled', stderr: '', status: 0 })
    expect(message).toMatch(/sqlite-thread\.js.*external.*serverExternalPackages/s)
    expect(message).toContain('Nothing was sent')
    expect(message).not.toMatch(/sent again/)
  }, 60_000)

  it('gets the same error if the file of the thread was copied without its imports', async () => {
    const copied = onSqlite.replace(
      'async function run() {',
      `async function run() {
  (await import('node:fs')).cpSync('node_modules/millrace/dist/stores/sqlite/thread/sqlite-thread.js', new URL('../stores/sqlite/thread/sqlite-thread.js', import.meta.url))`,
    )
    const { code, message } = JSON.parse((await bundled(copied)).stdout)

    expect(code).toBe('package-bundled')
    expect(message).not.toMatch(/sent again/)
  }, 60_000)

  it('gets an error when a worker on Redis starts, because no thread would renew its leases', async () => {
    const redis = await startRedis()
    try {
      const program = `${task}
const mill = millrace({ store: process.env.REDIS_URL, tasks: [double] })
async function run() {
  await mill.enqueue(double, 21)
  try {
    await mill.worker().start()
  } finally {
    await mill.close()
  }
}
${ends}`
      const { stdout } = await bundled(program, [], { REDIS_URL: redis.url })
      const { code, message } = JSON.parse(stdout)

      expect(code).toBe('package-bundled')
      expect(message).toContain('lease-thread-entry.js')
    } finally {
      await redis.stop()
    }
  }, 90_000)

  it('gets an error when a worker with isolated tasks is created, because no process could run them', async () => {
    const program = `
import { defineTask, millrace } from 'millrace'
const encode = defineTask({ name: 'encode', isolate: 'process', module: import.meta.url, run: async () => {} })
async function run() {
  millrace({ store: 'sqlite:jobs.db', tasks: [encode] }).worker()
}
${ends}`
    const { code, message } = JSON.parse((await bundled(program)).stdout)

    expect(code).toBe('package-bundled')
    expect(message).toContain('process-child-entry.js')
  }, 60_000)
})
