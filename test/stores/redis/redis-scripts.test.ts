/** The scripts of a Redis store, compiled by a real server: a function of Lua has room for 200 local variables. */

import { readdirSync } from 'node:fs'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisScript } from '#src/stores/redis/client/redis-script.js'
import type { ShardScript } from '#src/stores/redis/lua/prelude.js'

const folder = new URL('../../../dist/stores/redis/', import.meta.url)

/** Every export named `…Script` or `…Scripts`: one script, or several by name or by kind; those of shards for one kind of server. */
async function scriptsFor(isCluster: boolean): Promise<RedisScript[]> {
  const found: RedisScript[] = []
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => /-scripts?\.js$/.test(name) && !name.endsWith('redis-script.js'))) {
    const exported: [string, unknown][] = Object.entries(await import(new URL(file, folder).href))
    const before = found.length
    for (const [name, value] of exported) {
      if (!/Scripts?$/.test(name)) continue
      found.push(...scriptsIn(value as Scripts, isCluster))
    }
    expect(found.length, file).toBeGreaterThan(before)
  }
  return found
}

type Scripts = RedisScript | ShardScript | { readonly [name: string]: Scripts }

function scriptsIn(value: Scripts, isCluster: boolean): RedisScript[] {
  if (typeof value === 'function') return [value(isCluster)]
  if (typeof value['sha'] === 'string') return [value as RedisScript]
  return Object.values(value as Record<string, Scripts>).flatMap((one) => scriptsIn(one, isCluster))
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.each([
  ['a single server', false],
  ['a cluster', true],
])('the scripts for %s', (_, isCluster) => {
  it('are compiled by the server, each under its own name', async () => {
    const scripts = await scriptsFor(isCluster)
    for (const { name, sha, text } of scripts) expect(await server.ask('SCRIPT', 'LOAD', text), name).toBe(sha)
    const names = scripts.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toEqual(expect.arrayContaining(['claim-gated-ordered', 'repair-groups-ordered', 'transfer-put']))
  })
})
