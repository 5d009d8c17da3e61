/**
 * The fsck of a Redis store: checks whether the keys of a namespace are consistent. It only reads, a little at a time,
 * while work goes on.
 */

import { UnknownQueueError } from '../../../core/errors.js'
import { messageOf } from '../../../core/values/describe.js'
import { isQueueName } from '../../../core/values/ids.js'
import type { Finding } from '../../contract/store-health.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import {
  isHistoryKey,
  keyNames,
  keyTypes,
  queuesKey,
  scheduleIndexKeys,
  scheduleKeys,
  scopeKeys,
  workersKey,
} from '../layout/redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisShard } from '../layout/redis-layout.js'
import { runOn } from '../lua/script-kinds.js'
import { checkScripts, scanScript } from './fsck-scripts.js'
import { globLiteral } from './redis-acl.js'
import { unreadable } from './redis-doctor-rules.js'
import { RedisBreaches } from './redis-fsck-findings.js'
import { metaFaults } from './redis-fsck-meta.js'
import { type ThrottleMember, throttleFindings } from './redis-fsck-throttles.js'
import { serversOf } from './redis-servers.js'

/** Keys that are checked in one step instead. */
const unwalked: ReadonlySet<string> = new Set(['calls', 'call-order', 'meta', 'wake', 'ends'])

/** The number of elements in a step. It starts small, because elements may be large, and is bounded to delay no client. */
const firstCount = 10
const mostCount = 100
const mostBytes = 1_048_576
/** The elements of a step that searches the ready list, which is expensive. */
const searchCount = 50
/** The most foreign keys to find. */
const mostForeign = 1_000
const scanCount = 500

/** Throws `UnknownQueueError` for a queue that is not stored. */
export async function checkRedis(client: RedisClient, namespace: string, queue?: string): Promise<Finding[]> {
  const stored = await storedQueues(client, namespace)
  const names = [...stored.keys()].sort()
  if (queue !== undefined && !stored.has(queue)) throw new UnknownQueueError(queue, names)
  const checked = queue === undefined ? names : [queue]
  const findings: Finding[] = []
  for (const name of checked) findings.push(...(await checkQueue(client, namespace, name, stored.get(name)!)))
  const members = checked.flatMap((name) => membersIn(namespace, name, stored.get(name)!))
  findings.push(...(await throttleFindings(client, namespace, members)))
  if (queue === undefined)
    // Rights that only this needs may be missing. The other findings are reported all the same.
    findings.push(
      ...(await foreignKeys(client, namespace).catch((error) => [unreadable('unknown keys', messageOf(error))])),
    )
  if (findings.length === 0) findings.push({ level: 'ok', what: 'queues', text: 'none is stored' })
  return findings
}

async function storedQueues(client: RedisClient, namespace: string): Promise<Map<string, string>> {
  const rows = rowsIn(await client.command('HGETALL', [queuesKey(namespace)]), 2)
  return new Map(rows.map(([name, shards]) => [textIn(name), textIn(shards)]))
}

/** The queue as a member of its throttle, if it has one. */
function membersIn(namespace: string, name: string, stored: string): ThrottleMember[] {
  const layout = layoutIn(stored)
  if (layout?.scope === undefined) return []
  const [shard] = liveShards(queueIn(namespace, name, layout))
  return [[layout.scope, `${shard!.tag}:meta`]]
}

async function checkQueue(client: RedisClient, namespace: string, name: string, stored: string): Promise<Finding[]> {
  const what = `queue ${name}`
  const layout = layoutIn(stored)
  if (!isQueueName(name) || layout === undefined) {
    const text = `'${queuesKey(namespace)}' says that it has '${stored}' shards, which cannot be. Nothing can use it. Remove the field.`
    return [{ level: 'error', what, text }]
  }
  const findings: Finding[] = []
  let jobs = 0
  const queue = queueIn(namespace, name, layout)
  for (const shard of liveShards(queue)) {
    const isNext = queue.next.includes(shard)
    const where = layout.shards === 1 && !isNext ? what : `${what}, ${isNext ? 'new ' : ''}shard ${shard.shard}`
    const checked = await checkShard(client, shard, where)
    findings.push(...checked.findings)
    jobs += checked.jobs
  }
  if (findings.length === 0)
    findings.push({ level: 'ok', what, text: `${jobs === 1 ? '1 job' : `${jobs} jobs`}, everything in its place` })
  return findings
}

async function checkShard(
  client: RedisClient,
  shard: RedisShard,
  what: string,
): Promise<{ readonly findings: Finding[]; readonly jobs: number }> {
  const wrong = unusable(listIn(await runOn(client, shard, checkScripts.types)).map(textIn), shard, what)
  if (wrong.length > 0) return { findings: wrong, jobs: 0 }
  const breaches = new RedisBreaches()
  const [jobs, excess, meta, found] = listIn(await runOn(client, shard, checkScripts.sums))
  addAll(breaches, found!)
  const isUneven = excess !== 0
  const walk = async (key: string, isSearched: boolean) => {
    // The search is binary, so it finds nothing reliably once the order is lost.
    const isDeep = isSearched && !breaches.has('disordered', 'ready-list') && !breaches.has('unreadable', 'ready-list')
    for await (const some of steps(client, shard, key, isDeep)) addAll(breaches, some)
  }
  for (const key of keyNames(shard.kind)) if (!unwalked.has(key)) await walk(key, key === 'jobs' && isUneven)
  // Two errors may cancel out in the sums. So if there is any breach, search the ready list for each job after all.
  if (!isUneven && !breaches.isEmpty) await walk('jobs', true)
  const findings = [...breaches.findings(what), ...metaFaults(meta!, what)]
  if (isUneven && findings.length === 0) findings.push(miscount(numberIn(excess), what))
  return { findings, jobs: numberIn(jobs) }
}

/** The reasons why a shard cannot be checked: no settings, or keys of another type. */
function unusable(types: readonly string[], { tag, kind }: RedisShard, what: string): Finding[] {
  const findings: Finding[] = []
  const names = keyNames(kind)
  for (const [i, key] of names.entries()) {
    const expected = keyTypes[key]
    if (types[i] === 'none' || types[i] === expected) continue
    const text = `'${tag}:${key}' is a ${types[i]}, where a ${expected} belongs. Nobody can use the queue. Rename or delete that key.`
    findings.push({ level: 'error', what, text })
  }
  if (findings.length > 0) return findings
  if (types[names.indexOf('meta')] !== 'none') return []
  const left = names.filter((_, i) => types[i] !== 'none')
  if (left.length === 0)
    return [
      {
        level: 'warning',
        what,
        text: 'it is registered and has nothing stored; the next process that opens it makes it',
      },
    ]
  const text = `'${tag}:meta' is gone, its settings and counters with it, while ${left.join(', ')} are there: fences and sequence numbers would be given again. Restore the data.`
  return [{ level: 'error', what, text }]
}

function miscount(excess: number, what: string): Finding {
  const text = `the number of stale elements in 'ready-list', which 'meta' counts, is ${Math.abs(excess)} too ${excess > 0 ? 'high' : 'low'}. Depths are wrong by as many, and claims may find no jobs or look for some that are not there.`
  return { level: 'error', what, text }
}

/** The breaches of one key of a shard, step by step. */
async function* steps(
  client: RedisClient,
  shard: RedisShard,
  key: string,
  isDeep: boolean,
): AsyncGenerator<Parameters<typeof rowsIn>[0]> {
  let cursor = '0'
  let count = firstCount
  do {
    const reply = listIn(
      await runOn(client, shard, checkScripts.walk, [key, cursor, String(count), isDeep ? '1' : '0']),
    )
    cursor = textIn(reply[0])
    yield reply[2]
    const bytes = numberIn(reply[1])
    if (bytes > mostBytes) count = Math.max(1, Math.floor(count / 4))
    else if (bytes < mostBytes / 4) count = Math.min(isDeep ? searchCount : mostCount, count * 2)
  } while (cursor !== '0')
}

function addAll(breaches: RedisBreaches, found: Parameters<typeof rowsIn>[0]): void {
  for (const row of rowsIn(found, 3)) {
    const [word, key, id] = row.map(textIn)
    breaches.add(word!, key!, id!)
  }
}

/** Unknown keys that begin like the store's keys, on all servers that hold some of the latter. */
async function foreignKeys(client: RedisClient, namespace: string): Promise<Finding[]> {
  const known = async () => {
    const layouts = [...(await storedQueues(client, namespace))].flatMap(([name, stored]) => {
      const layout = layoutIn(stored)
      return layout === undefined ? [] : [{ name, layout }]
    })
    const shards = layouts.flatMap(({ name, layout }) => liveShards(queueIn(namespace, name, layout)))
    const scopes = layouts.flatMap(({ layout: { scope } }) => (scope === undefined ? [] : scopeKeys(namespace, scope)))
    const ours = shards.flatMap(({ kind, tag }) => keyNames(kind).map((key) => `${tag}:${key}`))
    const index = scheduleIndexKeys(namespace)
    const schedules = listIn(await client.command('HKEYS', [index[1]])).flatMap((tag) => scheduleKeys(textIn(tag)))
    const others = [...index, ...schedules, queuesKey(namespace), workersKey(namespace)]
    return { shards, keys: new Set([...ours, ...scopes, ...others]) }
  }
  const { shards, keys } = await known()
  const foreign = new Set<string>()
  const servers = await serversOf(client, [...shards.map((shard) => shard.keys[0]!), queuesKey(namespace)])
  for (const server of servers)
    for (const pattern of [`{${globLiteral(namespace)}:*`, `{${globLiteral(namespace)}}*`])
      for await (const key of scanned(client, server.keys[0]!, pattern))
        if (!keys.has(key) && !isHistoryKey(key) && foreign.size <= mostForeign) foreign.add(key)
  // A queue may have been opened meanwhile.
  const later = foreign.size > 0 ? (await known()).keys : keys
  const left = [...foreign].filter((key) => !later.has(key)).sort()
  if (left.length === 0) return []
  const shown = left.slice(0, 5).join(', ')
  const more = left.length > 5 ? ` and ${left.length > mostForeign ? 'many' : left.length - 5} more` : ''
  const text = `not ours, or of queues that are not registered: ${shown}${more}. Nobody looks at them. Give other software another prefix; delete what is left over.`
  return [{ level: 'warning', what: 'unknown keys', text }]
}

async function* scanned(client: RedisClient, at: string, pattern: string): AsyncGenerator<string> {
  let cursor = '0'
  do {
    const [next, keys] = listIn(await client.run(scanScript, [at], [cursor, pattern, String(scanCount)]))
    cursor = textIn(next)
    for (const key of listIn(keys)) yield textIn(key)
  } while (cursor !== '0')
}
