/** The tasks of a queue with an example of their input, for who enqueues a job by hand. */

import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { exampleOf } from '#src/web/state/task-examples.js'
import { sync, token, WebScene } from './web-scene.js'

describe('an example of a schema', () => {
  it.each([
    [
      { type: 'object', properties: { to: { type: 'string' }, cc: { type: 'string' } }, required: ['to'] },
      { to: 'text' },
    ],
    [{ type: 'array', items: { type: 'integer', minimum: 3 } }, [3]],
    [{ type: ['string', 'null'], format: 'email' }, 'ada@example.com'],
    [{ anyOf: [{ const: 'a' }, { type: 'null' }] }, 'a'],
    [{ enum: ['low', 'high'] }, 'low'],
    [{ type: 'string', default: 'eu', examples: ['us'] }, 'us'],
    [
      { allOf: [{ type: 'object', properties: { a: { type: 'boolean' } } }, { const: { b: null } }] },
      { a: false, b: null },
    ],
    [{ $ref: '#/$defs/one', $defs: { one: { type: 'number' } } }, 0],
    [{}, undefined],
  ])('of %j is %j', (schema, example) => {
    expect(exampleOf(schema)).toEqual(example)
  })

  it('that contains itself ends', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
    expect(JSON.stringify(exampleOf({ $ref: '#/$defs/node', $defs: { node } })).length).toBeLessThan(200)
  })
})

const input = z.object({
  to: z.email(),
  copies: z.int().min(1),
  kind: z.enum(['letter', 'parcel']),
  note: z.string().optional(),
})
const post = defineTask({ name: 'post', queue: 'mail', input, run: () => {} })
const plain = defineTask({ name: 'plain', queue: 'mail', run: (_: { readonly secret: string }) => {} })
const unused = defineTask({ name: 'unused', queue: 'mail', run: () => {} })
const given = { tasks: [post, plain, unused, sync], schedules: {} }

describe.each(['sqlite', 'redis'] as const)('on %s, the tasks of a queue', (store) => {
  it('have an example of their schema, which can be enqueued, or of their latest job', async () => {
    const scene = await WebScene.on(store, { token }, given)
    await scene.mill.enqueue(plain, { secret: 's3' })
    await scene.mill.enqueue(sync, { order: '7' })
    const { items } = (await scene.get('queues/mail/tasks')).json as { items: { name: string; example?: unknown }[] }

    expect(items).toEqual([
      { name: 'post', example: { to: 'ada@example.com', copies: 1, kind: 'letter' } },
      { name: 'plain', example: { secret: 's3' } },
      { name: 'unused' },
    ])
    expect((await scene.post('queues/mail/jobs', { task: 'post', input: items[0]!.example })).status).toBe(201)
    expect((await scene.get('queues/orders/tasks')).json).toEqual({
      items: [{ name: 'sync-order', example: { order: '7' } }],
    })
    expect((await scene.get('queues/none/tasks')).status).toBe(404)
  })

  it('show nothing of a job that the window hides', async () => {
    const scene = await WebScene.on(store, { token, hidePayloads: true }, given)
    await scene.mill.enqueue(plain, { secret: 's3' })
    expect((await scene.get('queues/mail/tasks')).text).not.toContain('s3')
  })
})
