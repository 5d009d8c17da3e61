/** The fsck of a Redis store beside workers that settle members: each of its steps sees another state, and none is a fault. */

import { expect, it } from 'vitest'
import { type JoinScene, members } from '#src/store-testing/contract/scenes/join-scene.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { FsckFinding } from '#src/stores/contract/store-health.js'
import type { RedisStore } from '#src/stores/redis/redis-store.js'
import { RedisJoins } from '../redis-join-scene.js'

/** The audit of the clock is a key of the test. */
const wrong = (findings: readonly FsckFinding[]) =>
  findings
    .filter(({ level, what }) => level !== 'ok' && what !== 'unknown keys')
    .map(({ what, text }) => `${what}: ${text}`)

const check = async (store: RedisStore) => wrong(await store.health.check())

/** Joins of every kind of set, each with four members. */
async function withJoins(scene: JoinScene): Promise<void> {
  for (const [n, onDead] of (['go-on', 'fail', 'hold'] as const).entries())
    for (const keepsResults of [true, false])
      await scene.join({
        id: `join-${n}-${keepsResults}`,
        sets: { all: { size: 4, onDead, keepsResults } },
        withinMs: 600_000,
        ...(onDead === 'fail' && { cancelsRest: true as const }),
      })
}

/** Ends the next member: mostly it completes, sometimes it dies, goes back or is deleted. False if there is none. */
function endings(scene: JoinScene) {
  let ended = 0
  return async (): Promise<boolean> => {
    ended += 1
    if (ended % 7 === 0) await scene.sweep()
    const [claim] = (await scene.members(1)) as [Claim?]
    if (claim === undefined) return false
    if (ended % 9 === 0) await scene.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
    else if (ended % 11 === 0) await scene.end(claim, { kind: 'cancel' })
    else await scene.end(claim, { kind: 'complete', result: { payload: `${ended}`, onlyForJoins: true } })
    return true
  }
}

it.each([1, 3])(
  'a check before each script of a worker finds nothing, with members in %s shards',
  { timeout: 60_000 },
  async (shards) => {
    const joins = new RedisJoins()
    const checker = await joins.open()
    const found = new Map<string, string[]>()
    const look = async (script: string) => {
      // The queues are being opened.
      if (script === 'open') return
      const faults = await check(checker)
      if (faults.length > 0) found.set(script, faults)
    }
    const scene = await joins.scene(undefined, shards, look)
    await withJoins(scene)
    const end = endings(scene)
    while (await end());
    await scene.sweep()
    await look('the end')

    expect(Object.fromEntries(found)).toEqual({})
  },
)

it.each([1, 3])(
  'a check whose steps have ends of members between them finds nothing, in %s shards',
  { timeout: 60_000 },
  async (shards) => {
    const joins = new RedisJoins()
    const scene = await joins.scene(undefined, shards)
    const end = endings(scene)
    let isOver = false
    const checker = await joins.open(undefined, undefined, async () => {
      isOver ||= !(await end())
    })
    await withJoins(scene)
    const found: string[] = []
    while (!isOver) found.push(...(await check(checker)))

    expect(found).toEqual([])
    expect((await scene.store.records!.list(members, { state: 'ready', by: 'time', limit: 1 })).jobs).toEqual([])
  },
)

it.each(['enqueue-graph', 'join-seal'])(
  'a check while a graph is being stored finds nothing: before each %s',
  { timeout: 60_000 },
  async (name) => {
    for (let at = 1; at < 14; at += 1) {
      const joins = new RedisJoins()
      const checker = await joins.open()
      let seen = 0
      const scene = await joins.scene((script) => script === name && ++seen === at, 3)
      const isWhole = await scene.join({ sets: { all: 6 } }).then(
        () => true,
        () => false,
      )
      const mine = await joins.scene(undefined, 3)

      expect(await check(checker), `before the ${at}th`).toEqual([])
      await (mine.store as RedisStore).health.repair!()
      expect(await mine.state(), `before the ${at}th`).toMatch(/^(waiting|gone)$/)
      if (isWhole) break
    }
  },
)
