/**
 * The fsck of a Redis store: checks whether the keys of a namespace are consistent: those of each shard, then those of
 * throttles, then unknown ones. It only reads, a little at a time, while work goes on.
 */

import { hasCode, UnknownQueueError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { isRulesText } from '../../../core/queue/throttle.js'
import { isQueueName } from '../../../core/values/ids.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { error, foundIn, inPlace, warning } from '../../rules/findings.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn, walkOf } from '../client/redis-reply.js'
import { runOn } from '../lua/script-kinds.js'
import {
  isHistoryKey,
  joinIndexKeys,
  keyNames,
  keyTypes,
  queuesKey,
  scheduleIndexKeys,
  scheduleKeys,
  scopeKeys,
  scopeKeyTypes,
  versionKey,
  workersKey,
} from '../redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisQueue, type RedisShard } from '../redis-layout.js'
import { bringUpToDate } from '../shards/redis-version.js'
import { checkScripts, scanScript } from './fsck-scripts.js'
import { globLiteral } from './redis-acl.js'
import { unreadable } from './redis-doctor-rules.js'
import { RedisBreaches } from './redis-fsck-findings.js'
import { RedisJoinFsck } from './redis-join-fsck.js'
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

/** Throws `UnknownQueueError` for a queue that is not stored, and `StoreVersionError`. */
export async function checkRedis(client: RedisClient, namespace: string, queue?: string): Promise<FsckFinding[]> {
  await bringUpToDate(client, namespace)
  const stored = await storedQueues(client, namespace)
  const names = [...stored.keys()].sort()
  if (queue !== undefined && !stored.has(queue)) throw new UnknownQueueError(queue, names)
  const checked = queue === undefined ? names : [queue]
  const findings: FsckFinding[] = []
  const joins = new RedisJoinFsck(client, namespace, plainQueues(namespace, stored), false)
  for (const name of checked) findings.push(...(await checkQueue(client, namespace, name, stored.get(name)!, joins)))
  const members = checked.flatMap((name) => membersIn(namespace, name, stored.get(name)!))
  findings.push(...(await throttleFindings(client, namespace, members)))
  if (queue === undefined)
    // Rights that only this needs may be missing. The other findings are reported all the same.
    findings.push(
      ...(await foreignKeys(client, namespace).catch((error) => [unreadable('unknown keys', messageOf(error))])),
    )
  return foundIn(findings)
}

async function storedQueues(client: RedisClient, namespace: string): Promise<Map<string, string>> {
  const rows = rowsIn(await client.command('HGETALL', [queuesKey(namespace)]), 2)
  return new Map(rows.map(([name, shards]) => [textIn(name), textIn(shards)]))
}

/** The plain queues whose layout can be read, by name. */
export function plainQueues(namespace: string, stored: ReadonlyMap<string, string>): Map<string, RedisQueue> {
  const found = [...stored].flatMap(([name, text]) => {
    const layout = layoutIn(text)
    return layout?.kind === 'plain' ? [[name, queueIn(namespace, name, layout)] as const] : []
  })
  return new Map(found)
}

function unlessCorrupt(error: unknown): FsckFinding[] {
  if (hasCode(error, 'store-corrupt')) return []
  throw error
}

/** The queue as a member of its throttle, if it has one. */
function membersIn(namespace: string, name: string, stored: string): ThrottleMember[] {
  const layout = layoutIn(stored)
  if (layout?.scope === undefined) return []
  const [shard] = liveShards(queueIn(namespace, name, layout))
  return [[layout.scope, `${shard!.tag}:meta`]]
}

async function checkQueue(
  client: RedisClient,
  namespace: string,
  name: string,
  stored: string,
  joins: RedisJoinFsck,
): Promise<FsckFinding[]> {
  const what = `queue ${name}`
  const layout = layoutIn(stored)
  if (!isQueueName(name) || layout === undefined) {
    const text = `'${queuesKey(namespace)}' says that it has '${stored}' shards, which cannot be. Nothing can use it. Remove the field.`
    return [error(what, text)]
  }
  const findings: FsckFinding[] = []
  let jobs = 0
  const queue = queueIn(namespace, name, layout)
  for (const shard of liveShards(queue)) {
    const isNext = queue.next.includes(shard)
    const where = layout.shards === 1 && !isNext ? what : `${what}, ${isNext ? 'new ' : ''}shard ${shard.shard}`
    const checked = await checkShard(client, shard, where)
    findings.push(...checked.findings)
    jobs += checked.jobs
  }
  // What is wrong with its keys was found above.
  findings.push(...(await joins.findings(name).catch(unlessCorrupt)))
  return findings.length > 0 ? findings : [inPlace(what, jobs)]
}

async function checkShard(
  client: RedisClient,
  shard: RedisShard,
  what: string,
): Promise<{ readonly findings: FsckFinding[]; readonly jobs: number }> {
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
function unusable(types: readonly string[], { tag, kind }: RedisShard, what: string): FsckFinding[] {
  const findings: FsckFinding[] = []
  const names = keyNames(kind)
  for (const [i, key] of names.entries()) {
    const expected = keyTypes[key]
    if (types[i] === 'none' || types[i] === expected) continue
    const text = `'${tag}:${key}' is a ${types[i]}, where a ${expected} belongs. Nobody can use the queue. Rename or delete that key.`
    findings.push(error(what, text))
  }
  if (findings.length > 0) return findings
  if (types[names.indexOf('meta')] !== 'none') return []
  const left = names.filter((_, i) => types[i] !== 'none')
  if (left.length === 0)
    return [warning(what, 'it is registered and has nothing stored; the next process that opens it makes it')]
  const text = `'${tag}:meta' is gone, its settings and counters with it, while ${left.join(', ')} are there: fences and sequence numbers would be given again. Restore the data.`
  return [error(what, text)]
}

function miscount(excess: number, what: string): FsckFinding {
  const text = `the number of stale elements in 'ready-list', which 'meta' counts, is ${Math.abs(excess)} too ${excess > 0 ? 'high' : 'low'}. Depths are wrong by as many, and claims may find no jobs or look for some that are not there.`
  return error(what, text)
}

/** The breaches of one key of a shard, step by step. */
async function* steps(
  client: RedisClient,
  shard: RedisShard,
  key: string,
  isDeep: boolean,
): AsyncGenerator<Parameters<typeof rowsIn>[0]> {
  let count = firstCount
  const step = (cursor: string) =>
    runOn(client, shard, checkScripts.walk, [key, cursor, String(count), isDeep ? '1' : '0'])
  for await (const [read, found] of walkOf(step)) {
    yield found
    const bytes = numberIn(read)
    if (bytes > mostBytes) count = Math.max(1, Math.floor(count / 4))
    else if (bytes < mostBytes / 4) count = Math.min(isDeep ? searchCount : mostCount, count * 2)
  }
}

function addAll(breaches: RedisBreaches, found: Parameters<typeof rowsIn>[0]): void {
  for (const row of rowsIn(found, 3)) {
    const [word, key, id] = row.map(textIn)
    breaches.add(word!, key!, id!)
  }
}

/** Unknown keys that begin like the store's keys, on all servers that hold some of the latter. */
async function foreignKeys(client: RedisClient, namespace: string): Promise<FsckFinding[]> {
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
    const joins = joinIndexKeys(namespace)
    const others = [
      ...index,
      ...schedules,
      ...joins,
      queuesKey(namespace),
      versionKey(namespace),
      workersKey(namespace),
    ]
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
  const text = `not ours, or of queues that are not registered: ${shown}${more}. Nothing reads them. Give other software another prefix; delete what is left over.`
  return [warning('unknown keys', text)]
}

async function* scanned(client: RedisClient, at: string, pattern: string): AsyncGenerator<string> {
  const step = (cursor: string) => client.run(scanScript, [at], [cursor, pattern, String(scanCount)])
  for await (const [keys] of walkOf(step)) for (const key of listIn(keys)) yield textIn(key)
}

const counter = /^\d{1,16}$/

/** The forms of the fields that every `meta` has, and of those that it may have. */
const required: Readonly<Record<string, RegExp>> = {
  kind: /^(?:plain|ordered)$/,
  order: /^(?:fifo|lifo)$/,
  maxCrashes: /^\d{1,9}$/,
  seq: counter,
  stamp: counter,
  fence: counter,
  stale: counter,
  processed: counter,
  failed: counter,
  crashed: counter,
}

const optional: Readonly<Record<string, RegExp>> = {
  maxPending: counter,
  resultsCount: counter,
  deadAge: counter,
  deadCount: counter,
  exclusive: /^(?:id|shard)$/,
  merge: /^(?:all|distinct|latest)$/,
  bounds: /^\d*,\d*,\d*$/,
  resharding: /^(?:1|new)$/,
  closed: /^1$/,
  paused: /^1$/,
  draining: /^1$/,
  limited: /^1$/,
  heldUntil: counter,
  pausedGroups: /^1$/,
  shutUntil: counter,
  maxRunning: counter,
  perGroup: counter,
  limits: /^\{.*\}$/,
  limitsTurn: counter,
  turn: counter,
  scope: /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/,
  by: /^(?:queue|group)$/,
  leadAt: counter,
  suspectLeadAt: counter,
  run: /^[0-9a-f]+(?: \d+)?$/,
  sparesUntil: counter,
  seenAt: counter,
  lostAt: counter,
  expired: counter,
  deaths: counter,
  expiringAt: counter,
  lost: counter,
  waited: /^1$/,
}

/** `meta`: fields and values, as HGETALL returns them. */
function metaFaults(meta: RedisReply, what: string): FsckFinding[] {
  const values = new Map(rowsIn(meta, 2).map(([field, value]) => [textIn(field), textIn(value)]))
  const wrong = Object.entries({ ...required, ...optional }).filter(([field, form]) => {
    const value = values.get(field)
    return value === undefined ? required[field] !== undefined : !form.test(value)
  })
  const faults = wrong.map(([field]) => (values.has(field) ? `${field} '${values.get(field)}'` : `no ${field}`))
  for (const [field, at] of [
    ['lead', 'leadAt'],
    ['suspectLead', 'suspectLeadAt'],
  ] as const)
    if (values.has(field) !== values.has(at)) faults.push(`one of ${field} and ${at} alone`)
  const lost = Number(values.get('lost') ?? 0)
  if (faults.length === 0) return lost > 0 ? [lostFinding(lost, what)] : []
  const text = `'meta' holds what cannot be: ${faults.join(', ')}. Calls on this queue fail or give wrong answers.`
  return [error(what, text)]
}

function lostFinding(lost: number, what: string): FsckFinding {
  const text = `claims have passed over ${lost} ${lost === 1 ? 'job' : 'jobs'} whose record was gone, as after a torn append-only file. They did not run; enqueue them again. \`fsck --repair\` begins the count anew.`
  return warning(what, text)
}

/** A member of a throttle: the scope, and the `meta` of a shard of the queue. */
type ThrottleMember = readonly [scope: string, meta: string]

/** The elements of a step. */
const stepCount = '100'

/** The numbers in `rules`; each may be missing. */
const numbers = ['version', 'members', 'recoveries', 'recoveredAt', 'shift', 'lastAt', 'quietUntil']

const numeric = /^-?\d+(?:\.\d+)?$/

/** The bytes of a counter (`throttle-lua.ts`): its head, and those of each rule. */
const [headBytes, ruleBytes] = [18, 10]

/** The bytes behind the subject of a start: NUL, instant, number of starts. */
const startBytes = 11

/** The findings on the throttles of these queues; empty if all can be read. */
async function throttleFindings(
  client: RedisClient,
  namespace: string,
  members: readonly ThrottleMember[],
): Promise<FsckFinding[]> {
  // A queue is registered, then joins its throttle, and then gets its `meta`. Before that its throttle may not be there.
  const made = await Promise.all(members.map(async ([, meta]) => numberIn(await client.command('EXISTS', [meta])) > 0))
  const findings: FsckFinding[] = []
  for (const scope of new Set(members.flatMap(([scope], i) => (made[i] ? [scope] : [])))) {
    const keys = scopeKeys(namespace, scope)
    for (const [key, wrong] of await wrongKeys(client, keys)) {
      const text = `'${key}' ${wrong}. Its queues stand still. Stop their workers, delete ${keys.join(', ')}, and start them anew: they write the throttle down as they are configured, and what started before that is not counted.`
      findings.push(error(`throttle ${scope}`, text))
    }
  }
  return findings
}

/** The keys that cannot be read, each with what is wrong with it. */
async function wrongKeys(client: RedisClient, keys: readonly string[]): Promise<(readonly [string, string])[]> {
  const expected = Object.values(scopeKeyTypes)
  const types = await Promise.all(keys.map(async (key) => textIn(await client.command('TYPE', [key]))))
  const foreign = keys.flatMap((key, i) =>
    types[i] === 'none' || types[i] === expected[i]
      ? []
      : [[key, `is a ${types[i]}, where a ${expected[i]} belongs`] as const],
  )
  if (foreign.length > 0) return foreign
  const [rules, starts, counters] = keys as [string, string, string]
  const told = [
    [rules, (await wrongRules(client, rules)) ?? (await wrongElements(client, 'HSCAN', rules, isRate))],
    [counters, await wrongElements(client, 'HSCAN', counters, (_, value) => isCounter(value))],
    [starts, await wrongElements(client, 'ZSCAN', starts, isStart)],
  ] as const
  return told.flatMap(([key, wrong]) => (wrong === undefined ? [] : [[key, wrong] as const]))
}

async function wrongRules(client: RedisClient, key: string): Promise<string | undefined> {
  const [by, rules, ...rest] = listIn(await client.command('HMGET', [key, 'by', 'rules', ...numbers]))
  if (by == null || rules == null) return 'is not there, or not whole'
  if (!/^(?:queue|group)$/.test(textIn(by)) || !isRulesText(textIn(rules)))
    return `holds no rules of a throttle ('by' is '${textIn(by)}', 'rules' is '${textIn(rules)}')`
  const wrong = numbers.flatMap((name, i) =>
    rest[i] == null || numeric.test(textIn(rest[i])) ? [] : [`'${name}' is '${textIn(rest[i])}'`],
  )
  return wrong.length === 0 ? undefined : `holds what is no number: ${wrong.join(', ')}`
}

/** Walks a hash or a sorted set in steps; `isSound` judges each of its elements. */
async function wrongElements(
  client: RedisClient,
  command: 'HSCAN' | 'ZSCAN',
  key: string,
  isSound: (element: Buffer, value: Buffer) => boolean,
): Promise<string | undefined> {
  let wrong = 0
  for await (const [elements] of walkOf((cursor) => client.command(command, [key, cursor, 'COUNT', stepCount]))) {
    const list = listIn(elements).map(bytesIn)
    for (let i = 0; i < list.length; i += 2) if (!isSound(list[i]!, list[i + 1]!)) wrong += 1
  }
  return wrong === 0 ? undefined : `holds ${wrong === 1 ? 'an element' : `${wrong} elements`} that cannot be read`
}

/** The rules of each group, those that a group has for itself, and any other field. */
function isRate(name: Buffer, value: Buffer): boolean {
  return !/^(?:rate |eachGroup$)/.test(textIn(name)) || isRulesText(textIn(value))
}

function isCounter(value: Buffer): boolean {
  const rules = (value.length - headBytes) / ruleBytes
  return rules >= 1 && Number.isInteger(rules)
}

function isStart(element: Buffer): boolean {
  return element.length >= startBytes && element[element.length - startBytes] === 0
}
