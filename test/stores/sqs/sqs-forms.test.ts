/** What goes to SQS and comes from it: addresses, names, envelopes. */

import { describe, expect, it } from 'vitest'
import { sqsAddress, sqsAddressText } from '#src/stores/sqs/client/sqs-address.js'
import { sqsError } from '#src/stores/sqs/client/sqs-errors.js'
import { ApiCalls, sqsOf } from '#src/stores/sqs/client/sqs-sdk.js'
import { type Envelope, envelopeText, readEnvelope } from '#src/stores/sqs/envelope.js'
import { arrivalOf } from '#src/stores/sqs/receive/arrival.js'
import { queueNames } from '#src/stores/sqs/sqs-queue.js'

describe('an SQS address', () => {
  it('names a region, and optionally an endpoint and a way to poll', () => {
    expect(sqsAddress('sqs://eu-central-1')).toEqual({ region: 'eu-central-1', poll: 'first' })
    expect(sqsAddress('sqs://us-gov-west-1/')).toEqual({ region: 'us-gov-west-1', poll: 'first' })
    const local = sqsAddress('sqs://us-west-2?endpoint=http://localhost:9324&poll=each')
    expect(local).toEqual({ region: 'us-west-2', endpoint: 'http://localhost:9324', poll: 'each' })
    expect(sqsAddressText(local)).toBe('sqs://us-west-2?endpoint=http://localhost:9324')
  })

  it.each([
    ['sqs:', 'expected'],
    ['sqs://', 'no region'],
    ['sqs://frankfurt', "'frankfurt' is no region"],
    ['sqs://EU-CENTRAL-1', 'no region'],
    ['sqs://key:secret@eu-central-1', 'not shown'],
    ['sqs://eu-central-1?secretAccessKey=hush', "'secretAccessKey' is no parameter"],
    ['sqs://eu-central-1?endpoint=localhost:9324', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=ftp://localhost', 'the endpoint'],
    ['sqs://eu-central-1?endpoint=http://key:hush@localhost', 'user or a password'],
    ['sqs://eu-central-1?poll=never', "poll is 'never'"],
    ['sqs://eu-central-1#fragment', 'expected'],
    ['sqs://eu-central-1/queue', 'expected'],
  ])('is refused if it is invalid, and no secret is shown: %s', (url, message) => {
    expect(() => sqsAddress(url)).toThrow(message)
    expect(() => sqsAddress(url)).not.toThrow(/hush|secret@/)
  })
})

describe('the names of a queue in SQS', () => {
  it('have the namespace as a prefix, and those of FIFO queues end as SQS requires', () => {
    expect(queueNames('millrace', 'orders', false)).toEqual({ live: 'millrace-orders', dead: 'dlq-millrace-orders' })
    expect(queueNames('', 'orders', false)).toEqual({ live: 'orders', dead: 'dlq-orders' })
    expect(queueNames('shop', 'orders', true)).toEqual({ live: 'shop-orders.fifo', dead: 'dlq-shop-orders.fifo' })
  })

  it.each<[string, string]>([
    ...['a.b', 'a:b', 'naïve', 'a b', 'x'.repeat(68)].map((name): [string, string] => ['millrace', name]),
    ['a b', 'orders'],
    ['a.b', 'orders'],
    ['a:b', 'orders'],
    ['a/b', 'orders'],
    ['{a}', 'orders'],
    ['ü', 'orders'],
    ['a\u0000', 'orders'],
    ['x'.repeat(70), 'orders'],
    ['shop', 'a,b'],
    ['shop', 'orders.fifo'],
    ['shop', 'päckchen'],
    ['shop', 'a\nb'],
    ['', ' '],
    ['', 'x'.repeat(77)],
  ])('are refused if SQS does not accept them: %j and %j', (namespace, queue) => {
    expect(() => queueNames(namespace, queue, false)).toThrow(
      expect.objectContaining({
        code: 'config-invalid',
        message: expect.stringMatching(/would be '.*' and 'dlq-.*' in SQS/s),
      }),
    )
  })

  it('may have 80 characters, including the dead-letter queue', () => {
    expect(queueNames('millrace', 'x'.repeat(67), false).dead).toHaveLength(80)
  })
})

describe('an envelope', () => {
  const every: Envelope = {
    ...{ id: 'a', task: 'greet', payload: '"text"', codec: 'json', meta: '{"a":1}', group: 'g' },
    ...{ createdAt: 1, dueAt: 2, attempts: 3 },
  }

  it('is read back as it was written', () => {
    expect(readEnvelope(envelopeText(every))).toEqual(every)
    const bytes = { task: 'greet', payload: Uint8Array.of(0, 255, 7), meta: Uint8Array.of(1) }
    expect(readEnvelope(envelopeText(bytes))).toEqual(bytes)
  })

  it('contains only characters that SQS accepts, whatever the payload', () => {
    const payload = '\u0000\u000b\u001f\ufffe\uffff\ud800 \u{1f600}'
    const text = envelopeText({ task: 't', payload })

    expect(text).toMatch(/^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u)
    expect(readEnvelope(text)).toEqual({ task: 't', payload })
  })

  it('is refused if it is larger than a message can be', () => {
    const most = 1_048_576 - envelopeText({ task: 't', payload: '' }).length
    expect(envelopeText({ task: 't', payload: 'x'.repeat(most) })).toHaveLength(1_048_576)
    expect(() => envelopeText({ task: 't', payload: 'x'.repeat(most + 1) })).toThrow(
      expect.objectContaining({ code: 'payload-too-large' }),
    )
  })

  it('may lack an id, a time and a count: the message has them', () => {
    const body = '{"v":1,"task":"greet","payload":"1"}'
    const attributes = { ApproximateReceiveCount: '3', SentTimestamp: '5000' }
    const message = { MessageId: 'm', ReceiptHandle: 'r', Body: body, Attributes: attributes }
    const arrival = arrivalOf(message, 9_000, { receivedAt: 1, hiddenUntil: 2 }, false, 0)

    expect(arrival.kind).toBe('job')
    expect(arrival.message).toMatchObject({ id: 'm', attempt: 3, createdAt: 5_000, runAt: 5_000, bytes: body.length })
  })

  it.each([
    ['', 'no JSON object'],
    ['gASVJQAAAAAAAAB9lIwCaWSUjAF4lHMu', 'no JSON object'],
    ['[]', 'no JSON object'],
    ['null', 'no JSON object'],
    ['{}', 'no "v"'],
    ['{"v":2,"task":"t","payload":""}', 'no "v": 1'],
    ['{"v":1,"payload":""}', 'no task'],
    ['{"v":1,"task":7,"payload":""}', 'no task'],
    ['{"v":1,"task":"","payload":""}', 'no task'],
    ['{"v":1,"task":"t"}', '"payload"'],
    ['{"v":1,"task":"t","payload":{}}', '"payload"'],
    ['{"v":1,"task":"t","payload":"","payload64":""}', '"payload"'],
    ['{"v":1,"task":"t","payload64":"%"}', '"payload"'],
    ['{"v":1,"task":"t","payload":"","meta":{}}', '"meta"'],
    ['{"v":1,"task":"t","payload":"","id":7}', '"id"'],
    ['{"v":1,"task":"t","payload":"","codec":null}', '"codec"'],
    ['{"v":1,"task":"t","payload":"","dueAt":"soon"}', '"dueAt"'],
    ['{"v":1,"task":"t","payload":"","dueAt":-1}', '"dueAt"'],
    ['{"v":1,"task":"t","payload":"","attempts":1.5}', '"attempts"'],
    ['{"v":1,"task":"t","payload":"","createdAt":1e400}', '"createdAt"'],
    ['"a text"', 'no JSON object'],
    ['{"v":1', 'no JSON object'],
    ['\ufeff{"v":1,"task":"t","payload":""}', 'no JSON object'],
    ['<xml/>', 'no JSON object'],
    ['{"v":"1","task":"t","payload":""}', 'no "v": 1'],
    ['{"v":1,"task":["t"],"payload":""}', 'no task'],
    ['{"v":1,"task":"t","payload":null}', '"payload"'],
    ['{"v":1,"task":"t","payload":7}', '"payload"'],
    ['{"v":1,"task":"t","payload64":"a b"}', '"payload64"'],
    ['{"v":1,"task":"t","payload64":"QUJ"}', '"payload64"'],
    ['{"v":1,"task":"t","payload64":"QQ_="}', '"payload64"'],
    ['{"v":1,"task":"t","payload":"","group":{}}', '"group"'],
    ['{"v":1,"task":"t","payload":"","dueAt":null}', '"dueAt"'],
    ['{"v":1,"task":"t","payload":"","attempts":-1}', '"attempts"'],
    ['{"v":1,"task":"t","payload":"","createdAt":9007199254740993}', '"createdAt"'],
    ['{"v":1,"task":"t","payload":"","meta64":"="}', '"meta64"'],
    ['[{"v":1,"task":"t","payload":""}]', 'no JSON object'],
    [`${'['.repeat(20_000)}`, 'no JSON object'],
  ])('that is invalid is refused with the reason: %.60s', (body, problem) => {
    expect(readEnvelope(body)).toEqual({ problem: expect.stringContaining(problem) })
  })

  it('changes no prototype', () => {
    const read = readEnvelope('{"v":1,"task":"t","payload":"","__proto__":{"id":"evil"}}')
    expect(read).toEqual({ task: 't', payload: '' })
    expect('id' in read).toBe(false)
  })
})

describe('an error of SQS', () => {
  const withName = (name: string, rest: object = {}) => Object.assign(new Error('said'), { name, ...rest })

  it.each([
    ['QueueDoesNotExist', {}, 'queue-missing'],
    ['com.amazonaws.sqs#QueueDoesNotExist', {}, 'queue-missing'],
    ['AWS.SimpleQueueService.NonExistentQueue', {}, 'queue-missing'],
    ['AccessDenied', {}, 'store-refused'],
    ['CredentialsProviderError', {}, 'store-refused'],
    ['InvalidClientTokenId', {}, 'store-refused'],
    ['InvalidParameterValue', { $metadata: { httpStatusCode: 400 } }, 'store-refused'],
    ['ThrottlingException', { $metadata: { httpStatusCode: 400 } }, 'store-unavailable'],
    ['RequestThrottled', { $metadata: { httpStatusCode: 403 } }, 'store-unavailable'],
    ['OverLimit', { $metadata: { httpStatusCode: 403 } }, 'store-unavailable'],
    ['ExpiredTokenException', { $metadata: { httpStatusCode: 403 } }, 'store-unavailable'],
    ['InternalError', { $metadata: { httpStatusCode: 500 } }, 'store-unavailable'],
    ['ServiceUnavailable', { $metadata: { httpStatusCode: 503 } }, 'store-unavailable'],
    ['TimeoutError', {}, 'store-unavailable'],
    ['Error', { code: 'ECONNREFUSED' }, 'store-unavailable'],
  ])('is classified by its meaning: %s', (name, rest, code) => {
    const error = sqsError('sqs://eu-central-1', 'ReceiveMessage', withName(name, rest))
    expect(error).toMatchObject({ code, message: expect.stringContaining('ReceiveMessage on sqs://eu-central-1') })
  })

  it('is temporary if credentials are missing that were there before', async () => {
    const noCredentials = withName('CredentialsProviderError')
    const answers = [Promise.reject(noCredentials), Promise.resolve({}), Promise.reject(noCredentials)]
    for (const answer of answers) answer.catch(() => {})
    const api = await sqsOf({ send: () => answers.shift()!, destroy() {} }, new ApiCalls())
    const call = () => api.call('GetQueueUrl', { QueueName: 'q' })

    await expect(call()).rejects.toMatchObject({ code: 'store-refused' })
    await call()
    await expect(call()).rejects.toMatchObject({ code: 'store-unavailable', inDoubt: false })
  })

  it('says whether the call may have been carried out', () => {
    const inDoubt = (name: string, rest: object = {}) => sqsError('sqs', 'SendMessageBatch', withName(name, rest))
    expect(inDoubt('Error', { code: 'ECONNREFUSED' })).toMatchObject({ inDoubt: false })
    expect(inDoubt('ThrottlingException')).toMatchObject({ inDoubt: false })
    expect(inDoubt('Error', { code: 'ECONNRESET' })).toMatchObject({ inDoubt: true })
    expect(inDoubt('InternalError', { $metadata: { httpStatusCode: 500 } })).toMatchObject({ inDoubt: true })
  })
})
