/** The Redis store's canonical state, read from its keys one by one and not by its scripts. */

import { resultDropped } from '../../stores/contract/job-records.js'
import type { RedisClient } from '../../stores/redis/client/redis-client.js'
import { listIn, textIn } from '../../stores/redis/client/redis-reply.js'
import {
  type JobPast,
  readBeat,
  readClaim,
  readFields,
  readMemory,
  readPast,
  readResult,
  readWait,
} from '../../stores/redis/format/redis-job.js'
import { readHeader } from '../../stores/redis/format/redis-ordered-job.js'
import { ownValue, readInHand, readPayload } from '../../stores/redis/format/redis-payload.js'
import { readNumber, readRecord } from '../../stores/redis/format/redis-record.js'
import { stepIn } from '../../stores/redis/records/redis-steps.js'
import type { ShardKey } from '../../stores/redis/redis-keys.js'
import type { RedisQueue } from '../../stores/redis/redis-layout.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { turnStep } from '../../stores/rules/fair-share.js'
import type { Lead } from '../../stores/rules/wake-lead.js'
import {
  byId,
  type CanonicalEntry,
  type CanonicalJob,
  type CanonicalQueue,
  type CanonicalRemains,
  type CanonicalState,
  canonicalContent,
  canonicalEntry,
  canonicalLead,
  canonicalPayload,
  canonicalResult,
  canonicalStep,
  canonicalTurn,
  inMs,
  runningOf,
} from './canonical-state.js'
import { redisLanes, redisThrottleStates } from './redis-limits-state.js'

/** A shard's hashes, unchanged. */
interface Shard {
  readonly meta: ReadonlyMap<string, string>
  readonly jobs: ReadonlyMap<string, Buffer>
  readonly past: ReadonlyMap<string, Buffer>
  readonly claims: ReadonlyMap<string, Buffer>
  readonly notes: ReadonlyMap<string, Buffer>
  readonly ended: ReadonlyMap<string, Buffer>
  readonly calls: ReadonlyMap<string, Buffer>
  readonly steps: ReadonlyMap<string, Buffer>
  /** By member, as the bytes are. */
  readonly leases: ReadonlyMap<string, number>
  /** By sequence and id: for kept results, and for waiting jobs. */
  readonly expiry: ReadonlyMap<string, number>
  /** By group. */
  readonly turns: readonly string[]
  readonly shut: ReadonlyMap<string, number>
  readonly holds: ReadonlyMap<string, number>
}

export async function redisState(
  client: RedisClient,
  namespace: string,
  queues: readonly RedisQueue[],
  now: number,
): Promise<CanonicalState> {
  const states = await Promise.all(
    queues.flatMap((queue) =>
      // The first shard speaks for a plain queue of several shards; for one being resharded, its present shards.
      (queue.layout.kind === 'plain' ? queue.shards.slice(0, 1) : queue.shards).map(async (shard) => {
        const read = await readShard(client, shard.tag)
        return shard.kind === 'plain'
          ? canonicalQueue(queue.name, null, read, now)
          : canonicalQueue(queue.name, shard.shard, read, now, await readPayloads(client, shard.tag))
      }),
    ),
  )
  return {
    now,
    queues: states.sort((a, b) => compareBytes(a.name, b.name) || (a.shard ?? 0) - (b.shard ?? 0)),
    throttles: await redisThrottleStates(client, namespace, queues, now),
  }
}

async function readHash(client: RedisClient, tag: string, key: ShardKey): Promise<Map<string, Buffer>> {
  const flat = listIn(await client.command('HGETALL', [`${tag}:${key}`])) as Buffer[]
  return new Map(flat.flatMap((field, i) => (i % 2 === 0 ? [[field.toString(), flat[i + 1]!] as const] : [])))
}

async function readShard(client: RedisClient, tag: string): Promise<Shard> {
  const hash = (key: ShardKey) => readHash(client, tag, key)
  const scores = async (key: ShardKey) => {
    const flat = listIn(await client.command('ZRANGE', [`${tag}:${key}`, '0', '-1', 'WITHSCORES'])) as Buffer[]
    return new Map(
      flat.flatMap((member, i) =>
        i % 2 === 0 ? [[member.toString('latin1'), Number(textIn(flat[i + 1]))] as const] : [],
      ),
    )
  }
  const byGroup = async (key: ShardKey) =>
    new Map([...(await scores(key))].map(([group, at]) => [Buffer.from(group, 'latin1').toString(), at]))
  const [meta, jobs, past, claims, notes, ended, calls, steps, leases, expiry, expiring, turns, shut, holds] =
    await Promise.all([
      hash('meta'),
      hash('jobs'),
      hash('history'),
      hash('claims'),
      hash('notes'),
      hash('ended'),
      hash('calls'),
      hash('steps'),
      scores('leases'),
      scores('expiry'),
      scores('expiring'),
      byGroup('turns'),
      byGroup('shut'),
      byGroup('holds'),
    ])
  return {
    meta: new Map([...meta].map(([field, value]) => [field, value.toString()])),
    jobs,
    past,
    claims,
    notes,
    ended,
    calls,
    steps,
    leases,
    expiry: new Map([...expiry, ...expiring]),
    turns: [...turns].map(([group, turn]) => canonicalTurn(group, turn % turnStep)),
    shut,
    holds,
  }
}

function canonicalQueue(
  name: string,
  number: number | null,
  shard: Shard,
  now: number,
  payloads?: ShardPayloads,
): CanonicalQueue {
  const { meta } = shard
  const count = (field: string) => Number(meta.get(field) ?? 0)
  const bound = (field: string) => (meta.has(field) ? Number(meta.get(field)) : null)
  const live = [...shard.jobs].map(([id, record]) => canonicalJob(id, record, shard, now, payloads))
  const jobs = [...live, ...(payloads === undefined ? [] : canonicalDead(payloads))]
  const many = live.filter(({ id, state }) => state !== 'running' && payloads?.waiting.has(id)).length
  if (count('many') !== many) throw new Error(`'many' of ${name} is ${count('many')}, and should be ${many}`)
  const deadAgeMs = bound('deadAge')
  const isHidden = ({ state, finishedAt, expiresAt }: CanonicalJob) =>
    (state === 'completed' && expiresAt !== null && expiresAt <= now) ||
    (state === 'dead' && deadAgeMs !== null && finishedAt! + deadAgeMs <= now)
  const remembered = [...shard.ended]
    .map(([id, memory]) => ({ id, ...readMemory(memory) }))
    .map(({ seq: _, reason, hasRemains, ...known }) => ({
      ...known,
      reason: reason ?? null,
      remains: hasRemains ? canonicalRemains(known.id, shard.notes) : null,
    }))
  const hiddenMemories = jobs
    .filter((job) => job.state === 'completed' && isHidden(job))
    .map((job) => ({
      id: job.id,
      task: job.task,
      state: 'completed' as const,
      priority: job.priority,
      attempt: job.attempt,
      crashes: job.crashes,
      createdAt: job.createdAt,
      runAt: Math.floor(job.stamp / 1_000),
      finishedAt: job.finishedAt!,
      until: job.finishedAt! + job.rememberMs,
      reason: job.result === null || job.result.payload === null ? null : resultDropped,
      remains: null,
    }))
  refuseStrayNotes(name, shard)
  refuseStraySteps(name, shard)
  return {
    name,
    shard: number,
    kind: meta.get('kind') as CanonicalQueue['kind'],
    order: meta.get('order') as CanonicalQueue['order'],
    exclusive: (meta.get('exclusive') ?? 'id') as CanonicalQueue['exclusive'],
    merge: (meta.get('merge') ?? 'all') as CanonicalQueue['merge'],
    maxPending: bound('maxPending'),
    maxCrashes: count('maxCrashes'),
    resultsCount: bound('resultsCount'),
    deadAgeMs,
    deadCount: bound('deadCount'),
    maxRunning: runningOf(bound('maxRunning'), bound('perGroup')),
    throttle: meta.get('scope') ?? null,
    heldInMs: inMs(count('heldUntil'), now),
    shutInMs: inMs(count('shutUntil'), now),
    sparesInMs: inMs(count('sparesUntil'), now),
    lanes: redisLanes(shard, now),
    paused: meta.get('paused') === '1',
    draining: meta.get('draining') === '1',
    processed: count('processed'),
    failed: count('failed'),
    crashed: count('crashed'),
    expired: count('expired'),
    lead: canonicalLead(leadOf(meta.get('lead'), bound('leadAt')), now),
    suspectLead: canonicalLead(leadOf(meta.get('suspectLead'), bound('suspectLeadAt')), now),
    lastStamp: count('stamp'),
    lastFence: count('fence'),
    lastScore: count('score'),
    jobs: byId(jobs.filter((job) => !isHidden(job))),
    remembered: byId([...remembered, ...hiddenMemories].filter(({ until }) => until > now)),
    calls: byId([...shard.calls].flatMap(callsIn).filter(({ at }) => at + 60_000 > now)),
  }
}

/** The calls of one trip: see `calls-lua`. The steps of a graph are remembered each by itself. */
function callsIn([first, entry]: [string, Buffer]): { id: string; at: number }[] {
  const [, ...ids] = entry.toString('utf8', 8).split('\0')
  const at = entry.readUIntBE(0, 6)
  return [first, ...ids.slice(1)].map((id) => ({ id: id.replace(/ (?:first|joins|members)$/, ''), at }))
}

function canonicalJob(id: string, bytes: Buffer, shard: Shard, now: number, payloads?: ShardPayloads): CanonicalJob {
  const record = readRecord(bytes)
  const pastBytes = shard.past.get(id)
  const past: JobPast =
    pastBytes === undefined
      ? {
          state: String.fromCharCode(bytes[0]! | 32),
          updatedAt: record.createdAt,
          stamp: record.stamp,
          attempt: 1,
          crashes: 0,
        }
      : readPast(pastBytes)
  const claimBytes = shard.claims.get(id)
  const claim = claimBytes === undefined ? undefined : readClaim(claimBytes)
  const { updatedAt: saidAt, ...noted } = canonicalNotes(id, shard.notes)
  const placed = `${Buffer.concat([bytes.subarray(8, 14), Buffer.from(id)]).toString('latin1')}`
  const states = {
    l: 'ready',
    r: 'ready',
    x: 'ready',
    s: 'scheduled',
    w: 'waiting',
    a: 'waiting',
    c: 'completed',
    d: 'dead',
  } as const
  const state = claim === undefined ? states[past.state as keyof typeof states] : 'running'
  return {
    id,
    task: record.task,
    state,
    ...contentOf(record),
    ...(payloads === undefined ? {} : { payload: canonicalPayload('') }),
    ...(payloads === undefined
      ? { payloads: null, successor: null }
      : canonicalPayloads(id, ownValue(bytes), claim !== undefined, payloads)),
    priority: record.priority,
    stamp: past.stamp,
    attempt: past.attempt,
    crashes: past.crashes,
    suspect: past.state === 'x',
    rememberMs: record.rememberMs,
    createdAt: record.createdAt,
    updatedAt: claim === undefined ? past.updatedAt : (saidAt ?? claim.claimedAt),
    finishedAt: state === 'completed' || state === 'dead' ? past.updatedAt : null,
    expiresAt: (shard.expiry.get(placed) ?? Number(shard.notes.get(`x${id}`) ?? 0)) || null,
    ...noted,
    ...(claim === undefined ? {} : { worker: claim.worker }),
    result: encoded(shard.notes.get(`r${id}`)),
    reason: past.reason ?? null,
    ...canonicalSteps(id, shard.steps),
    claim: claimBytes === undefined ? null : canonicalClaim(id, claimBytes, shard, now),
  }
}

/** The lease is its own, or the one that it shares. */
function canonicalClaim(id: string, claim: Buffer, { leases }: Shard, now: number): CanonicalJob['claim'] {
  const { fence, alone, cancelRequested } = readClaim(claim)
  const own = leases.get(Buffer.from(id).toString('latin1'))
  return { fence, leaseMs: (own ?? leases.get(`\0${claim.toString('latin1', 0, 7)}`)!) - now, alone, cancelRequested }
}

function leadOf(worker: string | undefined, wakeAt: number | null): Lead | undefined {
  return worker === undefined || wakeAt === null ? undefined : { worker, wakeAt }
}

/** The payloads of an ordered shard, unchanged. */
interface ShardPayloads {
  /** By id, in order. */
  readonly waiting: ReadonlyMap<string, readonly CanonicalEntry[]>
  readonly dead: ReadonlyMap<string, readonly CanonicalEntry[]>
  readonly inHand: ReadonlyMap<string, Buffer>
  readonly successor: ReadonlyMap<string, Buffer>
  readonly morgue: ReadonlyMap<string, Buffer>
}

async function readPayloads(client: RedisClient, tag: string): Promise<ShardPayloads> {
  const setOf = async (set: ShardKey, bodies: ShardKey) => {
    const members = listIn(await client.command('ZRANGE', [`${tag}:${set}`, '0', '-1'])) as Buffer[]
    const values = await readHash(client, tag, bodies)
    const byId = new Map<string, CanonicalEntry[]>()
    for (const member of members) {
      const end = member.indexOf(0)
      const id = member.toString('utf8', 0, end)
      const value = values.get(`${id}\0${member.toString('utf8', end + 19)}`)!
      byId.set(id, [...(byId.get(id) ?? []), canonicalEntry(readPayload(value))])
    }
    return byId
  }
  const [waiting, dead, inHand, successor, morgue] = await Promise.all([
    setOf('payloads', 'bodies'),
    setOf('dead-payloads', 'dead-bodies'),
    readHash(client, tag, 'claimed-payloads'),
    readHash(client, tag, 'successors'),
    readHash(client, tag, 'morgue'),
  ])
  return { waiting, dead, inHand, successor, morgue }
}

/** `own`: the single payload in the record. */
function canonicalPayloads(
  id: string,
  own: Buffer | undefined,
  isRunning: boolean,
  { waiting, inHand, successor }: ShardPayloads,
): Pick<CanonicalJob, 'payloads' | 'successor'> {
  const [held, follows] = [inHand.get(id), successor.get(id)]
  const waits = waiting.get(id) ?? []
  if (own !== undefined && (held !== undefined || (!isRunning && waits.length > 0)))
    throw new Error(`'${id}' has a payload in its record, and others besides`)
  const ownList = own === undefined ? undefined : [canonicalEntry(readPayload(own))]
  if (!isRunning) return { payloads: ownList ?? waits, successor: null }
  return {
    payloads: ownList ?? readInHand(held!).map((value) => canonicalEntry(readPayload(value))),
    successor:
      follows === undefined
        ? null
        : {
            stamp: readNumber(follows, 0, 7),
            createdAt: follows.readUIntBE(7, 6),
            isReady: follows.toString('latin1', 13) === 'r',
            payloads: waits,
          },
  }
}

function canonicalDead({ morgue, dead }: ShardPayloads): CanonicalJob[] {
  return [...morgue].map(([id, header]) => {
    const { finishedAt, reason, error, group, ...rest } = readHeader(header)
    return {
      id,
      ...rest,
      state: 'dead',
      payload: canonicalPayload(''),
      codec: null,
      meta: null,
      payloads: dead.get(id) ?? [],
      successor: null,
      priority: 0,
      group: group ?? null,
      suspect: false,
      rememberMs: 0,
      updatedAt: finishedAt,
      startedAt: null,
      finishedAt,
      expiresAt: null,
      worker: null,
      ...{ host: null, boot: null, pidns: null, pid: null, ticks: null },
      progress: null,
      checkpoint: null,
      ...{ log: '', fields: null },
      result: null,
      error: error ?? null,
      reason: reason ?? null,
      ...{ steps: [], awaits: null },
      claim: null,
    }
  })
}

type ById = ReadonlyMap<string, Buffer>

function contentOf({ group, ...content }: ReturnType<typeof readRecord>) {
  return { ...canonicalContent(content), group: group ?? null }
}

function canonicalNotes(id: string, notes: ById) {
  const [beat, fields] = [notes.get(`b${id}`), notes.get(`f${id}`)]
  const none = { startedAt: null, host: null, boot: null, pidns: null, pid: null, ticks: null, progress: null }
  return {
    ...none,
    ...(beat === undefined ? {} : readBeat(beat)),
    worker: notes.get(`w${id}`)?.toString() ?? null,
    checkpoint: encoded(notes.get(`k${id}`)),
    log: notes.get(`l${id}`)?.toString() ?? '',
    fields: fields === undefined ? null : readFields(fields),
    error: notes.get(`e${id}`)?.toString() ?? null,
  }
}

/** The remains of a cancelled job. */
function canonicalRemains(id: string, notes: ById): CanonicalRemains {
  const { updatedAt: _, ...noted } = canonicalNotes(id, notes)
  return { ...contentOf(readRecord(notes.get(`p${id}`)!)), ...noted }
}

function encoded(bytes: Buffer | undefined): CanonicalJob['result'] {
  return canonicalResult(bytes && readResult(bytes))
}

/** `steps-lua.ts` describes the form. */
function canonicalSteps(id: string, steps: ById): Pick<CanonicalJob, 'steps' | 'awaits'> {
  const places = [...steps.keys()]
    .filter((field) => field.startsWith(`${id}\0#`))
    .sort((a, b) => Number(a.slice(id.length + 2)) - Number(b.slice(id.length + 2)))
    .map((field) => steps.get(field)!.toString())
  const wait = steps.get(`${id}\0w`)
  return {
    steps: places.map((place) => canonicalStep(stepIn(place.slice(1), steps.get(`${id}\0${place}`)!))),
    awaits: wait === undefined ? null : { until: null, ...readWait(wait) },
  }
}

/** Steps go with their job, whose past says that it has some. */
function refuseStraySteps(queue: string, { jobs, past, steps }: Pick<Shard, 'jobs' | 'past' | 'steps'>): void {
  const isMarked = (id: string) => /^[A-Z]/.test(past.get(id)?.toString('latin1') ?? '')
  const stray = [...steps.keys()].filter((field) => {
    const id = field.split('\0')[0]!
    return !jobs.has(id) || (field !== `${id}\0w` && !isMarked(id))
  })
  if (stray.length > 0) throw new Error(`steps of no job in queue '${queue}': ${JSON.stringify(stray)}`)
}

/** Each note belongs to a job, or to what remains of one. No other job inherits it. */
function refuseStrayNotes(
  queue: string,
  { jobs, ended, notes }: { readonly jobs: ById; readonly ended: ById; readonly notes: ById },
): void {
  const hasRemains = (id: string) => ended.has(id) && readMemory(ended.get(id)!).hasRemains
  const stray = [...notes.keys()].filter((note) => {
    const [letter, id] = [note[0]!, note.slice(1)]
    return !(letter !== 'p' && jobs.has(id)) && ('rx'.includes(letter) || !hasRemains(id))
  })
  if (stray.length > 0) throw new Error(`notes of no job in queue '${queue}': ${JSON.stringify(stray)}`)
}
