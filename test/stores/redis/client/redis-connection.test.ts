import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis, type RedisOptions } from 'ioredis'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  ClosedError,
  ConfigError,
  StoreCorruptError,
  StoreFullError,
  StoreRefusedError,
  StoreUnavailableError,
} from '#src/core/errors.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { redisScript, ScriptRefusal } from '#src/stores/redis/client/redis-script.js'
import { errorOf, until } from './redis-answers.js'

const never = new AbortController().signal
const count = redisScript('count', "return redis.call('INCR', KEYS[1])")
const echo = redisScript('echo', 'return ARGV')
const raw = redisScript('raw', 'return redis.call(unpack(ARGV))')

let server: RedisServer
let client: RedisClient
/** What stands by: a client of the operator's. */
let operator: Redis
beforeEach(async () => {
  server = await startRedis()
  client = open()
  operator = beside({ retryStrategy: () => 20, maxRetriesPerRequest: null })
})
const opened: RedisClient[] = []
const others: Redis[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()))
  for (const other of others.splice(0)) other.disconnect()
  await server.stop()
})

function open(url = server.url): RedisClient {
  const made = openRedisClient(redisAddress(url))
  opened.push(made)
  return made
}

/** Another client of the operator's, or one of the user's. */
function beside(options: RedisOptions = {}): Redis {
  const other = new (Redis as unknown as new (options: RedisOptions) => Redis)({ ...options, port: server.port })
  other.on('error', () => {})
  others.push(other)
  return other
}

async function clients(): Promise<string[]> {
  const list = String(await operator.client('LIST'))
  return list.split('\n').filter((line) => line.includes('name=millrace'))
}

it('an answer arrives as the server sent it, and arguments as they were given', async () => {
  const args = ['', 'text', 'größer – 日本 😀', new Uint8Array([0, 255, 13, 10]), Buffer.from('ä'), 'x'.repeat(100_000)]
  expect(await client.run(echo, ['k'], args)).toEqual(args.map((arg) => Buffer.from(arg as string)))
  for (const some of [args.slice(0, 2), args.slice(0, 3)])
    expect(await client.run(echo, ['k'], some)).toEqual(some.map((arg) => Buffer.from(arg as string)))
  expect(await client.run(redisScript('mixed', "return {1, false, {'a'}}"), ['k'], [])).toEqual([
    1,
    null,
    [Buffer.from('a')],
  ])
  await client.command('HSET', ['hash', 'f', 'v'])
  expect(await client.command('HGETALL', ['hash'])).toEqual([Buffer.from('f'), Buffer.from('v')])
})

it('commands of one tick are carried out in order', async () => {
  await client.run(count, ['n'], [])
  const answers = [client.run(count, ['n'], []), client.command('APPEND', ['n', '0']), client.run(count, ['n'], [])]
  expect(await Promise.all(answers)).toEqual([2, 2, 21])
})

it('a client that only runs scripts opens one connection, and one that pops and listens opens three', async () => {
  await client.run(count, ['n'], [])
  expect(await clients()).toHaveLength(1)
  expect(await client.pop(['bell'], 500, never)).toBeUndefined()
  await client.listen('news', () => {})
  expect(await clients()).toHaveLength(3)
})

it('scripts run while the server forgets them every 50 ms', async () => {
  const flushing = setInterval(() => void operator.script('FLUSH'), 50)
  const endsAt = performance.now() + 1_500
  let runs = 0
  while (performance.now() < endsAt) {
    await Promise.all(Array.from({ length: 50 }, () => client.run(count, ['n'], [])))
    runs += 50
  }
  clearInterval(flushing)
  expect(await operator.get('n')).toBe(String(runs))
})

it('while the server is dead a call rejects within 2 s, and once it is back calls go on by themselves', async () => {
  await client.run(count, ['n'], [])
  await server.kill()
  const startedAt = performance.now()
  expect(await errorOf(client.run(count, ['n'], []))).toBeInstanceOf(StoreUnavailableError)
  expect((await errorOf(open().run(count, ['n'], []))).message).toMatch(/cannot be reached: .*ECONNREFUSED/)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
  await server.restart()
  const backAt = performance.now()
  await until(async () => (await client.run(count, ['m'], [])) === 1)
  expect(performance.now() - backAt).toBeLessThan(5_000)
})

it('a call under way when the server dies is doubtful and not repeated', async () => {
  await client.run(count, ['n'], [])
  await server.kill('SIGSTOP')
  const lost = [errorOf(client.run(count, ['n'], [])), errorOf(client.run(count, ['n'], []))]
  await pause(50)
  await server.kill()
  await server.restart()
  for (const error of await Promise.all(lost)) {
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error.message).toContain('in doubt')
  }
  await until(async () => (await client.run(count, ['m'], [])) !== undefined)
  expect(await operator.get('n')).toBeNull()
})

it('pop returns the key whose marker it took', async () => {
  const popped = client.pop(['one', 'two'], 5_000, never)
  await until(async () => String(await operator.client('LIST')).includes('cmd=bzpopmin'))
  await operator.zadd('two', 0, '0')
  expect(await popped).toBe('two')
  expect(await operator.exists('two')).toBe(0)
})

it('pop ends as soon as its signal aborts, and two at once are refused', async () => {
  const abort = new AbortController()
  const popped = client.pop(['bell'], 30_000, abort.signal)
  await until(async () => String(await operator.client('LIST')).includes('cmd=bzpopmin'))
  expect((await errorOf(client.pop(['bell'], 1, never))).message).toContain('under way')
  const abortedAt = performance.now()
  abort.abort()
  expect(await popped).toBeUndefined()
  expect(performance.now() - abortedAt).toBeLessThan(5_000)
})

it('no marker is lost if a pop is aborted, at any moment', async () => {
  let [rung, popped] = [0, 0]
  for (let round = 0; round < 300; round++) {
    const abort = new AbortController()
    const popping = client.pop(['bell'], 5_000, abort.signal)
    const ringing = operator.zadd('bell', 0, String(round)).then(() => rung++)
    // From before the command has left to after its answer is there.
    for (let turn = 0; turn < round % 12; turn++) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    if ((await popping) !== undefined) popped++
    await ringing
  }
  expect(popped).toBeLessThan(300)
  expect(popped + (await operator.zcard('bell'))).toBe(rung)
})

it('pop survives a killed connection, an unblocked client and a restarted server', async () => {
  const popped = client.pop(['bell'], 20_000, never)
  const idOf = async () => /id=(\d+) .*cmd=bzpopmin/.exec((await clients()).join('\n'))?.[1]
  await until(async () => (await idOf()) !== undefined)
  const first = await idOf()
  await operator.client('KILL', 'ID', first!)
  await until(async () => ![undefined, first].includes(await idOf()))
  await operator.client('UNBLOCK', (await idOf())!, 'ERROR')
  await server.kill()
  await server.restart()
  await operator.zadd('bell', 0, '0')
  expect(await popped).toBe('bell')
})

it('pop reports why it could not succeed when its time is over', async () => {
  await client.run(count, ['n'], [])
  await operator.replicaof('127.0.0.1', 1)
  const startedAt = performance.now()
  const error = await errorOf(client.pop(['bell'], 400, never))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toContain('it is a replica')
  expect(performance.now() - startedAt).toBeLessThan(10_000)
})

it('while a script keeps the server busy calls wait, then reject with the command that ends it', async () => {
  await client.run(count, ['n'], [])
  await operator.config('SET', 'busy-reply-threshold', '50')
  const endless = errorOf(beside().eval('while true do end', 0))
  await pause(200)
  const error = await errorOf(client.run(count, ['n'], []))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toContain('SCRIPT KILL')
  const waiting = client.run(count, ['n'], [])
  await operator.script('KILL')
  expect(await waiting).toBe(2)
  await endless
})

it('a server that became a replica is left, and used again when it is the master', async () => {
  await client.run(count, ['n'], [])
  const [before] = await clients()
  await operator.replicaof('127.0.0.1', 1)
  const error = await errorOf(client.run(count, ['n'], []))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toContain('it is a replica')
  await operator.replicaof('NO', 'ONE')
  expect(await client.run(count, ['n'], [])).toBe(2)
  expect(/\bid=(\d+)/.exec((await clients())[0]!)?.[1]).not.toBe(/\bid=(\d+)/.exec(before!)?.[1])
})

it('while the server loads its data calls wait for it', async () => {
  await operator.eval("for i = 1, 200 do redis.call('SET', i, ('x'):rep(4096)) end", 0)
  await client.run(count, ['n'], [])
  await operator.save()
  await server.kill()
  // 200 keys of 3 ms each, with a look at clients now and then.
  const slowly = ['key-load-delay 3000', 'loading-process-events-interval-bytes 1024']
  await appendFile(join(server.directory, 'redis.conf'), `${slowly.join('\n')}\n`)
  const restarting = server.restart()
  const hasty = beside({ enableReadyCheck: false, retryStrategy: () => 20, maxRetriesPerRequest: null })
  expect((await errorOf(hasty.get('n'))).message).toMatch(/^LOADING/)
  expect(await client.run(count, ['n'], [])).toBe(2)
  await restarting
})

it('a server that is out of memory refuses only commands that need memory', async () => {
  await client.run(raw, ['k'], ['SET', 'k', 'v'])
  await operator.config('SET', 'maxmemory', '1')
  expect(await errorOf(client.run(raw, ['k'], ['SET', 'k', 'w']))).toBeInstanceOf(StoreFullError)
  const freeing = redisScript('freeing', "return redis.call('DEL', KEYS[1])", { whenFull: true })
  expect(await client.run(freeing, ['k'], [])).toBe(1)
})

it('a server that cannot save is reported with what it needs', async () => {
  await client.run(count, ['n'], [])
  await operator.config('SET', 'save', '3600 1')
  await rm(server.directory, { recursive: true })
  await operator.bgsave()
  await until(async () => (await operator.info('persistence')).includes('rdb_last_bgsave_status:err'))
  const error = await errorOf(client.run(count, ['n'], []))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toMatch(/cannot save to its disk.*MISCONF/)
})

it('a key of another type and a refusal by our own script have errors of their own', async () => {
  await operator.set('k', 'text')
  expect(await errorOf(client.run(raw, ['k'], ['ZADD', 'k', '0', '0']))).toBeInstanceOf(StoreCorruptError)
  const refusal = redisScript('refusal', "return redis.error_reply('MILLRACE conflict')")
  const error = await errorOf(client.run(refusal, ['k'], []))
  expect(error).toBeInstanceOf(ScriptRefusal)
  expect((error as ScriptRefusal).word).toBe('conflict')
})

it('a missing right is named, a wrong password is refused at once, and no password is shown', async () => {
  await operator.acl('SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all', '-evalsha')
  const error = await errorOf(open(`redis://ann:secret@127.0.0.1:${server.port}`).run(count, ['n'], []))
  expect(error).toBeInstanceOf(StoreRefusedError)
  expect(error.message).toContain("'+evalsha'")
  const startedAt = performance.now()
  const wrong = await errorOf(open(`redis://ann:wrong-secret@127.0.0.1:${server.port}`).run(count, ['n'], []))
  expect(wrong).toBeInstanceOf(StoreRefusedError)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
  for (const { message } of [error, wrong]) expect(message).not.toContain('secret')
  await operator.config('SET', 'requirepass', 'sesame')
  expect(await errorOf(open().run(count, ['n'], []))).toBeInstanceOf(StoreRefusedError)
})

it('pop on a server that accepts no writes reports that when its time is over', async () => {
  await client.command('PING', [])
  await operator.replicaof('127.0.0.1', 1)

  expect(await errorOf(client.pop(['bell'], 150, never))).toBeInstanceOf(StoreUnavailableError)
})

it('a right that pop lacks is named at once', async () => {
  await operator.acl('SETUSER', 'bob', 'on', '>secret', '~*', '&*', '+@all', '-bzpopmin')
  const startedAt = performance.now()
  const error = await errorOf(open(`redis://bob:secret@127.0.0.1:${server.port}`).pop(['bell'], 10_000, never))
  expect(error).toBeInstanceOf(StoreRefusedError)
  expect(error.message).toContain("'+bzpopmin'")
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

it('a server that evicts keys and a replica are refused, and accepted once that is corrected', async () => {
  await operator.config('SET', 'maxmemory-policy', 'allkeys-lru')
  expect(await errorOf(client.run(count, ['n'], []))).toBeInstanceOf(ConfigError)
  await operator.config('SET', 'maxmemory-policy', 'noeviction')
  await operator.replicaof('127.0.0.1', 1)
  const error = await errorOf(client.run(count, ['n'], []))
  expect(error).toBeInstanceOf(ConfigError)
  expect(error.message).toContain('is a replica')
  await operator.replicaof('NO', 'ONE')
  expect(await client.run(count, ['n'], [])).toBe(1)
})

it('a listener receives published messages, and a report of a gap after a lost connection', async () => {
  const heard: (string | undefined)[] = []
  const stop = await client.listen('news', (message) => heard.push(message))
  await operator.publish('news', 'one')
  await until(async () => heard.length === 1)
  const id = /\bid=(\d+) .*cmd=subscribe/.exec((await clients()).join('\n'))![1]!
  await operator.client('KILL', 'ID', id)
  await until(async () => heard.length === 2)
  await operator.publish('news', 'two')
  await until(async () => heard.length === 3)
  expect(heard).toEqual(['one', undefined, 'two'])
  stop()
  await until(async () => (await operator.publish('news', 'three')) === 0)
  expect(heard).toHaveLength(3)
})

it('a call that reached too few replicas is stored and doubtful', async () => {
  const error = await errorOf(client.run(count, ['n'], [], 1))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error.message).toMatch(/0 of 1 replicas/)
  expect(await operator.get('n')).toBe('1')
})

it('closing rejects calls under way, ends every connection, and may be repeated', async () => {
  await client.listen('news', () => {})
  const popping = errorOf(client.pop(['bell'], 30_000, never))
  await until(async () => String(await operator.client('LIST')).includes('cmd=bzpopmin'))
  await server.kill('SIGSTOP')
  const running = errorOf(client.run(count, ['n'], []))
  await pause(20)
  await Promise.all([client.close(), client.close()])
  await server.kill('SIGCONT')
  expect(await running).toBeInstanceOf(ClosedError)
  expect(await popping).toBeInstanceOf(ClosedError)
  expect(await errorOf(client.run(count, ['n'], []))).toBeInstanceOf(ClosedError)
  await until(async () => (await clients()).length === 0)
})

it("a user's client is copied with our options, and is neither used nor closed", async () => {
  const theirs = beside({ lazyConnect: true, db: 3, maxRetriesPerRequest: 20 })
  const made = openRedisClient(() => theirs)
  opened.push(made)
  expect(made.isCluster).toBe(false)
  expect(await made.run(count, ['n'], [])).toBe(1)
  await made.close()
  expect(theirs.status).toBe('wait')
  expect(await theirs.get('n')).toBe('1')
  const prefixed = openRedisClient(() => beside({ lazyConnect: true, keyPrefix: 'x:' }))
  expect(await errorOf(prefixed.run(count, ['n'], []))).toBeInstanceOf(ConfigError)
})

it('a missing database is refused, and nothing is written anywhere', async () => {
  const [, databases] = (await operator.config('GET', 'databases')) as string[]
  for (const source of [
    redisAddress(`${server.url}/${databases}`),
    () => beside({ lazyConnect: true, db: Number(databases) }),
  ]) {
    const made = openRedisClient(source)
    opened.push(made)
    const error = await errorOf(made.run(count, ['n'], []))
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toContain(`has no database ${databases}`)
    expect(await errorOf(made.pop(['bell'], 100, never))).toBeInstanceOf(ConfigError)
  }
  expect(await operator.dbsize()).toBe(0)
  const last = openRedisClient(redisAddress(`${server.url}/${Number(databases) - 1}`))
  opened.push(last)
  expect(await last.run(count, ['n'], [])).toBe(1)
  expect(await operator.dbsize()).toBe(0)
})

it('a user without the right to select the database is refused, and nothing is written to another', async () => {
  await operator.acl('SETUSER', 'fixed', 'on', '>secret', 'allkeys', 'allchannels', '+@all', '-select')
  const made = openRedisClient(redisAddress(`redis://fixed:secret@127.0.0.1:${server.port}/2`))
  opened.push(made)
  expect(await errorOf(made.run(count, ['n'], []))).toBeInstanceOf(StoreRefusedError)
  expect(await operator.dbsize()).toBe(0)
})
