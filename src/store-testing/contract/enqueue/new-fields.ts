/** Contract cases: the fields that a job has from its enqueue on. */

import assert from 'node:assert/strict'
import { mostFields } from '../../../core/job/job-fields.js'
import type { NewJob } from '../../../stores/contract/new-job.js'
import {
  expires,
  groups,
  hasFields,
  joinCase,
  plainCase,
  plainConcern,
  priority,
  records,
  scheduled,
  tellsCrashes,
} from '../scenes/contract-case.js'
import { members } from '../scenes/join-scene.js'
import { newJob, type Scene } from '../scenes/scene.js'
import { hourly, schedulesOf, storedSchedule, tickOf } from '../scenes/schedule-words.js'

const needs = [records, hasFields]
const order = { order: '4711', paid: false, cost: 0.25 }

const fieldsOf = async (scene: Scene, id: string, queue = scene.queue) => (await scene.records.get(queue, id))?.fields

export const newFields = plainConcern('fields of new jobs', needs, {
  async 'a new job has its fields at once, in its record and in lists, and others have none'(scene) {
    await scene.add('before', { id: 'a', fields: order }, 'behind')
    assert.deepEqual(await fieldsOf(scene, 'a'), order)
    const { jobs } = await scene.records.list(scene.queue, { by: 'time', limit: 10 })
    assert.deepEqual(
      jobs.map(({ id, fields }) => [id, fields]),
      [
        ['before', undefined],
        ['a', order],
        ['behind', undefined],
      ],
    )
    assert.deepEqual(await scene.claimIds(), ['before', 'a', 'behind'])
  },

  'fields go with everything that a job may have': plainCase([...needs, priority, groups, expires], async (scene) => {
    const kinds: Record<string, Partial<NewJob>> = {
      delayed: { delayMs: 1_000 },
      dated: { runAt: (await scene.now()) + 2_000 },
      urgent: { priority: 7 },
      grouped: { group: 'x' },
      expiring: { expiresMs: 60_000 },
      own: { rememberMs: 60_000, meta: '{"a":1}' },
      bytes: { payload: Uint8Array.of(0, 255), codec: 'raw' },
      weird: { fields: { 'a.b-c_1': 'Grüße "x"=\0\n', 'big.number': 1e300 } },
    }
    const jobs = Object.entries(kinds).map(([id, kind]) => ({ id, fields: order, ...kind }))
    await scene.add(...jobs)
    for (const { id, fields } of jobs) assert.deepEqual(await fieldsOf(scene, id), fields, id)
    await scene.advance(2_000)
    const { claims } = await scene.claim({ limit: 20 })
    assert.deepEqual(claims.map(({ id }) => id).sort(), Object.keys(kinds).sort())
    for (const { id, fields } of jobs) assert.deepEqual(await fieldsOf(scene, id), fields, id)
  }),

  async 'changes begin with the fields of the enqueue, which count for the bounds'(scene) {
    const many = Object.fromEntries(Array.from({ length: mostFields }, (_, i) => [`n${i}`, i]))
    await scene.add({ id: 'a', fields: many })
    assert.equal(await scene.records.setFields(scene.queue, 'a', { one: 1 }), 'full')
    assert.equal(await scene.records.setFields(scene.queue, 'a', { one: 1, n0: null, n1: 'x' }), 'ok')
    const { n0: _, ...rest } = many
    assert.deepEqual(await fieldsOf(scene, 'a'), { ...rest, n1: 'x', one: 1 })
  },

  'a job keeps them through all its states': plainCase([...needs, tellsCrashes], async (scene) => {
    await scene.add({ id: 'a', fields: order })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    const claim = await scene.claimOne({ alone: true })
    await scene.end(claim, { kind: 'retry', delayMs: 1_000, error: 'broken' })
    assert.deepEqual(await fieldsOf(scene, 'a'), order)
    await scene.advance(1_000)
    await scene.end(await scene.claimOne(), { kind: 'bury' })
    assert.deepEqual(await fieldsOf(scene, 'a'), order)
    await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
    await scene.end(await scene.claimOne(), { kind: 'complete', result: { payload: '1' } })
    assert.deepEqual(await fieldsOf(scene, 'a'), order)
  }),

  async 'they end with the job, however it ends'(scene) {
    const ends: Record<string, (id: string) => Promise<unknown>> = {
      completed: async () => scene.end(await scene.claimOne(), { kind: 'complete' }),
      deleted: (id) => scene.records.delete(scene.queue, { ids: [id] }),
      cancelled: async (id) => {
        await scene.records.cancel(scene.queue, { ids: [id] })
        await scene.advance(61_000)
      },
    }
    for (const [id, end] of Object.entries(ends)) {
      await scene.add({ id, fields: order })
      await end(id)
      await scene.add({ id, delayMs: 3_600_000 })
      assert.equal(await fieldsOf(scene, id), undefined, id)
    }
  },

  'the jobs of a schedule have those of its definition': plainCase([...needs, scheduled], async (scene) => {
    const { id: _, ...job } = newJob({ id: 'a', fields: order })
    await schedulesOf(scene.store).put(hourly('a', await scene.now(), { definition: { job } }), undefined)
    const stored = await storedSchedule(scene.store, 'a')
    assert.deepEqual(stored.definition.job.fields, order)
    const tick = tickOf(stored)
    await schedulesOf(scene.store).tick(tick)
    assert.deepEqual(await fieldsOf(scene, tick.jobs[0]!.id), order)
  }),

  async 'a duplicate leaves those of the job that is there, also within one call'(scene) {
    await scene.add({ id: 'a', fields: order }, 'b')
    assert.deepEqual(
      await scene.enqueue([
        { id: 'a', fields: { order: 'other' } },
        { id: 'b', fields: order },
        { id: 'c', fields: { first: true } },
        { id: 'c', fields: { second: true } },
        { id: 'd' },
        { id: 'd', fields: order },
      ]),
      ['duplicate', 'duplicate', 'added', 'duplicate', 'added', 'duplicate'],
    )
    assert.deepEqual(await Promise.all(['a', 'b', 'c', 'd'].map((id) => fieldsOf(scene, id))), [
      order,
      undefined,
      { first: true },
      undefined,
    ])
  },

  async 'a job that takes the place of another has its own'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000, fields: order }, { id: 'b', delayMs: 1_000 }, { id: 'c', fields: order })
    const replaced = [
      { id: 'a', delayMs: 1_000, ifWaiting: 'replace', fields: { order: 'other' } },
      { id: 'b', delayMs: 1_000, ifWaiting: 'replace', fields: order },
      { id: 'c', ifWaiting: 'replace' },
    ] as const
    assert.deepEqual(await scene.enqueue(replaced), ['replaced', 'replaced', 'replaced'])
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((id) => fieldsOf(scene, id))), [
      { order: 'other' },
      order,
      undefined,
    ])
  },

  async 'a dead job whose place is taken leaves none'(scene) {
    await scene.addDead('a', { fields: { old: true } })
    assert.deepEqual(await scene.enqueue([{ id: 'a', ifWaiting: 'replace', fields: order }]), ['replaced'])
    assert.deepEqual(await fieldsOf(scene, 'a'), order)
  },

  async 'a call that is sent again gets its first answer, and changes no fields'(scene) {
    const call = { callId: 'again' }
    assert.deepEqual(await scene.enqueue([{ id: 'a', fields: order }, { id: 'b' }], call), ['added', 'added'])
    await scene.records.setFields(scene.queue, 'a', { order: 'other' })
    assert.deepEqual(await scene.enqueue([{ id: 'a', fields: order }, { id: 'b' }], call), ['added', 'added'])
    assert.deepEqual(await fieldsOf(scene, 'a'), { ...order, order: 'other' })
  },

  'a join and its members have theirs': joinCase(needs, async (scene) => {
    await scene.join({ sets: { all: 2 }, job: { fields: order }, member: { fields: { part: true } } })
    assert.deepEqual(await fieldsOf(scene, 'join'), order)
    assert.deepEqual(await fieldsOf(scene, 'join.all.1', members), { part: true })
    await scene.completes()
    await scene.completes()
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(await fieldsOf(scene, 'join'), order)
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    assert.deepEqual(await scene.states(), [])
  }),

  'a join that is deleted while it waits leaves none': joinCase(needs, async (scene) => {
    await scene.join({ sets: { all: 1 }, job: { fields: order } })
    await scene.records.delete(scene.queue, { ids: ['join'] })
    await scene.add('join')
    assert.equal(await fieldsOf(scene, 'join'), undefined)
  }),
})
