/** The throttles in an fsck of a Redis store: whether what is stored of each can be read. It only reads. */

import { isRulesText } from '../../../core/queue/throttle.js'
import type { Finding } from '../../contract/store-health.js'
import type { RedisClient } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import { scopeKeys, scopeKeyTypes } from '../layout/redis-keys.js'

/** A member of a throttle: the scope, and the `meta` of a shard of the queue. */
export type ThrottleMember = readonly [scope: string, meta: string]

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
export async function throttleFindings(
  client: RedisClient,
  namespace: string,
  members: readonly ThrottleMember[],
): Promise<Finding[]> {
  // A queue is registered, then joins its throttle, and then gets its `meta`. Before that its throttle may not be there.
  const made = await Promise.all(members.map(async ([, meta]) => numberIn(await client.command('EXISTS', [meta])) > 0))
  const findings: Finding[] = []
  for (const scope of new Set(members.flatMap(([scope], i) => (made[i] ? [scope] : [])))) {
    const keys = scopeKeys(namespace, scope)
    for (const [key, wrong] of await wrongKeys(client, keys)) {
      const text = `'${key}' ${wrong}. Its queues stand still. Stop their workers, delete ${keys.join(', ')}, and start them anew: they write the throttle down as they are configured, and what started before that is not counted.`
      findings.push({ level: 'error', what: `throttle ${scope}`, text })
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
  let cursor = '0'
  do {
    const [next, elements] = listIn(await client.command(command, [key, cursor, 'COUNT', stepCount]))
    const list = listIn(elements).map(bytesIn)
    for (let i = 0; i < list.length; i += 2) if (!isSound(list[i]!, list[i + 1]!)) wrong += 1
    cursor = textIn(next)
  } while (cursor !== '0')
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
