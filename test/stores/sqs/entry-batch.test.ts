/** Entries that are sent in order: what is added behind a failed one while others may still join its call. */

import { describe, expect, it } from 'vitest'
import { EntryBatch } from '#src/stores/sqs/client/entry-batch.js'
import type { SendEntry, SqsApi } from '#src/stores/sqs/client/sqs-api.js'

type Answer = Awaited<ReturnType<SqsApi['call']>>

/** A service whose first call is answered by the test; it takes all later ones. */
function batchOn() {
  const sent: string[][] = []
  const first: { resolve?: (answer: Answer) => void; reject?: (error: Error) => void } = {}
  const answer = new Promise<Answer>((resolve, reject) => Object.assign(first, { resolve, reject }))
  const call = (_: string, { Entries }: { Entries: SendEntry[] }) => {
    sent.push(Entries.map(({ MessageBody }) => MessageBody))
    return sent.length === 1 ? answer : Promise.resolve({})
  }
  const api: SqsApi = { where: 'a test', call: call as unknown as SqsApi['call'], made: () => ({}), close() {} }
  const batch = new EntryBatch({ kind: 'SendMessageBatch', queueUrl: 'q', api, lingerMs: 0, inOrder: true })
  const add = (MessageBody: string, MessageGroupId: string) => batch.add({ MessageBody, MessageGroupId })
  return { sent, first, add }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('an entry that is added in the turn in which one of its group fails', () => {
  it('fails like it, and one of another group is sent', async () => {
    const { sent, first, add } = batchOn()
    const one = add('a1', 'a')
    await turn()
    const failure = { Id: '0', Code: 'no', SenderFault: true }
    first.resolve!({ Failed: [failure] })
    const later = [add('a2', 'a'), add('b1', 'b')]

    expect(await Promise.all([one, ...later])).toEqual([failure, failure, undefined])
    expect(sent).toEqual([['a1'], ['b1']])
  })

  it('fails like it if the whole call fails', async () => {
    const { sent, first, add } = batchOn()
    const one = add('a1', 'a')
    await turn()
    first.reject!(new Error('gone'))
    const later = [add('a2', 'a'), add('b1', 'b')]

    for (const added of await Promise.allSettled([one, ...later])) expect(added.status).toBe('rejected')
    expect(sent).toEqual([['a1']])
  })
})
