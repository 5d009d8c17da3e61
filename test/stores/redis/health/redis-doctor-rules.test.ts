import { describe, expect, it } from 'vitest'
import { redisInfo } from '#src/stores/redis/client/redis-server-info.js'
import { globLiteral, userLine } from '#src/stores/redis/health/redis-acl.js'
import {
  isAtLeast,
  judgeClock,
  judgeCluster,
  judgeRights,
  judgeServer,
  type ServerFacts,
} from '#src/stores/redis/health/redis-doctor-rules.js'

const sound = {
  redis_version: '8.6.3',
  maxmemory_policy: 'noeviction',
  used_memory: '1000',
  maxmemory: '10000',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  aof_last_bgrewrite_status: 'ok',
  rdb_last_bgsave_status: 'ok',
  role: 'master',
  connected_slaves: '0',
  connected_clients: '10',
  maxclients: '10000',
}
const usual = {
  appendfsync: 'everysec',
  save: '3600 1',
  'stop-writes-on-bgsave-error': 'yes',
  'min-replicas-to-write': '0',
  'maxmemory-clients': '0',
  timeout: '0',
  'tcp-keepalive': '300',
}

/** What is not as it should be, as `level what: text`; `info` and `settings` differ from those of a sound server. */
function faults(info: object, settings: object | undefined = {}, replicas = 0): string[] {
  const facts: ServerFacts = {
    info: new Map(Object.entries({ ...sound, ...info })),
    settings: settings === undefined ? undefined : new Map(Object.entries({ ...usual, ...settings })),
    replicas,
  }
  return judgeServer(facts)
    .filter(({ level }) => level !== 'ok')
    .map(({ level, what, text }) => `${level} ${what}: ${text}`)
}

describe('the rules for a Redis server', () => {
  it('find no fault in a sound server, nor in Valkey', () => {
    expect(faults({})).toEqual([])
    expect(faults({ redis_version: '7.2.4', valkey_version: '8.0.2' })).toEqual([])
  })

  it.each([
    ['an old version', { redis_version: '6.2.14' }, {}, 0, /^error version: Redis 6\.2\.14 .* Upgrade to Redis 7\.0/],
    ['a policy that evicts', { maxmemory_policy: 'allkeys-lru' }, {}, 0, /^error eviction policy: .* CONFIG SET/],
    ['little memory left', { used_memory: '8000' }, {}, 0, /^warning memory: .*\(80 %\)\. .*StoreFullError/],
    ['no append-only file', { aof_enabled: '0' }, {}, 0, /^warning persistence: .*since its last snapshot/],
    ['no persistence at all', { aof_enabled: '0' }, { save: '' }, 0, /^warning persistence: .*loses every job\. /],
    ['a file that is never forced to disk', {}, { appendfsync: 'no' }, 0, /^warning persistence: .*Set 'everysec'/],
    ['a failed write', { aof_last_write_status: 'err' }, {}, 0, /^error append-only file: .*all writes are refused/],
    ['a failed rewrite', { aof_last_bgrewrite_status: 'err' }, {}, 0, /^warning append-only file: its last rewrite/],
    ['a failed snapshot', { rdb_last_bgsave_status: 'err' }, {}, 0, /^error snapshots: .*stop-writes-on-bgsave-error/],
    [
      'a failed snapshot that stops no writes',
      { rdb_last_bgsave_status: 'err' },
      { 'stop-writes-on-bgsave-error': 'no' },
      0,
      /^warning snapshots: /,
    ],
    ['a replica', { role: 'slave' }, {}, 0, /^error replication: this is a replica/],
    ['fewer replicas than are waited for', { connected_slaves: '1' }, {}, 2, /^error replication: 1 replica .* for 2/],
    ['fewer replicas than it needs', {}, { 'min-replicas-to-write': '1' }, 0, /^error replication: .*all writes/],
    ['few connections left', { connected_clients: '8000' }, {}, 0, /^warning connections: 8000 of 10000/],
    ['a timeout of idle clients', {}, { timeout: '60' }, 0, /^warning connections: .*idle for 60 s/],
    ['no keep-alive', {}, { 'tcp-keepalive': '0' }, 0, /^warning connections: 'tcp-keepalive' is 0/],
    [
      'blocked clients that may be evicted',
      { redis_version: '8.6.2' },
      { 'maxmemory-clients': '5%' },
      0,
      /^warning CVE-2026-23479: /,
    ],
  ] as const)('report %s', (_, info, settings, replicas, text) => {
    expect(faults(info, settings, replicas)).toEqual([expect.stringMatching(text)])
  })

  it('report the uptime of the server, and its highest use of memory', () => {
    const info = redisInfo('uptime_in_seconds:93784\r\nused_memory:1048576\r\nused_memory_peak:3145728\r\n')
    const found = judgeServer({ info, settings: undefined, replicas: 0 })
    expect(found.find(({ what }) => what === 'uptime')).toMatchObject({ level: 'ok', text: 'up for 1d 2h' })
    expect(found.find(({ what }) => what === 'memory')!.text).toMatch(
      /^1\.0 MB in use, at most 3\.0 MB since its start; /,
    )
  })

  it('warn of an unreadable setting only if it matters', () => {
    expect(faults({}, undefined as never)).toEqual([])
    const facts = {
      info: new Map(Object.entries({ ...sound, redis_version: '7.4.0' })),
      settings: undefined,
      replicas: 0,
    }
    expect(judgeServer(facts).find(({ what }) => what === 'CVE-2026-23479')).toMatchObject({
      level: 'warning',
      text: expect.stringMatching(/cannot be read/),
    })
  })

  it('report a clock as off only beyond the time of the trip, and never as a fault', () => {
    expect(judgeClock(4, 5).text).toBe("the server's and this machine's agree")
    expect(judgeClock(-65_000, 5)).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/^the server's is 1m 5s behind/),
    })
  })

  it('report the unserved slots of a cluster and the distribution of shards', () => {
    const info = (ok: number) =>
      redisInfo(`cluster_state:${ok === 16384 ? 'ok' : 'fail'}\r\ncluster_slots_ok:${ok}\r\ncluster_size:3\r\n`)
    expect(judgeCluster({ info: info(16_384), shards: [2, 2, 1] })).toEqual([
      { level: 'ok', what: 'cluster', text: 'state ok, all 16384 slots served by 3 masters' },
      { level: 'ok', what: 'shards', text: '5 on 3 of 3 masters, 2 + 2 + 1' },
    ])
    expect(judgeCluster({ info: info(16_000), shards: [9] }).map(({ level }) => level)).toEqual(['error', 'warning'])
  })

  it('name missing rights, and the rights to grant', () => {
    const rights = [
      { rule: 'hget', words: [], may: true },
      { rule: 'lpop', words: [], may: false },
      { rule: 'lpop', words: [], may: false },
      { rule: 'bzpopmin', words: [], may: undefined },
    ]
    const [denied, missing, line] = judgeRights({ namespace: 'jobs', isCluster: false, rights })

    expect(denied).toMatchObject({ level: 'error', text: expect.stringMatching(/may not run lpop on .*'jobs'/) })
    expect(missing).toMatchObject({ level: 'warning', text: expect.stringMatching(/no command bzpopmin/) })
    expect(line!.text).toContain(userLine('jobs', false))
    expect(userLine('jobs', false)).toMatch(/resetkeys resetchannels -@all ~\{jobs\}\* ~\{jobs:\* &\{jobs:\* \+eval /)
  })

  it('compare versions as numbers, and take a namespace literally', () => {
    expect(['7.0.15', '7.10', '8'].every((version) => isAtLeast(version, '7.0.15'))).toBe(true)
    expect(['7.0.2', '6.99.99'].some((version) => isAtLeast(version, '7.0.15'))).toBe(false)
    expect(globLiteral('a*[b]?\\')).toBe('a\\*\\[b\\]\\?\\\\')
  })
})
