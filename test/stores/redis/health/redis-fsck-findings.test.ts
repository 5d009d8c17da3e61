import { describe, expect, it } from 'vitest'
import type { FsckFinding } from '#src/stores/contract/store-health.js'
import type { ShardKey } from '#src/stores/redis/redis-keys.js'
import { queue, RedisScene, sharedRedis } from '../redis-scene.js'

const { client } = await sharedRedis()

const bad = (findings: readonly FsckFinding[]) => findings.filter(({ level }) => level !== 'ok')
/** `6 bytes, big-endian` of a number. */
const six = (n: number) => Buffer.from(n.toString(16).padStart(12, '0'), 'hex')

/** What an element of the ready list, or a member of `scheduled`, would be of this job. */
async function placeOf(scene: RedisScene, id: string): Promise<Buffer> {
  const record = await scene.field('jobs', id)
  return Buffer.concat([record.subarray(1, 14), Buffer.from(id)])
}
async function seqPlaceOf(scene: RedisScene, id: string): Promise<Buffer> {
  return (await placeOf(scene, id)).subarray(7)
}
async function copyField(scene: RedisScene, key: ShardKey, from: string, to: string): Promise<void> {
  await scene.raw('HSET', key, to, await scene.field(key, from))
}

type Breach = readonly [title: string, make: (scene: RedisScene) => Promise<unknown>, text: RegExp]

const errors: readonly Breach[] = [
  // What cannot be read.
  ['an invalid record', (s) => s.raw('HSET', 'jobs', 'line-2', 'x'), /what 'jobs' holds .* cannot be read: line-2\./],
  [
    'a record cut off in the middle of its fields',
    async (s) => s.raw('HSET', 'jobs', 'line-2', (await s.field('jobs', 'line-2')).subarray(0, 17)),
    /'jobs' .* read: line-2\./,
  ],
  ['an invalid past', (s) => s.raw('HSET', 'history', 'failed', 'zz'), /what 'history' holds .* read: failed\./],
  ['an invalid claim', (s) => s.raw('HSET', 'claims', 'running', 'zz'), /what 'claims' holds .* read: running\./],
  ['an invalid element', (s) => s.raw('RPUSH', 'ready-list', 'zz'), /what 'ready-list' holds .* read: zz\./],
  ['an invalid memory', (s) => s.raw('HSET', 'ended', 'remembered', 'zz'), /what 'ended' holds .* read: remembered\./],
  // Jobs that stand nowhere.
  [
    'an empty ready list',
    (s) => s.raw('DEL', 'ready-list'),
    /missing from 'ready-list': (?:line-\d(?:, )?){3}\. They never run/,
  ],
  [
    'a job taken out of the ready list',
    async (s) => s.raw('LREM', 'ready-list', '1', await placeOf(s, 'line-2')),
    /missing from 'ready-list': line-2\. They never run/,
  ],
  [
    'a job taken out of the ready list while another set has one too many',
    async (s) => {
      await s.raw('LREM', 'ready-list', '1', await placeOf(s, 'line-2'))
      await s.raw('ZADD', 'scheduled', '0', Buffer.concat([Buffer.alloc(13, 255), Buffer.from('ghost')]))
    },
    /missing from 'ready-list': line-2\./,
  ],
  ['ready jobs in no order', (s) => s.raw('DEL', 'ready'), /missing from 'ready': (?:(?:failed|urgent)(?:, )?){2}\./],
  ['a lost suspect', (s) => s.raw('ZPOPMIN', 'suspects'), /missing from 'suspects': suspect\./],
  ['a lost scheduled job', (s) => s.raw('ZPOPMIN', 'scheduled'), /missing from 'scheduled': due-later\./],
  [
    'a claim without a lease',
    (s) => s.raw('ZPOPMIN', 'leases'),
    /missing from 'leases': running\. If their worker dies/,
  ],
  ['a dead job that is not listed', (s) => s.raw('ZPOPMIN', 'dead'), /missing from 'dead': dead\./],
  ['a completed job that is not listed', (s) => s.raw('ZPOPMIN', 'completed'), /missing from 'completed': kept\./],
  [
    'a job of the ready list with a past',
    async (s) => {
      const past = Buffer.from(await s.field('history', 'failed'))
      past[0] = 'l'.charCodeAt(0)
      await s.raw('HSET', 'history', 'line-1', past)
    },
    /missing from 'ready-list': line-1\./,
  ],
  // What stands where it does not belong.
  [
    'a running job in the ready list',
    async (s) => s.raw('LPUSH', 'ready-list', await placeOf(s, 'running')),
    /stand in 'ready-list', where they do not belong: running\. .* run twice/,
  ],
  [
    'a job of the ready list among the scheduled',
    async (s) => s.raw('ZADD', 'scheduled', '0', await placeOf(s, 'line-1')),
    /stand in 'scheduled', where they do not belong: line-1\./,
  ],
  [
    'a ready job in two places of its order',
    async (s) => {
      const [member] = await s.all('ready')
      await s.raw('ZADD', 'ready', '0', Buffer.concat([Buffer.alloc(2), member!.subarray(2)]))
    },
    /stand in 'ready', where they do not belong: urgent\./,
  ],
  [
    'a lease of a job that does not run',
    async (s) => s.raw('ZADD', 'leases', '99999999999999', 'line-1'),
    /stand in 'leases', where they do not belong: line-1\./,
  ],
  [
    'a dead job among the completed',
    async (s) => s.raw('ZADD', 'completed', '0', (await s.all('dead'))[0]!),
    /stand in 'completed', .*: dead\. They may be removed/,
  ],
  [
    'an expiry of a job that waits',
    async (s) => s.raw('ZADD', 'expiry', '99999999999999', await seqPlaceOf(s, 'line-1')),
    /stand in 'expiry', .*: line-1\./,
  ],
  // What is left of no job.
  ...(
    [
      ['ready', 'urgent', /Claims on this queue fail/],
      ['suspects', 'suspect', /Claims on this queue fail/],
      ['scheduled', 'due-later', /Claims on this queue fail/],
      ['leases', 'running', /Claims on this queue fail/],
      ['claims', 'running', /would count as running/],
      ['history', 'failed', /would never run/],
      ['retries', 'failed', /Actions on all failed jobs fail/],
      ['completed', 'kept', /Settles on this queue fail/],
      ['expiry', 'kept', /Settles on this queue fail/],
      ['dead', 'dead', /Settles on this queue fail/],
    ] as const
  ).map(
    ([key, id, harm]): Breach => [
      `a member of ${key} without a job`,
      (s) => s.raw('HDEL', 'jobs', id),
      new RegExp(`stand in '${key}' without a job: ${id}\\. .*${harm.source}`),
    ],
  ),
  // What belongs together.
  [
    'a score in a set without scores',
    async (s) => s.raw('ZADD', 'scheduled', '7', (await s.all('scheduled'))[0]!),
    /have a score other than 0 in 'scheduled': due-later\./,
  ],
  [
    'sequence numbers that start over',
    (s) => s.raw('HSET', 'meta', 'seq', '0'),
    /sequence numbers are higher .* and \d+ more\./,
  ],
  ['fences that start over', (s) => s.raw('HSET', 'meta', 'fence', '0'), /fences are higher .*: running\./],
  [
    'a shared lease that counts more claims than share it',
    async (s) => {
      await s.take()
      const [count] = (await s.fields('batches')).filter((field) => field.startsWith('n'))
      await s.raw('HINCRBY', 'batches', Buffer.from(count!, 'latin1'), '1')
    },
    /claims of these fences share a lease that counts others/,
  ],
  [
    'a claim that knows of no past',
    async (s) => {
      const claim = Buffer.from(await s.field('claims', 'running'))
      claim[13]! ^= 4
      await s.raw('HSET', 'claims', 'running', claim)
    },
    /claims do not say .*: running\./,
  ],
  [
    'a claim that knows of no checkpoint',
    async (s) => {
      const [claim] = (await s.take(3)).filter(({ id }) => id === 'line-1')
      await s.raw('HSET', 'notes', `k${claim!.id}`, 't\x001')
    },
    /claims do not say .*: line-1\./,
  ],
  ['a lost result', (s) => s.raw('HDEL', 'notes', 'rkept'), /kept results are missing: kept\./],
  [
    'a ready list out of order',
    async (s) => s.raw('LPUSH', 'ready-list', (await s.all('ready-list')).at(-1)!),
    /come out of order in 'ready-list': line-1\./,
  ],
  // Counters and settings.
  ['too many stale elements', (s) => s.raw('HINCRBY', 'meta', 'stale', '1'), /stale elements .* is 1 too high/],
  ['too few stale elements', (s) => s.raw('HINCRBY', 'meta', 'stale', '-1'), /stale elements .* is 1 too low/],
  [
    'more stale elements than elements',
    (s) => s.raw('HSET', 'meta', 'stale', '99'),
    /'ready-list' is shorter than the number of its stale elements/,
  ],
  ['an invalid kind', (s) => s.raw('HSET', 'meta', 'kind', 'odd'), /'meta' holds .* kind 'odd'/],
  ['a counter that is not a number', (s) => s.raw('HSET', 'meta', 'failed', '-1'), /'meta' holds .* failed '-1'/],
  ['a setting that is gone', (s) => s.raw('HDEL', 'meta', 'maxCrashes'), /'meta' holds .* no maxCrashes/],
  ['half a lead', (s) => s.raw('HDEL', 'meta', 'suspectLeadAt'), /one of suspectLead and suspectLeadAt alone/],
  ['settings that are gone', (s) => s.raw('DEL', 'meta'), /mail}:meta' is gone, .* while ready-list, ready, /],
  [
    'a key of the wrong type',
    async (s) => {
      await s.raw('DEL', 'scheduled')
      await s.raw('SET', 'scheduled', 'x')
    },
    /mail}:scheduled' is a string, where a zset belongs/,
  ],
  // Keys beside the queues.
  [
    'an invalid number of shards',
    (s) => s.client.command('HSET', [s.queues, 'ghost', 'many']),
    /says that it has 'many' shards/,
  ],
]

const warnings: readonly Breach[] = [
  // What stands where it does not belong.
  [
    'a fresh job among the failed',
    async (s) => s.raw('ZADD', 'retries', '0', Buffer.concat([Buffer.from([0, 0, 2]), await seqPlaceOf(s, 'line-1')])),
    /stand in 'retries', .*: line-1\./,
  ],
  // What is left of no job.
  [
    'a member of notes without a job',
    (s) => s.raw('HDEL', 'jobs', 'dead'),
    /stand in 'notes' without a job: dead\. .*Nothing but memory/,
  ],
  ['a note that is not ours', (s) => s.raw('HSET', 'notes', 'zline-1', 'x'), /fields of 'notes' .*: zline-1\./],
  // What belongs together.
  ['a failed job that is not listed as one', (s) => s.raw('DEL', 'retries'), /missing from 'retries': failed\./],
  [
    'the rest of a shared lease that ended',
    (s) => s.raw('HSET', 'batches', Buffer.concat([Buffer.from('n'), Buffer.alloc(7, 1)]), '1'),
    /shared leases of these fences are not there any more/,
  ],
  [
    'a checkpoint of no job, and a log of one that is remembered by its id alone',
    (s) => s.raw('HSET', 'notes', 'kghost', 't\x001', 'lremembered', 'one'),
    /stand in 'notes' without a job: (ghost, remembered|remembered, ghost)\. Nothing but memory/,
  ],
  [
    'a cancelled job whose input is lost',
    (s) => s.raw('HDEL', 'notes', 'pcancelled'),
    /cancelled after they had begun, and their inputs are missing: cancelled\./,
  ],
  [
    'the rest of a cancelled job that is no longer remembered',
    (s) => s.raw('DEL', 'ended', 'ended-until'),
    /stand in 'notes' without a job: cancelled\. Nothing but memory/,
  ],
  [
    'the rest of a job that exists again',
    (s) => s.raw('HSET', 'notes', 'pline-1', 'x'),
    /stand in 'notes' without a job: line-1\./,
  ],
  [
    'a live job that is remembered as ended',
    async (s) => {
      await copyField(s, 'ended', 'remembered', 'line-1')
      const memory = await s.field('ended', 'remembered')
      const until = String(memory.readUIntBE(32, 6))
      await s.raw('ZADD', 'ended-until', until, Buffer.concat([memory.subarray(0, 6), Buffer.from('line-1')]))
    },
    /remembered as ended: line-1\./,
  ],
  ['a memory without an end', (s) => s.raw('DEL', 'ended-until'), /missing from 'ended-until': .*remembered/],
  [
    'an end of no memory',
    (s) => s.raw('ZADD', 'ended-until', '1', Buffer.concat([six(1), Buffer.from('ghost')])),
    /stand in 'ended-until' without a job: ghost\./,
  ],
  ['calls that are not listed', (s) => s.raw('DEL', 'call-order'), /missing from 'call-order': call-\d+.* more\./],
  ['listed calls that are gone', (s) => s.raw('DEL', 'calls'), /stand in 'call-order' without a job: call-1,/],
  // Keys beside the queues.
  [
    'a queue that is registered and not stored',
    (s) => s.client.command('HSET', [s.queues, 'ghost', '2']),
    /registered and has nothing stored/,
  ],
  [
    'a foreign key under the tag of a queue',
    (s) => s.client.command('SET', [s.key('ends').replace(/ends$/, 'others'), 'x']),
    /not ours, .*: {[^}]*:mail}:others\./,
  ],
  [
    'a foreign key under the tag of the namespace',
    (s) => s.client.command('SET', [s.queues.replace('queues', 'other'), 'x']),
    /not ours, .*: {[^}]*}:other\./,
  ],
  [
    'a queue that is not registered',
    (s) => s.client.command('HDEL', [s.queues, queue]),
    /of queues that are not registered: (?:{[^}]*:mail}:[\w-]+(?:, )?){5} and \d+ more/,
  ],
]

describe('the check of a Redis store', () => {
  it.each([
    ...errors.map((breach) => ['error', ...breach] as const),
    ...warnings.map((breach) => ['warning', ...breach] as const),
  ])('finds, as %s, %s', async (level, _, make, text) => {
    const scene = await RedisScene.busy(client)
    await make(scene)

    const found = bad(await scene.health.check())

    expect(found).toContainEqual(expect.objectContaining({ level, text: expect.stringMatching(text) }))
  })
})
