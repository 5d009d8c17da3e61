/** Claimers that rest on one queue and share its polls. */

import { expect, it } from 'vitest'
import type { SqsApi, SqsCall, SqsMessage } from '#src/stores/sqs/client/sqs-api.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { message } from './batching-service.js'

/** A service whose long polls the test answers. */
function polledService() {
  const polls = new Map<string, (messages: SqsMessage[]) => void>()
  const call = (kind: SqsCall, input: { QueueName?: string; QueueUrl?: string; WaitTimeSeconds?: number }) => {
    if (kind === 'GetQueueUrl') return Promise.resolve({ QueueUrl: input.QueueName })
    if (kind !== 'ReceiveMessage' || input.WaitTimeSeconds === 0) return Promise.resolve({})
    return new Promise((resolve) => polls.set(input.QueueUrl!, (Messages) => resolve({ Messages })))
  }
  const answer = (queue: string, messages: SqsMessage[]) => {
    const poll = polls.get(queue)
    polls.delete(queue)
    poll?.(messages)
    return poll !== undefined
  }
  const api: SqsApi = { where: 'a service of the test', call: call as SqsApi['call'], made: () => ({}), close() {} }
  return { api, answer }
}

it('a claimer whose poll has woken another is woken by the next message', async () => {
  const { api, answer } = polledService()
  const store = new SqsStore({ api, namespace: '', worthAsking: () => true })
  await store.open(['a', 'b'].map((name) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} })))
  const claim = async (queue: string) =>
    (await store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 30_000 })).claims.map(({ id }) => id)
  expect([...(await claim('b')), ...(await claim('a'))]).toEqual([])
  const signal = new AbortController().signal
  const onBoth = store.wait(['b', 'a'], 60_000, signal)
  const onOne = store.wait(['a'], 60_000, signal)
  await new Promise(setImmediate)
  expect(answer('a', [message(1)])).toBe(true)
  expect(await onBoth).toEqual(['a'])
  expect(await claim('a')).toEqual(['job-1'])
  expect(answer('a', [message(2)])).toBe(true)

  expect(await onOne).toEqual(['a'])
  await store.close()
})
