/** A service that takes a call and does not answer: when the call is broken off, and when it is tried again. */

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { SqsCalls } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'

/** `answer` is given each call with its number, from 1. */
async function apiOn(answer: (response: ServerResponse, call: number) => void, answerMs: number) {
  const calls: number[] = []
  const server = createServer((incoming, response) => {
    incoming.resume()
    answer(response, calls.push(calls.length + 1))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const api = await openSqs({ region: 'eu-central-1', endpoint, poll: 'first' }, new ApiCalls(), answerMs)
  onTestFinished(() => {
    api.close()
    server.closeAllConnections()
    server.close()
  })
  return { api, calls }
}

const receive = (WaitTimeSeconds: number): SqsCalls['ReceiveMessage']['input'] => ({
  ...{ QueueUrl: 'http://127.0.0.1/q', MaxNumberOfMessages: 1, VisibilityTimeout: 30, WaitTimeSeconds },
  ...{ MessageSystemAttributeNames: [], MessageAttributeNames: [] },
})
const headers = { 'content-type': 'application/x-amz-json-1.0' }
const unanswered = (answerMs: number) => ({
  code: 'store-unavailable',
  inDoubt: true,
  message: expect.stringContaining(`no answer within ${answerMs / 1_000} s`),
})

it('a call that is never answered fails as in doubt after its time, with all tries of the SDK', async () => {
  const { api } = await apiOn(() => {}, 300)
  const Entries = [{ Id: '0', ReceiptHandle: 'r', VisibilityTimeout: 30 }]

  const beat = api.call('ChangeMessageVisibilityBatch', { QueueUrl: 'http://127.0.0.1/q', Entries })
  await expect(beat).rejects.toMatchObject(unanswered(300))
})

it('an answer that begins and never ends is broken off too', async () => {
  const { api } = await apiOn((response) => void response.writeHead(200, headers).write('{'), 300)

  await expect(api.call('ReceiveMessage', receive(0))).rejects.toMatchObject(unanswered(300))
})

it('a call on a dead connection is tried again on another one', async () => {
  const answered = (response: ServerResponse) => response.writeHead(200, headers).end('{}')
  const { api, calls } = await apiOn((response, call) => void (call === 1 || answered(response)), 6_000)

  await api.call('ReceiveMessage', receive(0))
  expect(calls).toEqual([1, 2])
})

it('a long poll has the whole time for one try', async () => {
  const { api, calls } = await apiOn(() => {}, 3_000)

  await expect(api.call('ReceiveMessage', receive(20))).rejects.toMatchObject(unanswered(3_000))
  expect(calls).toEqual([1])
})
