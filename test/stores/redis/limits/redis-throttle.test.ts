/** The throttle in the Lua of the Redis store: it answers as the memory store's does, reads little, and leaves nothing. */

import { startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Throttle, ThrottleRule } from '#src/core/queue/throttle.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { redisScript } from '#src/stores/redis/client/redis-script.js'
import { throttle } from '#src/stores/redis/lua/throttle-lua.js'
import { disagreement } from './throttle-disagreement.js'
import { heardOf, keysOf, type Moment, runOf, sceneOf, throttleHeader, throttleScene } from './throttle-scene.js'

let url: string

beforeAll(async () => {
  url = (await startRedis()).url
}, 120_000)

function opened(): RedisClient {
  const client = openRedisClient(redisAddress(url))
  onTestFinished(() => client.close())
  return client
}

const start = 1_700_000_000_000
const minute = 60_000
const rule = (limit: number, windowMs: number): ThrottleRule => ({ limit, windowMs, moderate: false })

/** Runs Lua beside the throttle of a scope, at so many ms from the start, and answers with its numbers. */
function asking(client: RedisClient, scopes: readonly string[], lua: string) {
  const script = redisScript('ask', `${throttleHeader}${throttle}${lua}`)
  return async (at: number, ...args: string[]) => {
    const reply = await client.run(script, scopes.flatMap(keysOf), [String(start + at), runOf(1), ...args])
    return (reply as readonly number[]).map(Number)
  }
}

async function begun(client: RedisClient, scope: string, by: Throttle['by'], rules: string): Promise<void> {
  await client.command('HSET', [keysOf(scope)[0]!, 'by', by, 'rules', rules])
}

describe('the throttle in Lua', () => {
  it('answers like that of the memory store, over restarts, clocks set back and other rules', async () => {
    const client = opened()
    const found: string[] = []
    for (let seed = 1; seed <= 100; seed += 1) {
      const scene = throttleScene(seed, 60)
      const { text } = disagreement(scene, await heardOf(client, `s${seed}`, scene, { isTrimmed: seed % 2 === 0 }))
      if (text !== undefined) found.push(`seed ${seed}: ${text}`)
    }

    expect(found).toEqual([])
  }, 60_000)

  it('charges the loss of a second restart from the first one on, even if it rested in between', async () => {
    const claim = { verb: 'claim', of: [{ subject: '', want: 1, hasMore: false, lateMs: 0 }] } as const
    const look = { verb: 'claim', of: [{ subject: '', want: 0, hasMore: false, lateMs: 0 }] } as const
    const moments: Moment[] = [
      { step: claim, now: start, run: runOf(1) },
      { step: look, now: start + 20 * minute, run: runOf(2) },
      { step: { verb: 'rest', subject: '', isOpen: true }, now: start + 20 * minute, run: runOf(2) },
      { step: look, now: start + 40 * minute, run: runOf(3) },
    ]
    const scene = sceneOf({ scope: 'api', by: 'queue', rules: [rule(10, 60 * minute)] }, [''], moments)

    const heard = await heardOf(opened(), 'rested', scene)

    expect(heard.map(({ look }) => look.at(-1))).toEqual([1, 5, 5, 9])
    expect(disagreement(scene, heard)).toEqual({ compared: 4 })
  })

  it('reads only a few entries of a log with thousands, for every rule', async () => {
    const client = opened()
    const claimed = asking(
      client,
      ['many'],
      `
local read, ask = 0, call
call = function(...)
  local reply = ask(...)
  if (...) == 'ZRANGE' then read = read + #reply end
  return reply
end
throttle_open()
local permits = throttle_permits('')
throttle_started('', tonumber(ARGV[3]), true, 0)
throttle_permits('')
return { permits, read }`,
    )
    await begun(client, 'many', 'queue', '2000/60000 3/1000m 100/20000')
    for (let i = 0; i < 1_999; i += 1) void claimed(i * 20, '1')

    const [permits, whenFull] = await claimed(39_990, '1')
    const [, oneGone] = await claimed(60_010, '1')

    expect(permits).toBe(0)
    expect(whenFull).toBeLessThan(250)
    expect(oneGone).toBeLessThan(250)
  })

  it('forgets idle groups, a limited number at a time, and nothing that a window still counts', async () => {
    const client = opened()
    const ask = asking(
      client,
      ['idle'],
      `
throttle_open()
for i = 4, #ARGV do
  throttle_permits(ARGV[i])
  throttle_started(ARGV[i], 1, true, 0)
end
throttle_trim(tonumber(ARGV[3]))
return { call('HLEN', COUNTERS), call('ZCARD', STARTS), call('ZCARD', IDLE), throttle_subjects() }`,
    )
    await begun(client, 'idle', 'group', '2/1000 5/2000')
    await ask(0, '300', 'a', 'b', 'c')

    expect(await ask(10, '300', 'a', 'd')).toEqual([4, 5, 4, 4])
    expect(await ask(2_000, '300')).toEqual([4, 5, 4, 4])
    expect(await ask(2_001, '1')).toEqual([3, 4, 3, 2])
    expect(await ask(2_001, '300')).toEqual([2, 3, 2, 2])
    expect(await ask(2_011, '300')).toEqual([0, 0, 0, 0])
  })

  it('frees the memory of hundreds of groups if few are left, and keeps those unchanged', async () => {
    const client = opened()
    const ask = asking(
      client,
      ['shrunk'],
      `
throttle_open()
for i = 3, #ARGV do
  throttle_permits(ARGV[i])
  throttle_started(ARGV[i], 2, true, 0)
end
throttle_trim(1000)
return { call('HLEN', COUNTERS), (throttle_permits('g0')), (throttle_permits('g1')) }`,
    )
    await begun(client, 'shrunk', 'group', '3/1000')
    const encodings = () =>
      Promise.all(
        keysOf('shrunk')
          .slice(1)
          .map((key) => client.command('OBJECT', ['ENCODING', key])),
      )
    await ask(0, ...Array.from({ length: 600 }, (_, i) => `g${i}`))
    expect((await encodings()).map(String)).toEqual(['skiplist', 'hashtable', 'skiplist'])

    expect(await ask(600, 'g1')).toEqual([600, 1, 0])
    expect(await ask(1_001)).toEqual([1, 3, 1])
    expect((await encodings()).map(String)).toEqual(['listpack', 'listpack', 'listpack'])
  })

  it('keeps scopes apart if one script alternates between them', async () => {
    const client = opened()
    const ask = asking(
      client,
      ['one', 'two'],
      `
local function turn_to(n) RULES, STARTS, COUNTERS, IDLE = unpack(KEYS, n * 4 - 3, n * 4) throttle_open() end
turn_to(1) throttle_permits('') throttle_started('', 2, true, 0)
turn_to(2) local second = throttle_permits('') throttle_started('', 1, true, 0)
turn_to(1) local first = throttle_permits('')
turn_to(2) return { first, second, (throttle_permits('')) }`,
    )
    await begun(client, 'one', 'queue', '5/1000')
    await begun(client, 'two', 'queue', '7/1000')

    expect(await ask(0)).toEqual([3, 7, 6])
    expect(await ask(0)).toEqual([1, 6, 5])
  })

  it('recognises the server by its run id, and writes instants in full', async () => {
    const client = opened()
    const asItIs = throttleHeader.replace("command == 'INFO'", 'false')
    const script = redisScript(
      'ask',
      `${asItIs}${throttle}throttle_open() throttle_permits('') throttle_started('', 1, true, 0)`,
    )
    await begun(client, 'run', 'queue', '5/1000')

    await client.run(script, keysOf('run'), [String(start)])

    const told = String(await client.command('INFO', ['server']))
    const fields = ((await client.command('HGETALL', [keysOf('run')[0]!])) as readonly Buffer[]).map(String)
    expect(fields).toEqual(
      expect.arrayContaining([
        'run',
        /run_id:(\w+)/.exec(told)![1],
        'recoveredAt',
        String(start),
        'lastAt',
        String(start),
      ]),
    )
  })
})
