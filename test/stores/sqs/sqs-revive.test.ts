/** What a change of all dead jobs takes on SQS, and where it ends. */

import { describe, expect, it } from 'vitest'
import { sqsScenes } from './sqs-scene.js'

const scene = sqsScenes()

async function deadScene() {
  const opened = await scene()
  const { api, add, claim, settle, advance, namespace } = opened
  const [live, dead] = await Promise.all(
    ['', 'dlq-'].map(async (prefix) => {
      const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `${prefix}${namespace}-mail` })
      return QueueUrl
    }),
  )
  const send = (QueueUrl: string, MessageBody: string) =>
    api.call('SendMessageBatch', { QueueUrl, Entries: [{ Id: '0', MessageBody }] })
  let runs = 0
  /** A worker whose jobs die at once. */
  const work = async () => {
    advance(1)
    for (const held of await claim()) {
      runs += 1
      await settle(held, { kind: 'bury', reason: 'broken' })
    }
    advance(1)
  }
  return { ...opened, add, live: live!, dead: dead!, send, work, runs: () => runs }
}

describe('a revival of all dead jobs', () => {
  it('revives each once, though it dies again at once', async () => {
    const { add, work, runs, open, store } = await deadScene()
    await add([{ id: 'a' }, { id: 'b' }])
    await work()
    const admin = await open(async () => {
      if (runs() > 20) throw new Error('it does not end')
      await work()
    })

    expect(await admin.morgue.revive('mail', 'all')).toEqual({ changed: 2, more: false })
    expect(runs()).toBe(4)
    expect((await store.depth(['mail'])).depths).toMatchObject([{ ready: 0, running: 0, dead: 2 }])
  })

  it('revives a message that is no job once, though it comes back as another', async () => {
    const { live, send, work, open } = await deadScene()
    await send(live, 'no job')
    await work()
    let polls = 0
    const admin = await open(async () => {
      if (++polls > 20) throw new Error('it does not end')
      await work()
    })

    expect(await admin.morgue.revive('mail', 'all')).toEqual({ changed: 1, more: false })
  })

  it.each(['revive', 'delete'] as const)(
    'ends though jobs go on dying, and its next step leaves those out too: %s',
    async (verb) => {
      const { add, dead, send, work, open, advance, store } = await deadScene()
      await add([{ id: 'a' }])
      await work()
      let deaths = 0
      const admin = await open(async () => {
        if (++deaths > 100) throw new Error('it does not end')
        advance(1)
        await send(dead, `death ${deaths}`)
      })

      expect(await admin.morgue[verb]('mail', 'all')).toEqual({ changed: 1, more: true })
      expect(await admin.morgue[verb]('mail', 'all')).toEqual({ changed: 0, more: false })
      const { depths } = await store.depth(['mail'])
      expect(depths).toMatchObject([{ dead: deaths }])
      // A later action has a later start.
      advance(60_000)
      expect((await admin.morgue[verb]('mail', 'all')).changed).toBeGreaterThan(0)
    },
  )

  it('sends a job that leaves no room for its id without it', async () => {
    const { dead, send, claim, store } = await deadScene()
    const envelope = { v: 1, task: 'send', payload: '' }
    const payload = 'x'.repeat(1_048_576 - JSON.stringify(envelope).length)
    await send(dead, JSON.stringify({ ...envelope, payload }))

    expect(await store.morgue.revive('mail', 'all')).toEqual({ changed: 1, more: false })
    expect(await claim()).toMatchObject([{ task: 'send', attempt: 1, payload }])
  })

  it('revives the others, and then throws, if SQS refuses one of them', async () => {
    const { api, store, send, namespace } = await deadScene()
    const small = `${namespace}-small`
    for (const name of [small, `dlq-${small}`])
      await api.call('CreateQueue', {
        QueueName: name,
        Attributes: name === small ? { MaximumMessageSize: '1024' } : {},
      })
    await store.open([{ name: 'small', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: `dlq-${small}` })
    const job = (id: string, payload: string) => JSON.stringify({ v: 1, id, task: 'send', payload })
    await send(QueueUrl, job('a', '1'))
    await send(QueueUrl, job('large', 'x'.repeat(2_000)))
    await send(QueueUrl, job('b', '2'))

    expect(await store.morgue.revive('small', 'all')).toEqual({ changed: 2, more: true })
    await expect(store.morgue.revive('small', 'all')).rejects.toMatchObject({ code: 'store-refused' })
    await expect(store.morgue.revive('small', { ids: ['large'] })).rejects.toMatchObject({ code: 'store-refused' })
    expect((await store.depth(['small'])).depths).toMatchObject([{ ready: 2, dead: 1 }])
  })
})
