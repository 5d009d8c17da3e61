/** The scripts of a Redis store, compiled by a real server: a function of Lua has room for 200 local variables. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../cli/project.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
/** For each file that `npm run scripts` writes, the hash that it prints. */
let printed: Map<string, string>
let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
  const program = join(root, 'scripts/redis-scripts.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, folder], {
    encoding: 'utf8',
    timeout: 20_000,
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  printed = new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => [line.slice(42), line.slice(0, 40)]),
  )
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await server.stop()
})

describe('npm run scripts', () => {
  it('prints every script that the store makes', () => {
    const written = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'))
    expect(written.sort()).toEqual([...printed.keys()].sort())
    const names = written.map((file) => file.replace(/^cluster\/|\.lua$/g, ''))
    for (const name of namesInSource()) expect(names).toContain(name)
    expect(names).toEqual(expect.arrayContaining(['claim-gated-ordered', 'repair-groups-ordered', 'transfer-put']))
    expect(written).toEqual(expect.arrayContaining(['claim.lua', 'cluster/claim.lua', 'server-info.lua']))
    expect(written).not.toContain('cluster/server-info.lua')
  })

  it('prints them as the server compiles them, each with the hash by which it is asked for', async () => {
    for (const [file, sha] of printed) {
      const text = readFileSync(join(folder, file), 'utf8')
      expect(text.split('\n').length, file).toBeGreaterThan(1)
      expect(await server.ask('SCRIPT', 'LOAD', text), file).toBe(sha)
    }
  })
})

/** The names that the source gives to scripts as texts, without those that it puts together. */
function namesInSource(): string[] {
  const store = join(root, 'src/stores/redis')
  const files = readdirSync(store, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const calls = /\b(?:redisScript|shardScript|scriptPair|readerPair)\(\s*'([\w-]+)'/g
  const names = files.flatMap((file) =>
    [...readFileSync(join(store, file), 'utf8').matchAll(calls)].map(([, name]) => name!),
  )
  expect(names.length).toBeGreaterThan(20)
  return names
}
