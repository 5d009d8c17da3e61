/** Contract cases: a join from its enqueue to its first claim. */

import assert from 'node:assert/strict'
import { InvalidArgumentError, UnknownQueueError } from '../../../core/errors.js'
import { slicesOf } from '../../../core/values/pages.js'
import { groups, joinCase, joinConcern } from '../scenes/contract-case.js'
import { callsOf, memberOf, members, newJoin, newSet, place } from '../scenes/join-scene.js'
import { Rest } from '../scenes/rest.js'
import { newJob } from '../scenes/scene.js'

export const joining = joinConcern('joins', [], {
  async 'a join waits until its last member has ended, and is then ready'(scene) {
    await scene.join({ sets: { all: 3 } })
    for (const left of [3, 2, 1]) {
      assert.equal(await scene.state(), 'waiting', `${left} left`)
      assert.deepEqual(await scene.claimIds(), [])
      await scene.completes()
    }
    assert.equal(await scene.state(), 'ready')
    const claim = await scene.claimOne()
    assert.deepEqual([claim.id, claim.isJoin, claim.attempt], ['join', true, 1])
  },

  async 'a join with several sets waits for all of them'(scene) {
    await scene.join({ sets: { one: { size: 1, isMany: false, ids: 'rates' }, many: 2 } })
    await scene.completes('"rates"')
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends('one'), ['0 completed "rates"'])
  },

  async 'single members are heard whose ids end with numbers'(scene) {
    const one = { size: 1, isMany: false }
    await scene.join({
      sets: { first: { ...one, ids: 'rates.0' }, second: { ...one, ids: 'rates.7', onDead: 'go-on' } },
    })
    const place0 = (await scene.records.get(members, 'rates.0'))?.memberOf?.[0]
    assert.deepEqual([place0?.set, place0?.number], ['first', 0])
    await scene.completes('"first"')
    await scene.completes('"second"')
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends('second'), ['0 completed "second"'])
  },

  async 'members of several joins that complete in one settle are all reported, beside other jobs'(scene) {
    await scene.join({ id: 'first', sets: { all: 3, rest: { size: 2, onDead: 'go-on' } } })
    await scene.join({ id: 'second', sets: { all: 4 } })
    await scene.enqueue(['plain'], { queue: members })
    const claims = await scene.members()
    await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
    assert.deepEqual([await scene.state('first'), await scene.state('second')], ['ready', 'ready'])
    assert.deepEqual(await scene.ends('rest', 0, 10, 'first'), ['0 completed', '1 completed'])
  },

  async 'a join whose sets are empty is ready at once'(scene) {
    await scene.join({ sets: { all: 0 } })
    assert.equal(await scene.state(), 'ready')
  },

  async 'a claimed member says that it is one, and other jobs do not'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.enqueue(['plain'], { queue: members })
    const [member, plain] = await scene.members()
    assert.deepEqual([member!.isMember, plain!.isMember, plain!.isJoin], [true, undefined, undefined])
  },

  async 'records of joins and members say so, and name the joins of a member'(scene) {
    await scene.join({ sets: { all: 1 } })
    const places = [place('join', newSet('join', 'all', 1), 0)]
    assert.deepEqual((await scene.records.get(members, 'join.all.0'))?.memberOf, places)
    assert.equal((await scene.records.get('mail', 'join'))?.isJoin, true)
    const { jobs } = await scene.records.list(members, { by: 'id', limit: 10 })
    assert.deepEqual(jobs[0]?.memberOf, places)
  },

  async 'a waiting join is counted as such, and among the pending jobs'(scene) {
    await scene.join({ sets: { all: 1 } })
    const { waiting, ready, scheduled, payloads, fresh, lagMs } = await scene.depth()
    assert.deepEqual(
      { waiting, ready, scheduled, payloads, fresh, lagMs },
      { waiting: 1, ready: 0, scheduled: 0, payloads: 1, fresh: 0, lagMs: 0 },
    )
  },

  async 'a waiting join takes room in a bounded queue, and needs none when it becomes ready'(scene) {
    await scene.openQueue({ maxPending: 1 })
    await scene.join({ sets: { all: 1 } })
    assert.deepEqual(await scene.enqueue(['other']), ['full'])
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'listings show waiting joins behind scheduled jobs'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.add({ id: 'later', delayMs: 1_000 }, 'now')
    const ids = async (query: object) =>
      (await scene.records.list('mail', { by: 'time', limit: 10, ...query })).jobs.map(({ id }) => id)
    assert.deepEqual(await ids({}), ['now', 'later', 'join'])
    assert.deepEqual(await ids({ state: 'waiting' }), ['join'])
    assert.deepEqual(await ids({ state: 'waiting', by: 'id' }), ['join'])
  },

  async 'a join becomes ready in the place of its enqueue'(scene) {
    await scene.add('before')
    await scene.join({ sets: { all: 1 } })
    await scene.add('behind')
    await scene.completes()
    assert.deepEqual(await scene.claimIds(), ['before', 'join', 'behind'])
  },

  'a join keeps its priority and its group': joinCase([groups], async (scene) => {
    await scene.join({ sets: { all: 1 }, job: { priority: 3, group: 'x' } })
    await scene.completes()
    const { priority, group } = await scene.claimOne()
    assert.deepEqual({ priority, group }, { priority: 3, group: 'x' })
  }),

  async 'the delay of a join counts from the end of its last member'(scene) {
    await scene.join({ sets: { all: 1 }, job: { delayMs: 5_000 } })
    await scene.advance(10_000)
    await scene.completes()
    assert.equal(await scene.state(), 'scheduled')
    await scene.advance(4_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds(), ['join'])
  },

  async 'a join that is due later is scheduled when its members have ended'(scene) {
    const runAt = (await scene.now()) + 20_000
    await scene.join({ sets: { all: 1 }, job: { runAt } })
    await scene.completes()
    assert.equal(await scene.state(), 'scheduled')
    await scene.advance(20_000)
    assert.equal((await scene.claimOne()).runAt, runAt)
  },

  async 'a join that was due earlier is ready when its members have ended'(scene) {
    const runAt = (await scene.now()) + 20_000
    await scene.join({ sets: { all: 1 }, job: { runAt } })
    await scene.advance(30_000)
    assert.equal(await scene.state(), 'waiting')
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'the time to begin of a join counts from the end of its last member'(scene) {
    await scene.join({ sets: { all: 1 }, job: { expiresMs: 5_000 } })
    await scene.advance(10_000)
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    await scene.advance(4_999)
    await scene.claim({ limit: 0 })
    assert.equal(await scene.state(), 'ready')
    await scene.advance(1)
    assert.equal((await scene.claim()).expired?.length, 1)
  },

  async 'a join that becomes ready rings'(scene) {
    await scene.join({ sets: { all: 1 } })
    const claim = await scene.member()
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })
    await rest.wakes('mail')
  },

  async 'a join that waits rings nobody'(scene) {
    const rest = await Rest.begin(scene)
    await scene.join({ sets: { all: 1 } })
    await rest.isUndisturbed()
  },

  async 'a join in a paused queue becomes ready and is not granted'(scene) {
    await scene.records.pause('mail')
    await scene.join({ sets: { all: 1 } })
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.claimIds(), [])
  },

  async 'results stay in the order of the members, whatever the order of their ends, and are read in pages'(scene) {
    await scene.join({ sets: { all: 5 } })
    const claims = await scene.members()
    for (const [i, claim] of [...claims.entries()].reverse())
      await scene.end(claim, { kind: 'complete', result: { payload: `"${i}"`, onlyForJoins: true } })
    assert.deepEqual(await scene.ends('all', 1, 3), ['1 completed "1"', '2 completed "2"', '3 completed "3"'])
    assert.deepEqual(await scene.ends('all', 4, 10), ['4 completed "4"'])
    assert.deepEqual(await scene.ends('all', 5, 10), [])
  },

  async 'results are kept as they are, with their codec'(scene) {
    await scene.join({ sets: { all: 2 } })
    const [bytes, text] = await scene.members()
    const result = { payload: Uint8Array.of(0, 255, 10), codec: 'raw', onlyForJoins: true as const }
    await scene.end(bytes!, { kind: 'complete', result })
    await scene.end(text!, { kind: 'complete', result: { payload: 'ü\0🎈', keepMs: 1 } })
    const [first, second] = await scene.joins.ends({ queue: 'mail', id: 'join' }, 'all', 0, 10)
    assert.deepEqual([[...(first!.payload as Uint8Array)], first!.codec], [[0, 255, 10], 'raw'])
    assert.deepEqual([second!.payload, second!.codec], ['ü\0🎈', undefined])
  },

  async 'a set that keeps no results keeps fates only'(scene) {
    await scene.join({ sets: { all: { size: 2, keepsResults: false, onDead: 'go-on' } } })
    await scene.completes('"unseen"')
    await scene.dies()
    assert.deepEqual(await scene.ends(), ['0 completed', '1 dead'])
  },

  async 'a result that is only for joins leaves no record of its job'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.completes('"1"')
    assert.equal(await scene.state('join.all.0', members), 'gone')
    assert.equal((await scene.depth(members)).processed, 1)
  },

  async 'a result that is only for joins is ignored if the job is no member'(scene) {
    await scene.add('plain')
    await scene.end(await scene.claimOne(), { kind: 'complete', result: { payload: '"1"', onlyForJoins: true } })
    assert.equal(await scene.state('plain'), 'gone')
  },

  async 'the results of members stay when the records of these are gone'(scene) {
    await scene.join({ sets: { all: 2 } })
    const [kept] = await scene.members(1)
    await scene.end(kept!, { kind: 'complete', result: { payload: '"1"', keepMs: 1_000 } })
    await scene.records.delete(members, { ids: ['join.all.0'] })
    assert.deepEqual(await scene.ends(), ['0 completed "1"'])
    assert.equal(await scene.state(), 'waiting')
  },

  async 'ends of members stay as long as the join, through failures and the morgue'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.completes('"1"')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'once' })
    assert.deepEqual(await scene.ends(), ['0 completed "1"'])
    await scene.end(await scene.claimOne(), { kind: 'bury', error: 'twice' })
    assert.deepEqual(await scene.ends(), ['0 completed "1"'])
    await scene.records.morgue.revive('mail', 'all')
    assert.equal(await scene.state(), 'ready')
    const claim = await scene.claimOne()
    assert.deepEqual(await scene.ends(), ['0 completed "1"'])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.ends(), [])
    assert.equal(await scene.joins.look({ queue: 'mail', id: 'join' }), undefined)
  },

  async 'once a join will run, the ends of its members do not change'(scene) {
    await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })
    await scene.dies()
    assert.equal(await scene.state(), 'ready')
    await scene.records.morgue.revive(members, 'all')
    await scene.completes('"late"')
    assert.deepEqual(await scene.ends(), ['0 dead broken'])
    assert.deepEqual(await scene.claimIds(), ['join'])
  },

  async 'a join may be a member of another'(scene) {
    const inner = newSet('inner', 'all', 1)
    const outer = newSet('outer', 'parts', { ids: 'inner', isMany: false, queue: 'mail' })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ id: 'outer', sets: { parts: { ...outer, size: 1 } } })]],
      ['mail', [{ ...newJoin({ id: 'inner', sets: { all: 1 } }), memberOf: [place('outer', outer, 0)] }]],
      [members, [memberOf('inner', inner, 0)]],
    ])
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    await scene.completes('"row"')
    assert.deepEqual([await scene.state('inner'), await scene.state('outer')], ['ready', 'waiting'])
    const claim = await scene.claimOne()
    assert.deepEqual([claim.id, claim.isJoin, claim.isMember], ['inner', true, true])
    await scene.end(claim, { kind: 'complete', result: { payload: '"sum"', onlyForJoins: true } })
    assert.equal(await scene.state('outer'), 'ready')
    assert.deepEqual(await scene.ends('parts', 0, 10, 'outer'), ['0 completed "sum"'])
  },

  async 'the death of a join goes up to the joins that wait for it'(scene) {
    const outer = newSet('outer', 'parts', { ids: 'inner', isMany: false, queue: 'mail' })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ id: 'outer', sets: { parts: { ...outer, size: 1 } } })]],
      ['mail', [{ ...newJoin({ id: 'inner', sets: { all: 1 } }), memberOf: [place('outer', outer, 0)] }]],
      [members, [memberOf('inner', newSet('inner', 'all', 1), 0)]],
    ])
    await scene.joins.enqueue(calls)
    await scene.dies()
    assert.equal(await scene.state('inner'), 'dead: join-member-dead')
    assert.equal(await scene.state('outer'), 'dead: join-member-dead')
  },

  async 'in a graph members may come before their joins'(scene) {
    const outer = newSet('outer', 'parts', { ids: 'inner', isMany: false, queue: 'mail' })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ id: 'outer', sets: { parts: { ...outer, size: 1 } } })]],
      ['mail', [memberOf('last', newSet('last', 'all', 1), 0)]],
      ['mail', [{ ...newJoin({ id: 'inner', sets: { all: 1 } }), memberOf: [place('outer', outer, 0)] }]],
      [members, [memberOf('inner', newSet('inner', 'all', 1), 0)]],
      ['mail', [newJoin({ id: 'last', sets: { all: { size: 1, queue: 'mail' } } })]],
    ])
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    assert.equal((await scene.set('all', 'last')).added, 1)
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.equal(await scene.state('last'), 'ready')
  },

  async 'a graph sent again is not added twice'(scene) {
    assert.deepEqual(await scene.graph({ sets: { all: 2 } }, 'same'), { outcome: 'added' })
    await scene.completes()
    assert.deepEqual(await scene.graph({ sets: { all: 2 } }, 'same'), { outcome: 'added' })
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.members(), [])
  },

  async 'a graph sent again after another of its id began adds nobody to that'(scene) {
    const sets = { all: newSet('join', 'all', { ids: 'first', size: 1 }) }
    const join = newJoin({ sets })
    const calls = callsOf('first', [
      ['mail', [join]],
      [members, [memberOf('join', sets.all, 0)]],
    ])
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    await scene.completes()
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.equal(await scene.state(), 'gone')
    await scene.join({ sets: { all: newSet('join', 'all', { ids: 'first', size: 2 }) } })
    await scene.completes()

    const again = calls.map((call) => ({ ...call, isResent: true }))
    assert.deepEqual(await scene.joins.enqueue(again), { outcome: 'added' })
    assert.equal(await scene.state(), 'waiting')
    assert.deepEqual((await scene.set()).counts, { completed: 1, dead: 0, cancelled: 0, expired: 0 })
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.members(), [])
  },

  async 'many members with new ids are stored as they are and in their order, however often they are sent'(scene) {
    const sets = [newSet('join', 'all', 300), newSet('join', 'more', 5)]
    const payloads = ['"0"', 'ü\0🎈', '', '{"n":1}']
    const jobs = sets.flatMap((set) =>
      Array.from({ length: set.size! }, (_, n) =>
        memberOf('join', set, n, { payload: payloads[n % payloads.length]! }),
      ),
    )
    const join = newJoin({ sets: { all: sets[0]!, more: sets[1]! } })
    const calls = callsOf('graph', [
      ['mail', [join]],
      [members, jobs],
    ]).map((call) => ({ ...call, hasNewIds: true }))
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    const again = calls.map((call) => ({ ...call, isResent: true }))
    assert.deepEqual(await scene.joins.enqueue(again), { outcome: 'added' })

    const claims = await scene.members(1_000)

    const shown = ({ id, payload }: { readonly id: string; readonly payload?: unknown }) => `${id} ${payload}`
    assert.deepEqual(claims.map(shown), jobs.map(shown))
    for (const some of slicesOf(claims, 100))
      await scene.store.settle(some.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual([(await scene.set()).counts.completed, (await scene.set('more')).counts.completed], [300, 5])
  },

  async 'many members with new ids are refused together, and leave nothing'(scene) {
    const all = newSet('join', 'all', 300)
    const jobs = Array.from({ length: 300 }, (_, n) => memberOf('join', all, n))
    const calls = callsOf('graph', [
      ['mail', [newJoin({ sets: { all } })]],
      [members, jobs],
    ]).map((call) => ({ ...call, hasNewIds: true }))
    const refused = { queue: members, id: 'join.all.0' }
    await scene.openQueue({ name: members, maxPending: 299 })
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'refused', refused, as: 'full' })
    await scene.openQueue({ name: members, maxPending: 300 })
    await scene.records.drain(members)
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'refused', refused, as: 'draining' })
    assert.deepEqual([await scene.state(), await scene.members()], ['gone', []])
    await scene.records.resume(members)
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    assert.equal((await scene.depth(members)).ready, 300)
  },

  async 'a graph whose first job is there already is a duplicate, and adds nothing'(scene) {
    await scene.join({ sets: { all: 1 } })
    assert.deepEqual(await scene.graph({ sets: { all: 3 } }), { outcome: 'duplicate' })
    assert.equal((await scene.members()).length, 1)
  },

  async 'a graph whose first job is remembered is a duplicate'(scene) {
    await scene.join({ sets: { all: 0 }, job: { rememberMs: 60_000 } })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual(await scene.graph({ sets: { all: 1 } }), { outcome: 'duplicate' })
    assert.deepEqual(await scene.members(), [])
  },

  async 'a graph with a member whose id is taken is refused, and adds nothing'(scene) {
    await scene.enqueue(['join.all.1'], { queue: members })
    const refused = { queue: members, id: 'join.all.1' }
    assert.deepEqual(await scene.graph({ sets: { all: 3 } }), { outcome: 'refused', refused, as: 'duplicate' })
    assert.equal(await scene.state(), 'gone')
    assert.deepEqual(await scene.states(members), ['join.all.1 ready'])
  },

  async 'a graph that a full queue refuses adds nothing'(scene) {
    await scene.openQueue({ name: members, maxPending: 2 })
    const answer = await scene.graph({ sets: { all: 3 } })
    assert.deepEqual([answer.outcome, 'as' in answer && answer.as], ['refused', 'full'])
    assert.deepEqual([await scene.states(), await scene.states(members)], [[], []])
  },

  async 'a graph that a draining queue refuses adds nothing'(scene) {
    await scene.records.drain(members)
    const answer = await scene.graph({ sets: { all: 1 } })
    assert.deepEqual([answer.outcome, 'as' in answer && answer.as], ['refused', 'draining'])
    assert.deepEqual(await scene.states(), [])
  },

  async 'a graph with a queue that is not there adds nothing'(scene) {
    const set = newSet('join', 'all', { size: 1, queue: 'nowhere' })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ sets: { all: set } })]],
      ['nowhere', [memberOf('join', set, 0)]],
    ])
    await assert.rejects(scene.joins.enqueue(calls), UnknownQueueError)
    assert.equal(await scene.state(), 'gone')
  },

  async 'neither a waiting join nor a member is replaced'(scene) {
    await scene.join({ sets: { all: 1 } })
    const replace = (id: string) => ({ id, payload: '"other"', ifWaiting: 'replace' as const })
    assert.deepEqual(await scene.enqueue([replace('join')]), ['duplicate'])
    assert.deepEqual(await scene.enqueue([replace('join.all.0')], { queue: members }), ['duplicate'])
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'a join that will run is not replaced, because the results of its members would be lost'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.join({ id: 'later', sets: { all: 1 }, job: { delayMs: 60_000 } })
    await scene.completes('"1"')
    await scene.completes()
    assert.deepEqual([await scene.state(), await scene.state('later')], ['ready', 'scheduled'])
    const replace = ['join', 'later'].map((id) => ({ id, payload: '"other"', ifWaiting: 'replace' as const }))
    assert.deepEqual(await scene.enqueue(replace), ['duplicate', 'duplicate'])
    assert.equal((await scene.claimOne()).isJoin, true)
    assert.deepEqual(await scene.ends(), ['0 completed "1"'])
  },

  async 'a dead join is replaced like any dead job'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.dies()
    assert.deepEqual(await scene.enqueue([{ id: 'join', ifWaiting: 'replace' }]), ['replaced'])
    assert.equal((await scene.claimOne()).isJoin, undefined)
    assert.equal(await scene.joins.look({ queue: 'mail', id: 'join' }), undefined)
  },

  async 'a member of a join that is gone is a job like any other'(scene) {
    await scene.join({ sets: { all: 1 } })
    await scene.records.cancel('mail', { ids: ['join'] })
    await scene.completes('"unheard"')
    assert.equal(await scene.joins.look({ queue: 'mail', id: 'join' }), undefined)
    assert.equal((await scene.depth(members)).processed, 1)
  },

  async 'a join of a later life does not hear the members of an earlier one'(scene) {
    await scene.join({ sets: { all: { size: 1, ids: 'old' } } })
    await scene.records.delete('mail', { ids: ['join'] })
    await scene.join({ sets: { all: { size: 1, ids: 'new' } } })
    const [old, fresh] = await scene.members()
    await scene.end(old!, { kind: 'complete', result: { payload: '"old"', onlyForJoins: true } })
    assert.equal(await scene.state(), 'waiting')
    await scene.end(fresh!, { kind: 'complete', result: { payload: '"new"', onlyForJoins: true } })
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await scene.ends(), ['0 completed "new"'])
  },

  async 'a join of a later life does not hear a job with the id of its member in another queue'(scene) {
    const one = { size: 1, isMany: false, ids: 'same' }
    await scene.join({ sets: { one } })
    await scene.records.delete('mail', { ids: ['join'] })
    const set = newSet('join', 'one', { ...one, queue: 'mail' })
    const later = [newJoin({ sets: { one: set } }), memberOf('join', set, 0)]
    assert.deepEqual(await scene.joins.enqueue(callsOf('later', [['mail', later]])), { outcome: 'added' })
    await scene.completes('"earlier"')
    assert.equal(await scene.state(), 'waiting')
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.equal(await scene.state(), 'ready')
  },

  async 'a member that is added to a later join of the same id has no place in it'(scene) {
    await scene.join({ sets: { all: { ids: 'new' } } })
    assert.deepEqual(await scene.addMembers(newSet('join', 'all', { ids: 'old' }), 0, 1), ['added'])
    assert.equal((await scene.set()).added, 0)
    assert.deepEqual(await scene.addMembers(newSet('join', 'all', { ids: 'new' }), 0, 1), ['added'])
    await scene.completes('"old"')
    assert.deepEqual(await scene.ends(), [])
  },

  async 'a set is sealed by the number of its members, and may then be complete at once'(scene) {
    const set = newSet('join', 'all', {})
    await scene.join({ sets: { all: {} } })
    assert.deepEqual(await scene.addMembers(set, 0, 2), ['added', 'added'])
    await scene.completes()
    await scene.completes()
    assert.equal(await scene.state(), 'waiting')
    assert.equal(await scene.seal({ all: 2 }), 'sealed')
    assert.equal(await scene.state(), 'ready')
  },

  async 'a set sealed with nobody is complete'(scene) {
    await scene.join({ sets: { all: {} } })
    assert.equal(await scene.seal({ all: 0 }), 'sealed')
    assert.equal(await scene.state(), 'ready')
  },

  async 'members added again are not added twice, even if they have ended'(scene) {
    const set = newSet('join', 'all', {})
    await scene.join({ sets: { all: {} } })
    await scene.addMembers(set, 0, 2)
    await scene.completes()
    assert.deepEqual(await scene.addMembers(set, 0, 3), ['duplicate', 'duplicate', 'added'])
    assert.equal((await scene.set()).added, 3)
    await scene.seal({ all: 3 })
    await scene.completes()
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
  },

  async 'a member whose id another job has, or had and is remembered by, is not added to its set'(scene) {
    const set = newSet('join', 'all', {})
    await scene.join({ sets: { all: {} } })
    await scene.enqueue([{ id: 'join.all.0', rememberMs: 60_000 }], { queue: members })
    assert.deepEqual(await scene.addMembers(set, 0, 1), ['duplicate'])
    assert.equal((await scene.set()).added, 0)
    await scene.completes()
    assert.deepEqual(await scene.addMembers(set, 0, 1), ['duplicate'])
    assert.equal((await scene.set()).added, 0)
    await scene.seal({ all: 0 })
    assert.equal(await scene.state(), 'ready')
  },

  async 'members added again by another producer are not added twice, though both take their ids for new'(scene) {
    const set = newSet('join', 'all', {})
    await scene.join({ sets: { all: {} } })
    const add = async (callId: string, from: number, to: number) => {
      const jobs = Array.from({ length: to - from }, (_, n) => memberOf('join', set, from + n))
      return (await scene.store.enqueue([{ callId, queue: members, jobs, hasNewIds: true }]))[0]
    }
    assert.deepEqual(await add('one', 0, 5), Array(5).fill('added'))
    const running = await scene.members(1)
    assert.deepEqual(await add('other', 0, 5), Array(5).fill('duplicate'))
    assert.deepEqual(await add('more', 4, 9), ['duplicate', ...Array(4).fill('added')])
    assert.equal((await scene.set()).added, 9)
    await scene.seal({ all: 9 })
    for (const claim of [...running, ...(await scene.members())]) await scene.end(claim, { kind: 'complete' })
    assert.equal((await scene.set()).counts.completed, 9)
    assert.equal(await scene.state(), 'ready')
  },

  async 'sealing again by the same number is harmless, by another is refused'(scene) {
    const set = newSet('join', 'all', {})
    await scene.join({ sets: { all: {} } })
    await scene.addMembers(set, 0, 2)
    await assert.rejects(scene.seal({ all: 1 }), InvalidArgumentError)
    await assert.rejects(scene.seal({ other: 1 }), InvalidArgumentError)
    assert.equal(await scene.seal({ all: 2 }), 'sealed')
    assert.equal(await scene.seal({ all: 2 }), 'sealed')
    await assert.rejects(scene.seal({ all: 3 }), InvalidArgumentError)
    assert.equal((await scene.set()).size, 2)
  },

  async 'a join that is gone, or ready, is not sealed'(scene) {
    assert.equal(await scene.seal({ all: 1 }, 'never'), 'gone')
    await scene.join({ sets: { all: 0 } })
    assert.equal(await scene.seal({ all: 0 }), 'gone')
  },

  async 'the oldest outstanding member is named'(scene) {
    await scene.join({ sets: { all: 3 } })
    assert.equal((await scene.set()).oldest, 0)
    const [first, second] = await scene.members()
    await scene.end(second!, { kind: 'complete' })
    assert.equal((await scene.set()).oldest, 0)
    await scene.end(first!, { kind: 'complete' })
    assert.equal((await scene.set()).oldest, 2)
  },

  async 'a job that is neither a join nor a member is as before'(scene) {
    await scene.add('plain')
    const record = await scene.records.get('mail', 'plain')
    assert.deepEqual([record?.isJoin, record?.memberOf], [undefined, undefined])
    assert.equal(await scene.joins.look({ queue: 'mail', id: 'plain' }), undefined)
    assert.equal(newJob({ id: 'plain' }).join, undefined)
  },
})
