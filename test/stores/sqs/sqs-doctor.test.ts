/** What the doctor says of queues in SQS, and the rights that it lists. */

import { describe, expect, it } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { judgeQueue, policyText } from '#src/stores/sqs/sqs-health.js'
import { sqsScenes } from './sqs-scene.js'

const scene = sqsScenes()
const declared = (...names: string[]): QueueSettings[] =>
  names.map((name) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }))

describe('the doctor', () => {
  it('accepts the queues that the store creates, and reports a missing one', async () => {
    const { store, namespace } = await scene()
    const [mail, orders, rights] = await store.health.examine(declared('mail', 'orders'))

    expect(mail).toEqual({ level: 'ok', what: 'queue mail', text: `'${namespace}-mail', with 'dlq-${namespace}-mail'` })
    expect(orders).toMatchObject({ level: 'error', text: expect.stringContaining('millrace queues create') })
    expect(JSON.parse(rights!.text)).toMatchObject({
      Statement: [{ Resource: [`arn:aws:sqs:eu-central-1:000000000000:${namespace}-*`] }, {}],
    })
  })

  it('reports what it may not read, and goes on', async () => {
    const { store, sqs } = await scene()
    await sqs.inject({ call: 'GetQueueAttributes', error: 'AccessDenied', status: 403 })
    const [mail] = await store.health.examine(declared('mail'))

    expect(mail).toMatchObject({ level: 'error', text: expect.stringContaining('GetQueueAttributes') })
  })

  const good = {
    MessageRetentionPeriod: '1209600',
    DelaySeconds: '0',
    MaximumMessageSize: '1048576',
    RedrivePolicy: '{"deadLetterTargetArn":"arn:aws:sqs:eu-central-1:1:dlq-m-q","maxReceiveCount":100}',
  }
  const names = { live: 'm-q', dead: 'dlq-m-q' }

  it.each([
    ['a short retention', { MessageRetentionPeriod: '86400' }, 'deletes a job that has waited for'],
    ['no redrive policy', { RedrivePolicy: '' }, 'no redrive policy'],
    [
      'another target',
      { RedrivePolicy: '{"deadLetterTargetArn":"arn:aws:sqs:e:1:other","maxReceiveCount":50}' },
      "'other'",
    ],
    [
      'few receives',
      { RedrivePolicy: '{"deadLetterTargetArn":"arn:aws:sqs:e:1:dlq-m-q","maxReceiveCount":"1"}' },
      '1 times',
    ],
    ['a delay', { DelaySeconds: '30' }, 'delays every job by 30 s'],
    ['small messages', { MaximumMessageSize: '262144' }, '262144 bytes'],
    ['many in flight', { ApproximateNumberOfMessagesNotVisible: '110000' }, '110000 messages are in flight'],
  ])('warns of %s', (_, wrong, text) => {
    const findings = judgeQueue({ queue: 'q', names, live: { ...good, ...wrong }, dead: good })
    expect(findings).toEqual([{ level: 'warning', what: 'queue q', text: expect.stringContaining(text) }])
  })

  it('warns if dead jobs are kept for a shorter time, and reports if they could not be buried at all', () => {
    const dead = { ...good, MessageRetentionPeriod: '345600' }
    expect(judgeQueue({ queue: 'q', names, live: good, dead })).toMatchObject([{ level: 'warning' }])
    expect(judgeQueue({ queue: 'q', names, live: good, dead: undefined })).toMatchObject([{ level: 'error' }])
    expect(judgeQueue({ queue: 'q', names, live: good, dead: good })).toMatchObject([{ level: 'ok' }])
  })
})

describe('the policy', () => {
  it('allows exactly the calls that are made, on the queues of the namespace', () => {
    const { Statement } = JSON.parse(policyText('shop', 'arn:aws-cn:sqs:cn-north-1:42:shop-q', false))

    expect(Statement).toEqual([
      {
        Effect: 'Allow',
        Action: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'],
        Resource: ['arn:aws-cn:sqs:cn-north-1:42:shop-*'],
      },
      {
        Effect: 'Allow',
        Action: ['sqs:GetQueueUrl', 'sqs:GetQueueAttributes', 'sqs:SendMessage'],
        Resource: ['arn:aws-cn:sqs:cn-north-1:42:shop-*', 'arn:aws-cn:sqs:cn-north-1:42:dlq-shop-*'],
      },
    ])
    expect(policyText('shop', undefined, true)).toContain('sqs:CreateQueue')
  })
})
