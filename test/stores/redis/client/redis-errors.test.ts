import { expect, it } from 'vitest'
import {
  ConfigError,
  StoreCorruptError,
  StoreFullError,
  StoreRefusedError,
  StoreUnavailableError,
} from '#src/core/errors.js'
import { isFatal } from '#src/runtime/outage.js'
import {
  failureOf,
  isReadOnly,
  type RedisFailure,
  redisError,
  unreachable,
} from '#src/stores/redis/client/redis-errors.js'
import { ScriptRefusal } from '#src/stores/redis/client/redis-script.js'
import { redisInfo, refuseUnfit } from '#src/stores/redis/client/redis-server-info.js'

function reply(message: string): Error {
  const error = new Error(message)
  error.name = 'ReplyError'
  return error
}

const script = 'script: 2c9d1e, on @user_script:1.'

/** What an error of each kind becomes; the first two end a worker. */
const typeOf = {
  corrupt: StoreCorruptError,
  refused: StoreRefusedError,
  full: StoreFullError,
  unwritable: StoreUnavailableError,
  'not-executed': StoreUnavailableError,
  'unknown-script': StoreUnavailableError,
  'script-refusal': ScriptRefusal,
} satisfies Partial<Record<RedisFailure, unknown>>

it.each<[string, keyof typeof typeOf, RegExp]>([
  ['LOADING Redis is loading the dataset in memory', 'not-executed', /loading its data/],
  [
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'not-executed',
    /lost its master/,
  ],
  ['CLUSTERDOWN Hash slot not served', 'not-executed', /cluster --check|--cluster check/],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'not-executed', /moved to another node/],
  [
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'not-executed',
    /SCRIPT KILL/,
  ],
  [`ERR Script killed by user with SCRIPT KILL... ${script}`, 'not-executed', /killed by user/],
  [`READONLY You can't write against a read only replica. ${script}`, 'not-executed', /is a replica/],
  [`NOREPLICAS Not enough good replicas to write. ${script}`, 'not-executed', /min-replicas-to-write/],
  [
    'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
    'not-executed',
    /become a replica/,
  ],
  ['MOVED 866 127.0.0.1:7001', 'not-executed', /keeps moving/],
  ['ERR max number of clients reached', 'not-executed', /max number of clients/],
  ['NOSCRIPT No matching script. Please use EVAL.', 'unknown-script', /NOSCRIPT/],
  [`OOM command not allowed when used memory > 'maxmemory'. ${script}`, 'full', /'maxmemory'/],
  [
    'MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
    'unwritable',
    /free space/,
  ],
  [`WRONGTYPE Operation against a key holding the wrong kind of value ${script}`, 'corrupt', /namespace/],
  [`ERR value is not an integer or out of range ${script}`, 'corrupt', /namespace/],
  ['NOAUTH Authentication required.', 'refused', /user and the password/],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'refused', /user and the password/],
  ["NOPERM User ann has no permissions to run the 'client|unblock' command", 'refused', /'\+client\|unblock'/],
  ['NOPERM No permissions to access a key', 'refused', /~/],
  ['NOPERM No permissions to access a channel', 'refused', /&/],
  ["ERR unknown command 'EVALSHA', with args beginning with: ", 'refused', /'\+EVALSHA'/],
  ['MILLRACE conflict', 'script-refusal', /conflict/],
])('%s', (message, failure, text) => {
  const error = reply(message)
  expect(failureOf(error, true)).toBe(failure)
  const typed = redisError('redis://here', error, failure)
  expect(typed).toBeInstanceOf(typeOf[failure])
  expect(typed.message).toMatch(text)
  expect(isFatal(typed)).toBe(failure === 'corrupt' || failure === 'refused')
  expect(isReadOnly(error)).toBe(message.startsWith('READONLY'))
})

it('a lost connection makes only sent calls doubtful', () => {
  const lost = new Error('Connection is closed.')
  expect(failureOf(lost, true)).toBe('in-doubt')
  expect(failureOf(lost, false)).toBe('not-executed')
  expect(redisError('redis://here', lost, 'in-doubt')).toBeInstanceOf(StoreUnavailableError)
  expect(redisError('redis://here', lost, 'in-doubt').message).toContain('in doubt')
})

it('if the client gave up after redirections, the last reply counts', () => {
  const error = new Error('Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request')
  expect(failureOf(error, true)).toBe('not-executed')
  expect(redisError('redis://here', error, 'not-executed').message).toContain('moved to another node')
})

it('a call that was answered until its time was over reports the answer, and another that no server was reached', () => {
  expect(unreachable('h', reply("READONLY You can't write against a read only replica.")).message).toMatch(
    /it is a replica/,
  )
  expect(unreachable('h', reply('WRONGPASS invalid username-password pair')).name).toBe('StoreRefusedError')
  expect(unreachable('h', new Error('connect ECONNREFUSED')).message).toMatch(
    /cannot be reached: connect ECONNREFUSED\. /,
  )
  expect(unreachable('h', undefined).message).toMatch(/no connection could be made in time/)
})

it.each([
  'read ECONNRESET',
  'write EPIPE',
  '80BC:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:rec_layer_s3.c:1601:SSL alert number 116\n',
  '80BC:error:0A000410:SSL routines:ssl3_read_bytes:ssl/tls alert handshake failure:rec_layer_s3.c:1599:SSL alert number 40\n',
])('a connection over TLS that ends with "%s" names the missing certificate, in one line', (said) => {
  for (const { message } of [
    unreachable('rediss://h', new Error(said)),
    redisError('rediss://h', new Error(said), 'not-executed'),
  ]) {
    expect(message).toMatch(/requires a client certificate .*check the store's 'tls'/)
    expect(message).not.toContain('\n')
  }
})

it('an error contains nothing of its command, which may hold a password', () => {
  const error = Object.assign(reply('WRONGPASS invalid username-password pair'), { command: { args: ['secret'] } })
  expect(redisError('redis://here', error, 'refused').cause).toBeUndefined()
})

it('the word of a script refusal is the one that the script gave', () => {
  expect((redisError('redis://here', reply('MILLRACE newer'), 'script-refusal') as ScriptRefusal).word).toBe('newer')
})

const sound = {
  redis_version: '7.0.15',
  role: 'master',
  maxmemory_policy: 'noeviction',
  aof_enabled: '1',
  run_id: 'r1',
}
const infoOf = (fields: object) =>
  redisInfo(
    `# Server\r\n${Object.entries({ ...sound, ...fields })
      .map(([name, value]) => `${name}:${value}\r\n`)
      .join('')}`,
  )

it.each([
  [{ redis_version: '6.2.14' }, /version 6.2.14.*Upgrade/],
  [{ role: 'slave', master_host: 'b', master_port: '6380' }, /replica of b:6380/],
  [{ maxmemory_policy: 'allkeys-lru' }, /CONFIG SET maxmemory-policy noeviction/],
])('a server with %o is refused', (fields, message) => {
  const attempt = () => refuseUnfit('redis://here', 'single', infoOf(fields))
  expect(attempt).toThrow(ConfigError)
  expect(attempt).toThrow(message)
})

it('a sound server is accepted, Valkey too, and a replica if the client looks for the master itself', () => {
  refuseUnfit('redis://here', 'single', infoOf({}))
  refuseUnfit('redis://here', 'single', infoOf({ redis_version: '10.1.0' }))
  refuseUnfit('redis://here', 'single', infoOf({ redis_version: '7.2.4', valkey_version: '8.0.2' }))
  refuseUnfit('redis://here', 'other', infoOf({ role: 'slave' }))
})

it('the error for a call whose connection ended does not mention options of the client', () => {
  const error = new Error(
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option.',
  )
  error.name = 'MaxRetriesPerRequestError'
  expect(redisError('redis://h:1', error, failureOf(error, true)).message).toBe(
    'the connection to the Redis at redis://h:1 was lost before the answer came (the connection ended). Whether the call was carried out is in doubt.',
  )
})
