/** Contract cases: a join that cannot become ready, and its revival. */

import assert from 'node:assert/strict'
import { joinConcern } from '../scenes/contract-case.js'
import { callsOf, memberOf, members, newJoin, newSet } from '../scenes/join-scene.js'

const hour = 3_600_000

export const joinDeaths = joinConcern('joins that die', [], {
  async 'a join dies with the first member that does not complete, and its error names the member'(scene) {
    await scene.join({ sets: { all: 3 } })
    await scene.completes()
    await scene.dies()
    assert.equal(await scene.state(), 'dead: join-member-dead')
    assert.match(
      (await scene.records.get('mail', 'join'))!.error!,
      /^member 'join\.all\.1' of set 'all' in queue 'rows' is dead$/,
    )
    assert.equal((await scene.depth()).dead, 1)
    assert.equal((await scene.depth()).failed, 0)
  },

  async 'jobs that an action names end in that order, and the join dies of the first'(scene) {
    await scene.join({ sets: { all: 3 } })
    await scene.records.bury(members, { ids: ['join.all.2', 'join.all.0', 'join.all.1'] })
    assert.match((await scene.records.get('mail', 'join'))!.error!, /^member 'join\.all\.2' /)
  },

  async 'a join dies of the first of the members that fail in one step, whichever set they are of'(scene) {
    const sets = { first: 1, second: 1 }
    await scene.join({ id: 'expired', sets, member: { expiresMs: 5_000 } })
    await scene.join({ id: 'buried', sets })
    await scene.records.bury(members, { ids: ['buried.second.0', 'buried.first.0'] })
    await scene.advance(5_000)
    await scene.members(0)
    assert.match((await scene.records.get('mail', 'buried'))!.error!, /^member 'buried\.second\.0' /)
    assert.match((await scene.records.get('mail', 'expired'))!.error!, /^member 'expired\.first\.0' /)
  },

  async 'the other members of a dead join go on'(scene) {
    await scene.join({ sets: { all: 2 } })
    await scene.dies()
    await scene.sweep()
    await scene.completes('"unheard"')
    assert.equal(await scene.state(), 'dead: join-member-dead')
    assert.deepEqual((await scene.set()).counts, { completed: 1, dead: 1, cancelled: 0, expired: 0 })
  },

  async 'if a join cancels the rest, sweeps cancel its members that wait or run'(scene) {
    await scene.join({ sets: { all: 3, more: 1 }, cancelsRest: true })
    const [dying, running] = await scene.members(2)
    await scene.end(dying!, { kind: 'bury', error: 'broken' })
    await scene.sweep()
    assert.equal(await scene.state('join.all.2', members), 'cancelled: join-dead')
    assert.equal(await scene.state('join.more.0', members), 'cancelled: join-dead')
    assert.equal(await scene.extend(running!), 'cancel')
  },

  async 'a join that dies of time cancels nobody'(scene) {
    await scene.join({ sets: { all: 1 }, cancelsRest: true, withinMs: 5_000 })
    await scene.advance(5_000)
    await scene.sweep()
    assert.equal(await scene.state('join.all.0', members), 'ready')
  },

  async 'if a set goes on, every end counts'(scene) {
    await scene.join({ sets: { all: { size: 3, onDead: 'go-on' } } })
    await scene.dies()
    await scene.records.cancel(members, { ids: ['join.all.1'] })
    assert.equal(await scene.state(), 'waiting')
    await scene.completes('"1"')
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends(), ['0 dead broken', '1 cancelled', '2 completed "1"'])
  },

  async 'a join that is revived in one step with a dead member goes by what it had learned'(scene) {
    const all = newSet('join', 'all', { size: 1, queue: 'mail', onDead: 'go-on' })
    const jobs = [newJoin({ sets: { all } }), memberOf('join', all, 0)]
    await scene.joins.enqueue(callsOf('graph', [['mail', jobs]]))
    const diesNext = async (error: string) => scene.end(await scene.claimOne(), { kind: 'bury', error })
    await diesNext('broken')
    await diesNext('in vain')

    await scene.records.morgue.revive('mail', 'all')

    assert.deepEqual([await scene.state(), await scene.state('join.all.0')], ['ready', 'ready'])
    assert.deepEqual(await scene.ends(), ['0 dead broken'])
    assert.deepEqual((await scene.set()).counts, { completed: 0, dead: 1, cancelled: 0, expired: 0 })
    const claims = await scene.claim({ limit: 2 })
    const [member, join] = claims.claims.slice().sort((a, b) => (a.id < b.id ? 1 : -1))
    await scene.end(member!, { kind: 'complete' })
    await scene.end(join!, { kind: 'bury', error: 'again' })
    assert.deepEqual(await scene.ends(), ['0 dead broken'])
    await scene.records.morgue.revive('mail', 'all')
    assert.deepEqual(await scene.claimIds(), ['join'])
  },

  async 'if a set holds, the join waits until a dead member is revived and completes'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    const { counts, oldest } = await scene.set()
    assert.deepEqual([counts.dead, counts.completed, oldest], [1, 1, 0])
    await scene.records.morgue.revive(members, 'all')
    assert.equal((await scene.set()).counts.dead, 0)
    assert.deepEqual(await scene.ends(), ['1 completed'])
    await scene.completes('"again"')
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends(), ['0 completed "again"', '1 completed'])
  },

  async 'if a set holds, a cancelled member makes the join dead'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'hold' } }, withinMs: hour })
    await scene.records.cancel(members, { ids: ['join.all.1'] })
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'if a set holds, a dead member that is deleted makes the join dead'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    await scene.records.morgue.delete(members, 'all')
    assert.equal(await scene.state(), 'dead: join-member-dead')
    assert.deepEqual((await scene.set()).counts, { completed: 0, dead: 0, cancelled: 1, expired: 0 })
  },

  async 'if a set holds, a dead member that is replaced makes the join dead'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    assert.deepEqual(await scene.enqueue([{ id: 'join.all.0', ifWaiting: 'replace' }], { queue: members }), [
      'replaced',
    ])
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'if a set holds, a dead member beyond the bound of the morgue makes the join dead'(scene) {
    await scene.openQueue({ name: members, dead: { count: 1 } })
    await scene.join({ sets: { all: { size: 2, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    assert.equal(await scene.state(), 'waiting')
    await scene.advance(1)
    await scene.dies()
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'if a set holds, a dead member beyond the age of the morgue makes the join dead'(scene) {
    await scene.openQueue({ name: members, dead: { ageMs: 5_000 } })
    await scene.join({ sets: { all: { size: 3, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    await scene.advance(4_999)
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    await scene.advance(1)
    await scene.completes()
    assert.equal(await scene.state(), 'dead: join-member-dead')
    assert.deepEqual((await scene.set()).counts, { completed: 2, dead: 0, cancelled: 1, expired: 0 })
  },

  async 'if a set holds, a dead member beyond its age whose id comes in anew makes the join dead'(scene) {
    await scene.openQueue({ name: members, dead: { ageMs: 5_000 } })
    await scene.join({ sets: { all: { size: 1, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    await scene.advance(5_000)
    assert.equal(await scene.state(), 'waiting')
    assert.deepEqual(await scene.enqueue(['join.all.0'], { queue: members }), ['added'])
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'if a set holds, a dead member that is cleared with its queue makes the join dead'(scene) {
    await scene.join({ sets: { all: { size: 1, onDead: 'hold' } }, withinMs: hour })
    await scene.dies()
    assert.equal(await scene.state(), 'waiting')
    await scene.records.clear(members)
    assert.equal(await scene.state(), 'dead: join-member-dead')
    assert.deepEqual((await scene.set()).counts, { completed: 0, dead: 0, cancelled: 1, expired: 0 })
  },

  async 'if a set goes on, a dead member that is deleted stays dead for its join'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'go-on' } } })
    await scene.dies()
    await scene.records.morgue.delete(members, 'all')
    assert.deepEqual((await scene.set()).counts, { completed: 0, dead: 1, cancelled: 0, expired: 0 })
  },

  async 'a set that was complete with a dead member is not so any more when that is revived'(scene) {
    await scene.join({ sets: { first: { size: 1, onDead: 'go-on' }, second: { size: 1, onDead: 'go-on' } } })
    await scene.dies()
    await scene.sweep()
    await scene.records.morgue.revive(members, 'all')
    // The revived member comes behind the other.
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'if a set goes on, a revived member is outstanding again while the join waits'(scene) {
    await scene.join({ sets: { all: { size: 2, onDead: 'go-on' } } })
    await scene.dies()
    await scene.records.morgue.revive(members, 'all')
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'a join that waits for too long dies in a sweep as late'(scene) {
    await scene.join({ sets: { all: 2 }, withinMs: 5_000 })
    await scene.completes()
    await scene.advance(4_999)
    assert.deepEqual(await scene.sweep(), [])
    await scene.advance(1)
    await scene.sweep('worker-1')
    assert.equal(await scene.state(), 'dead: join-late')
    assert.match((await scene.records.get('mail', 'join'))!.error!, /^1 of its members/)
  },

  async 'a join says until when it waits'(scene) {
    const now = await scene.now()
    const until = async (id: string) => (await scene.joins.look({ queue: 'mail', id }))?.waitsUntil
    await scene.join({ sets: { all: 1 }, withinMs: 5_000 })
    await scene.join({ id: 'open', sets: { all: {} }, withinMs: 5_000, sealWithinMs: 1_000 })
    await scene.join({ id: 'boundless', sets: { all: 1 } })
    assert.deepEqual(
      [await until('join'), await until('open'), await until('boundless')],
      [now + 5_000, now + 1_000, undefined],
    )
  },

  async 'an open join that is late before it had to be sealed dies as late'(scene) {
    await scene.join({ sets: { all: {} }, withinMs: 2_000, sealWithinMs: 20_000 })
    await scene.advance(5_000)
    await scene.sweep()
    assert.equal(await scene.state(), 'dead: join-late')
  },

  async 'a ready join does not die of time'(scene) {
    await scene.join({ sets: { all: 1 }, withinMs: 5_000 })
    await scene.completes()
    await scene.advance(10_000)
    await scene.sweep()
    assert.equal(await scene.state(), 'ready')
  },

  async 'a join whose producer never seals it dies in a sweep, and its members run'(scene) {
    await scene.join({ sets: { all: {}, sealed: 1 }, sealWithinMs: 5_000 })
    await scene.addMembers(newSet('join', 'all', {}), 0, 1)
    await scene.advance(5_000)
    await scene.sweep()
    assert.equal(await scene.state(), 'dead: join-never-sealed')
    assert.equal((await scene.members()).length, 2)
  },

  async 'a dead join that is sealed stays dead, says so, and runs once it is revived'(scene) {
    await scene.join({ sets: { all: {} }, sealWithinMs: 5_000 })
    await scene.advance(5_000)
    await scene.sweep()
    await scene.addMembers(newSet('join', 'all', {}), 0, 1)
    assert.deepEqual([await scene.seal({ all: 1 }), await scene.seal({ all: 1 })], ['dead', 'dead'])
    assert.equal(await scene.state(), 'dead: join-never-sealed')
    await scene.completes()
    await scene.records.morgue.revive('mail', 'all')
    assert.equal(await scene.state(), 'ready')
  },

  async 'a sealed join is not one that nobody sealed'(scene) {
    await scene.join({ sets: { all: {} }, sealWithinMs: 5_000 })
    await scene.addMembers(newSet('join', 'all', {}), 0, 1)
    await scene.seal({ all: 1 })
    await scene.advance(5_000)
    await scene.sweep()
    assert.equal(await scene.state(), 'waiting')
  },

  async 'joins that died are reported by one sweep each'(scene) {
    await scene.join({ id: 'first', sets: { all: 1 } })
    await scene.join({ id: 'second', sets: { all: 1 }, withinMs: 5_000 })
    await scene.dies()
    assert.deepEqual(await scene.sweep(), [
      { queue: 'mail', id: 'first', task: 'send-mail', reason: 'join-member-dead' },
    ])
    await scene.advance(10_000)
    assert.deepEqual(await scene.sweep(), [{ queue: 'mail', id: 'second', task: 'send-mail', reason: 'join-late' }])
    await scene.advance(10_000)
    assert.deepEqual(await scene.sweep(), [])
  },

  async 'a waiting join is cancelled, deleted, buried and cleared like any waiting job'(scene) {
    const how = {
      cancel: () => scene.records.cancel('mail', { ids: ['join'] }, 'stop'),
      delete: () => scene.records.delete('mail', { ids: ['join'] }),
      bury: () => scene.records.bury('mail', { ids: ['join'] }),
      clear: () => scene.records.clear('mail'),
    }
    const becomes = { cancel: 'cancelled: stop', delete: 'gone', bury: 'dead: buried', clear: 'gone' }
    for (const verb of ['cancel', 'delete', 'bury', 'clear'] as const) {
      await scene.join({ sets: { all: { size: 1, ids: `of-${verb}` } } })
      assert.equal((await how[verb]()).changed, 1)
      assert.equal(await scene.state(), becomes[verb])
      await scene.completes()
      assert.equal(await scene.state(), becomes[verb])
      assert.equal((await scene.depth()).waiting, 0)
      await scene.records.morgue.delete('mail', 'all')
      await scene.advance(120_000)
    }
  },

  async 'running a waiting join now changes nothing'(scene) {
    await scene.join({ sets: { all: 1 } })
    assert.deepEqual(await scene.records.runNow('mail', { ids: ['join'] }), { changed: 0, more: false })
    assert.equal(await scene.state(), 'waiting')
  },

  async 'a revived join waits again for what is missing'(scene) {
    await scene.join({ sets: { all: 2 } })
    await scene.dies()
    await scene.completes('"1"')
    assert.deepEqual(await scene.records.morgue.revive('mail', 'all'), { changed: 1, more: false })
    assert.equal(await scene.state(), 'waiting')
    await scene.records.morgue.revive(members, 'all')
    await scene.completes('"0"')
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends(), ['0 completed "0"', '1 completed "1"'])
  },

  async 'a join revived after its members were is ready once they complete'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.dies()
    await scene.records.morgue.revive(members, 'all')
    await scene.completes('"0"')
    assert.equal(await scene.state(), 'dead: join-member-dead')
    await scene.records.morgue.revive('mail', 'all')
    assert.equal(await scene.state(), 'ready')
  },

  async 'a revived join dies again with the next member that does not complete'(scene) {
    await scene.join({ sets: { all: 2 } })
    await scene.dies()
    await scene.records.morgue.revive('mail', 'all')
    assert.equal(await scene.state(), 'waiting')
    await scene.dies('again')
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'a revived join has its time anew'(scene) {
    await scene.join({ sets: { all: 1 }, withinMs: 5_000 })
    await scene.advance(5_000)
    await scene.sweep()
    await scene.advance(10_000)
    await scene.records.morgue.revive('mail', 'all')
    await scene.advance(4_999)
    await scene.sweep()
    assert.equal(await scene.state(), 'waiting')
    await scene.advance(10_000)
    await scene.sweep()
    assert.equal(await scene.state(), 'dead: join-late')
  },

  async 'a join that is sealed after its revival has its time anew'(scene) {
    await scene.join({ sets: { all: {} }, withinMs: 5_000 })
    await scene.advance(5_000)
    await scene.sweep()
    await scene.records.morgue.revive('mail', 'all')
    await scene.advance(4_000)
    await scene.seal({ all: 1 })
    await scene.advance(999)
    await scene.sweep()
    assert.equal(await scene.state(), 'waiting')
    await scene.advance(1)
    await scene.sweep()
    assert.equal(await scene.state(), 'dead: join-late')
  },

  async 'a join with a member that is gone for good is not revived'(scene) {
    await scene.join({ sets: { all: 2 } })
    await scene.records.cancel(members, { ids: ['join.all.1'] })
    assert.deepEqual(await scene.records.morgue.revive('mail', 'all'), { changed: 0, more: false })
    assert.equal(await scene.state(), 'dead: join-member-dead')
  },

  async 'a buried join whose members have completed meanwhile is ready when it is revived'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.records.bury('mail', { ids: ['join'] })
    await scene.completes('"0"')
    await scene.records.morgue.revive('mail', 'all')
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends(), ['0 completed "0"'])
  },
})
