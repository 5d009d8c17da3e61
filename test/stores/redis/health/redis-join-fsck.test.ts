/** The joins in the fsck of a Redis store: what would let a join wait for ever is found, and mended. */

import { expect, it } from 'vitest'
import { type JoinScene, members } from '#src/store-testing/contract/scenes/join-scene.js'
import type { FsckFinding } from '#src/stores/contract/store-health.js'
import type { RedisStore } from '#src/stores/redis/redis-store.js'
import { RedisJoins } from '../redis-join-scene.js'

/** The audit of the clock is a key of the test. */
const wrong = (findings: readonly FsckFinding[]) =>
  findings.filter(({ level, what }) => level !== 'ok' && what !== 'unknown keys')
const bad = async ({ store }: JoinScene) => {
  const findings = await (store as RedisStore).health.check()
  return wrong(findings).map(({ text }) => text)
}

/** A join that waits for two of three members: one has completed. */
async function waiting(shards = 1) {
  const joins = new RedisJoins()
  const scene = await joins.scene(undefined, shards)
  await scene.join({ sets: { all: { size: 3, onDead: 'go-on' } }, withinMs: 60_000 })
  const claims = await scene.members()
  await scene.end(claims.find(({ id }) => id === 'join.all.0')!, { kind: 'complete' })
  return { joins, scene, claims: claims.filter(({ id }) => id !== 'join.all.0') }
}

/** Mends the store, and lets a worker tell what was noted. */
async function mend(scene: JoinScene) {
  const { mended, left } = await (scene.store as RedisStore).health.repair!()
  await scene.advance(1_000)
  await scene.sweep()
  return { mended: mended.map(({ text }) => text), left: wrong(left) }
}

it.each([1, 3])(
  'a join that waits passes the check, with members in %s shards, and repair leaves it as it is',
  async (shards) => {
    const { scene } = await waiting(shards)

    expect(await bad(scene)).toEqual([])
    expect(await mend(scene)).toEqual({ mended: [], left: [] })
    expect(await scene.state()).toBe('waiting')
  },
)

it.each([
  ['have vanished', ['jobs', 'claims', 'history', 'notes']],
  ['have vanished, and what was kept of them', ['jobs', 'claims', 'joins', 'joined', 'join-tasks']],
] as const)('a join whose members %s is ready after a repair', async (_, keys) => {
  const { joins, scene } = await waiting()
  await joins.command(
    'DEL',
    ...keys.map((key) => joins.key(members, key)),
    joins.key(members, 'leases'),
    joins.key(members, 'batches'),
  )
  expect(await bad(scene)).toContainEqual(
    expect.stringMatching(/^wait for members that are not there, or have ended: join\./),
  )

  const { mended, left } = await mend(scene)

  expect(mended).toContainEqual(expect.stringMatching(/^reported the ends of members that are not there.*: join$/))
  expect(left.filter(({ text }) => /join/.test(text))).toEqual([])
  expect(await scene.state()).toBe('ready')
})

it('a join that does not know of its last end and would never hear it is ready after a repair', async () => {
  const { joins, scene, claims } = await waiting()
  const dying = await joins.open((script) => script === 'join-hear')
  await dying.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
  await joins.command('DEL', joins.key(members, 'join-tasks'))
  expect(await bad(scene)).toEqual([
    expect.stringMatching(/^these joins were not told that members have ended.*: join\./),
  ])

  expect((await mend(scene)).left).toEqual([])
  expect(await scene.state()).toBe('ready')
})

it('ends of members that are counted wrongly are counted again', async () => {
  const { joins, scene } = await waiting()
  await joins.spoil(members, 'joins', 'h1', (header) => {
    // The number of completed members.
    header.writeUInt32BE(3, 11)
    return header
  })
  expect(await bad(scene)).toEqual([
    expect.stringMatching(/^the ends of members of these joins are counted wrongly: join\./),
  ])

  expect(await mend(scene)).toEqual({ mended: ['counted the ends of members of these joins again: join'], left: [] })
  expect((await scene.set()).counts).toEqual({ completed: 1, dead: 0, cancelled: 0, expired: 0 })
})

it('a join whose time nobody would notice dies of time after a repair', async () => {
  const { joins, scene } = await waiting()
  await joins.command('DEL', joins.key('mail', 'join-tasks'))
  expect(await bad(scene)).toEqual([
    expect.stringMatching(/^wait, and nobody will notice when their time is over: join\./),
  ])

  expect((await mend(scene)).left).toEqual([])
  await scene.advance(60_000)
  await scene.sweep()
  expect(await scene.state()).toBe('dead: join-late')
})

it('ends of members of a join that is gone are removed', async () => {
  const joins = new RedisJoins()
  const scene = await joins.scene()
  await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })
  await scene.dies()
  await joins.command(
    'DEL',
    ...(['jobs', 'joins', 'ready', 'history', 'join-tasks'] as const).map((key) => joins.key('mail', key)),
  )
  expect(await bad(scene)).toContainEqual(
    expect.stringMatching(/^ends of members are kept for these joins, which are gone: join\./),
  )

  expect((await mend(scene)).mended).toEqual(['removed the ends of members of these joins, which are gone: join'])
  expect(await joins.command('HKEYS', joins.key(members, 'joined'))).toEqual([])
})

it('a join of which nothing else is stored is found', async () => {
  const { joins, scene } = await waiting()
  await joins.command('DEL', joins.key('mail', 'joins'))

  expect(await bad(scene)).toContainEqual(
    expect.stringMatching(/^are joins, but the store does not say for which jobs they wait: join\./),
  )
})
