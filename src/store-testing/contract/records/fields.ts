/** Contract cases: fields, which anybody may add to a job. */

import assert from 'node:assert/strict'
import { mostFields } from '../../../core/job/job-fields.js'
import {
  exactEnqueue,
  ordered,
  orderedCase,
  plainCase,
  plainConcern,
  records,
  tellsCrashes,
} from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const fieldsOf = async (scene: Scene, id: string) => (await scene.records.get(scene.queue, id))?.fields

export const fields = plainConcern('fields', [records], {
  async 'fields are set one by one, the last write of each counts, and null removes one'(scene) {
    await scene.add('a')
    const set = (changes: Parameters<typeof scene.records.setFields>[2]) =>
      scene.records.setFields(scene.queue, 'a', changes)
    assert.equal(await set({ node: 'eu-3', cost: 0.25, paid: false }), 'ok')
    assert.equal(await set({ cost: 1e300, 'a.b-c_1': 'Grüße "x"=\0\n' }), 'ok')
    assert.deepEqual(await fieldsOf(scene, 'a'), {
      node: 'eu-3',
      cost: 1e300,
      paid: false,
      'a.b-c_1': 'Grüße "x"=\0\n',
    })
    assert.equal(await set({ node: null, unknown: null, paid: true }), 'ok')
    assert.deepEqual(await fieldsOf(scene, 'a'), { cost: 1e300, paid: true, 'a.b-c_1': 'Grüße "x"=\0\n' })
    assert.equal(await set({ cost: null, paid: null, 'a.b-c_1': null }), 'ok')
    assert.equal(await fieldsOf(scene, 'a'), undefined)
  },

  'a job keeps its fields through all its states, and lists show them': plainCase(
    [records, tellsCrashes],
    async (scene) => {
      await scene.add({ id: 'a', delayMs: 1_000 }, 'b')
      const set = (changes: Record<string, number>) => scene.records.setFields(scene.queue, 'a', changes)
      const listed = async () => {
        const { jobs } = await scene.records.list(scene.queue, { by: 'id', limit: 10 })
        return jobs.map((job) => job.fields)
      }
      await set({ scheduled: 1 })
      await scene.advance(1_000)
      const { claims } = await scene.claim()
      await set({ running: 2 })
      assert.deepEqual(await listed(), [{ scheduled: 1, running: 2 }, undefined])
      const claim = claims.find(({ id }) => id === 'a')!
      await scene.end(claim, { kind: 'retry', delayMs: 0, error: 'broken' })
      await set({ ready: 3 })
      await scene.end(await scene.claimOne(), { kind: 'bury' })
      await set({ dead: 4 })
      await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
      await scene.end(await scene.claimOne(), { kind: 'complete', result: { payload: '1' } })
      await set({ completed: 5 })

      const all = { scheduled: 1, running: 2, ready: 3, dead: 4, completed: 5 }
      assert.deepEqual(await listed(), [all, undefined])
    },
  ),

  async 'fields change neither the place of a job nor its times'(scene) {
    await scene.add('a', 'b', 'c')
    const before = await scene.records.get(scene.queue, 'b')
    await scene.advance(500)
    await scene.records.setFields(scene.queue, 'b', { node: 'eu-3' })

    assert.deepEqual(await scene.records.get(scene.queue, 'b'), { ...before, fields: { node: 'eu-3' } })
    const { claims } = await scene.claim()
    assert.deepEqual(
      claims.map(({ id }) => id),
      ['a', 'b', 'c'],
    )
    for (const claim of claims) await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.states(), [])
    await scene.add('b')
    assert.deepEqual([(await scene.job('b')).fields, await scene.claimIds()], [null, ['b']])
  },

  async 'anybody may set fields while the job runs, and its claim goes on'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'w1' })
    const other = await scene.harness.open()
    assert.equal(await other.records?.setFields(scene.queue, 'a', { seen: true }), 'ok')

    assert.equal(await scene.extend(claim), 'ok')
    assert.deepEqual(await fieldsOf(scene, 'a'), { seen: true })
    await scene.end(claim, { kind: 'complete' })
    await scene.add('a')
    assert.equal(await fieldsOf(scene, 'a'), undefined)
  },

  'fields survive a crash and the retry after it': plainCase([records, tellsCrashes], async (scene) => {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
    await scene.advance(1_000)
    await scene.claimOne({ alone: true })

    assert.deepEqual(await fieldsOf(scene, 'a'), { node: 'eu-3' })
  }),

  async 'fields of a job that is not kept are answered gone'(scene) {
    assert.equal(await scene.records.setFields(scene.queue, 'nobody', { a: 1 }), 'gone')
    await scene.addCompleted('short', { rememberMs: 60_000 }, 1_000)
    await scene.advance(1_000)
    assert.equal(await scene.records.setFields(scene.queue, 'short', { a: 1 }), 'gone')
  },

  'fields end with the job: deleted, cancelled, replaced, trimmed': plainCase(
    [records, exactEnqueue],
    async (scene) => {
      for (const end of ['delete', 'cancel'] as const) {
        await scene.add({ id: end, delayMs: 1_000 })
        await scene.records.setFields(scene.queue, end, { a: 1 })
        await scene.records[end](scene.queue, { ids: [end] })
      }
      await scene.add({ id: 'again', delayMs: 1_000 })
      await scene.records.setFields(scene.queue, 'again', { a: 1 })
      await scene.enqueue([{ id: 'again', delayMs: 1_000, ifWaiting: 'replace' }])
      await scene.add({ id: 'delete', delayMs: 1_000 })
      await scene.advance(61_000)
      await scene.add({ id: 'cancel', delayMs: 1_000 })

      for (const id of ['delete', 'cancel', 'again']) assert.equal(await fieldsOf(scene, id), undefined, id)
    },
  ),

  async 'too many fields are refused, and nothing is changed'(scene) {
    await scene.add('a')
    const many = Object.fromEntries(Array.from({ length: mostFields }, (_, i) => [`n${i}`, i]))
    assert.equal(await scene.records.setFields(scene.queue, 'a', many), 'ok')
    assert.equal(await scene.records.setFields(scene.queue, 'a', { one: 1, n0: -1 }), 'full')
    assert.deepEqual(await fieldsOf(scene, 'a'), many)
    assert.equal(await scene.records.setFields(scene.queue, 'a', { one: 1, n0: null }), 'ok')

    await scene.add('b')
    const large = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`n${i}`, 'x'.repeat(254)]))
    assert.equal(await scene.records.setFields(scene.queue, 'b', large), 'full')
    assert.equal(await fieldsOf(scene, 'b'), undefined)
  },

  'fields of an ordered id are those of its live job, through retries and merges': orderedCase(
    [records, ordered],
    async (scene) => {
      await scene.push('a', '1')
      await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
      const claim = await scene.take()
      await scene.push('a', '2')
      await scene.records.setFields(scene.queue, 'a', { seen: true })
      await scene.end(claim, { kind: 'retry', delayMs: 0 })
      assert.deepEqual(await fieldsOf(scene, 'a'), { node: 'eu-3', seen: true })

      const again = await scene.take()
      await scene.push('a', '3')
      await scene.end(again, { kind: 'complete' })
      assert.equal(await fieldsOf(scene, 'a'), undefined)
    },
  ),

  'an ordered job takes its fields to another shard, and not into the morgue': orderedCase(
    [records, ordered],
    async (scene) => {
      await scene.push('a', '1')
      await scene.records.setFields(scene.queue, 'a', { node: 'eu-3' })
      while ((await scene.records.reshard(scene.queue, 4)).more);
      assert.deepEqual(await fieldsOf(scene, 'a'), { node: 'eu-3' })
      await scene.records.bury(scene.queue, { ids: ['a'] })

      assert.equal((await scene.records.morgue.get(scene.queue, 'a'))?.fields, undefined)
      assert.equal(await scene.records.setFields(scene.queue, 'a', { b: 1 }), 'gone')
      await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
      assert.equal(await fieldsOf(scene, 'a'), undefined)
    },
  ),
})
