/**
 * Findings about queues, for `doctor`: their shards and their throttles, if they differ from the configuration, and the
 * queues that stand still.
 */

import { explainedQueue, unknownTasks, workersOf } from '../../../client/jobs/wait-facts.js'
import type { WaitReason } from '../../../core/job/wait-reason.js'
import type { Queue } from '../../../core/queue/queue.js'
import { sameRules, sameThrottle, type Throttle, throttleText } from '../../../core/queue/throttle.js'
import { formatDuration } from '../../../core/values/duration.js'
import type { Mill } from '../../../mill/mill.js'
import type { QueueDepth } from '../../../stores/contract/queue-depth.js'
import type { StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { FsckFinding } from '../../../stores/contract/store-health.js'
import { error, ok, warning } from '../../../stores/rules/findings.js'
import { silenceText } from '../../terminal/throttle-lines.js'
import { flagsFor } from '../../terminal/throttle-text.js'

/** The queues whose reshard is unfinished, and those that have another number of shards. The stored number counts. */
export function shardFindings(declared: ReadonlyMap<string, Queue>, stored: readonly StoredQueue[]): FsckFinding[] {
  return stored.flatMap((queue) => {
    if (queue.resharding !== undefined) return [unfinished(queue.name, queue.resharding)]
    const asked = declared.get(queue.name)?.shards
    return asked !== undefined && differs(queue, asked) ? [findingOf(queue, asked)] : []
  })
}

/**
 * Whether the configuration asks for another number of shards than is stored. A plain queue has one shard if its store
 * does not spread queues.
 */
export function differs({ kind, shards }: StoredQueue, asked: number): boolean {
  return asked !== shards && (kind === 'ordered' || shards > 1)
}

function unfinished(name: string, shards: number): FsckFinding {
  const text = `the reshard of queue '${name}' to ${counted(shards)} is unfinished: none of its jobs starts until it ends. If nobody runs it now, \`millrace queues reshard ${name} ${shards}\` goes on with it.`
  return warning('shards', text)
}

function findingOf({ name, kind, shards }: StoredQueue, asked: number): FsckFinding {
  const found = `queue '${name}' has ${counted(shards)}, but ${asked} ${asked === 1 ? 'is' : 'are'} configured: the stored number counts.`
  const change = `set \`shards: ${shards}\` in your configuration`
  return warning(
    'shards',
    kind === 'ordered'
      ? `${found} If it was resharded on purpose, ${change}; if the configured number is the one you want, run \`millrace queues reshard ${name} ${asked}\`.`
      : `${found} Plain queues are not resharded: ${change}.`,
  )
}

function counted(shards: number): string {
  return shards === 1 ? '1 shard' : `${shards} shards`
}

type Declared = ReadonlyMap<string, { readonly throttle: Throttle | undefined }>

/** The conflicts because of which every call of a mill with this configuration fails, as `throttle-conflict`. */
export function throttleFindings(declared: Declared, stored: readonly StoredQueue[]): FsckFinding[] {
  const found = new Map(stored.map((queue) => [queue.name, queue.throttle]))
  const scopes = new Map(stored.flatMap(({ throttle }) => (throttle === undefined ? [] : [[throttle.scope, throttle]])))
  const conflicts = new Map<string, Conflict & { readonly queues: string[] }>()
  for (const [name, { throttle: asked }] of declared) {
    const other = asked && (found.get(name) ?? scopes.get(asked.scope))
    if (asked === undefined || other === undefined || sameThrottle(other, asked)) continue
    // Queues that share a throttle share its finding.
    const key = `${other.scope}: ${throttleText('', asked)}`
    const known = conflicts.get(key)
    if (known === undefined) conflicts.set(key, { queues: [name], stored: other, asked })
    else known.queues.push(name)
  }
  return [...conflicts.values()].map(conflictFinding)
}

/**
 * The throttles that start nothing because the store may have forgotten earlier starts. Of queues that share one, only
 * one is named.
 */
export async function silentThrottles(mill: Mill, stored: readonly StoredQueue[]): Promise<FsckFinding[]> {
  const firstOfScope = new Map<string, string>()
  for (const { name, throttle } of stored)
    if (throttle !== undefined && mill.queues.has(name) && !firstOfScope.has(throttle.scope))
      firstOfScope.set(throttle.scope, name)
  const states = await Promise.all([...firstOfScope.values()].map((name) => mill.queue(name).throttle.get()))
  return states.flatMap((state) =>
    state === undefined || state.quietForMs === 0
      ? []
      : [warning('throttle', `the throttle of ${namesOf(state.queues)} is ${silenceText(state.quietForMs)}.`)],
  )
}

/** Within this time every worker notices a ready job, whatever it missed. */
const stillAfterMs = 5_000

/**
 * The queues whose ready jobs nobody begins, and why: until somebody acts, or because a limit stops all of them; and those whose
 * jobs are put back, as no worker knows their task.
 */
export async function standstills(mill: Mill, stored: readonly StoredQueue[]): Promise<FsckFinding[]> {
  const store = await mill.adminParts.look()
  if (store.records === undefined || stored.length === 0) return []
  const { now, depths } = await store.depth(stored.map(({ name }) => name))
  const found = await Promise.all(
    depths.map(async (depth): Promise<FsckFinding[]> => {
      const { queue, ready, lagMs, scheduled } = depth
      const reasons = ready > 0 && lagMs >= stillAfterMs ? await explainedQueue(store, queue, now) : []
      // The finding about the head says it already.
      const isTold = scheduled === 0 || reasons.some(({ why }) => why === 'no-task')
      const putBack = isTold ? [] : [...(await unknownTasks(store, queue, await workersOf(store, queue))).values()]
      return [...headFindings(depth, reasons), ...putBack.map((all) => putBackOf(queue, all))]
    }),
  )
  return found.flat()
}

/** The reasons why the first ready job of a queue waits, and with it all others. */
function headFindings({ queue, ready, running, lagMs }: QueueDepth, reasons: readonly WaitReason[]): FsckFinding[] {
  const reason = reasons.find((one) => one.standing && one.why !== 'draining')
  const text = (why: string) =>
    `${ready === 1 ? '1 job waits' : `${ready} jobs wait`} in queue '${queue}', the first for ${formatDuration(lagMs)}: ${why}.`
  if (reason !== undefined) return [warning('queue', text(reason.text))]
  const limit = running === 0 ? reasons.find(({ why }) => limits.includes(why)) : undefined
  return limit === undefined ? [] : [ok('queue', text(limit.text))]
}

function putBackOf(queue: string, reasons: readonly WaitReason[]): FsckFinding {
  const who = reasons.length === 1 ? '1 job is' : `${reasons.length} jobs are`
  return warning('queue', `${who} put back again and again in queue '${queue}': ${reasons[0]!.text}.`)
}

/** Reasons that end by themselves. */
const limits: readonly WaitReason['why'][] = ['held', 'throttled', 'suspect']

interface Conflict {
  readonly queues: readonly string[]
  readonly stored: Throttle
  readonly asked: Throttle
}

function conflictFinding({ queues, stored, asked }: Conflict): FsckFinding {
  const [first] = queues as readonly [string]
  const text = `the throttle of ${namesOf(queues)} is stored as ${throttleText(first, stored)}, and configured as ${throttleText(first, asked)}: every call of a mill that is so configured fails.`
  return error('throttle', `${text} ${remedy(first, stored, asked)}`)
}

/** The rules can be set; scope and `by` are fixed. */
function remedy(name: string, stored: Throttle, asked: Throttle): string {
  const change = 'write the stored one into your configuration'
  const isOther = stored.by !== asked.by || (stored.eachGroup === undefined) !== (asked.eachGroup === undefined)
  if (stored.scope !== asked.scope || isOther)
    return `Scope and \`by\` are fixed at first use: ${change}, or give the queue another name.`
  const isOfGroups = sameRules(stored.rules, asked.rules)
  const given = flagsFor(isOfGroups ? asked.eachGroup! : asked.rules)
  const flags = given && (isOfGroups ? `${given} --by group` : given)
  const set =
    flags === undefined
      ? 'set the other by the `throttle` of the queue'
      : `run \`millrace queues throttle ${name} ${flags}\``
  return `${change.replace('w', 'W')}, or ${set}.`
}

function namesOf(queues: readonly string[]): string {
  return `${queues.length === 1 ? 'queue' : 'queues'} ${queues.map((name) => `'${name}'`).join(', ')}`
}
