/** Consumers of SQS as people write them, to count the calls of each as they arrive at the service. */

import { setTimeout as delay } from 'node:timers/promises'
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { defineTask, millrace } from 'millrace'
import { Consumer } from 'sqs-consumer'

export interface SqsContender {
  readonly name: string
  /** Sends this number of jobs to one queue and works them off. */
  work(endpoint: string, jobs: number): Promise<void>
  /** Waits for jobs on this number of empty queues until it is aborted. */
  idle(endpoint: string, queues: number, signal: AbortSignal): Promise<void>
}

const region = 'eu-central-1'
const ten = 10

function clientOf(endpoint: string): SQSClient {
  return new SQSClient({ region, endpoint, credentials: { accessKeyId: 'bench', secretAccessKey: 'bench' } })
}

async function queueUrls(client: SQSClient, name: string, count: number): Promise<string[]> {
  const urls: string[] = []
  for (let i = 0; i < count; i += 1)
    urls.push((await client.send(new CreateQueueCommand({ QueueName: `${name}-${i}` }))).QueueUrl!)
  return urls
}

const task = defineTask({ name: 'work', queue: 'q0', run: async () => {} })

function millOn(endpoint: string, queues: number) {
  return millrace({
    store: `sqs://${region}?endpoint=${endpoint}`,
    namespace: 'mill',
    tasks: [task],
    queues: Object.fromEntries(Array.from({ length: queues }, (_, i) => [`q${i}`, {}])),
  })
}

const ours: SqsContender = {
  name: 'millrace',
  async work(endpoint, jobs) {
    const mill = millOn(endpoint, 1)
    await mill.createQueues()
    await mill.enqueueMany(
      task,
      Array.from({ length: jobs }, (_, i) => i),
    )
    let left = jobs
    await new Promise<void>((resolve, reject) => {
      mill.on('job.completed', () => {
        left -= 1
        if (left === 0) resolve()
      })
      mill.worker({ concurrency: 10 }).start().catch(reject)
    })
    await mill.close()
  },
  async idle(endpoint, queues, signal) {
    const mill = millOn(endpoint, queues)
    await mill.createQueues()
    await mill.worker({ concurrency: 10 }).start()
    await aborted(signal)
    await mill.close()
  },
}

/** One message at a time, as the examples of the SDK do it, with long polls. */
const plain: SqsContender = {
  name: 'one message at a time',
  async work(endpoint, jobs) {
    const client = clientOf(endpoint)
    const [QueueUrl] = await queueUrls(client, 'plain', 1)
    for (let i = 0; i < jobs; i += 1)
      await client.send(new SendMessageCommand({ QueueUrl: QueueUrl!, MessageBody: String(i) }))
    for (let left = jobs; left > 0; ) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({ QueueUrl: QueueUrl!, WaitTimeSeconds: 20 }),
      )
      for (const { ReceiptHandle } of Messages) {
        await client.send(new DeleteMessageCommand({ QueueUrl: QueueUrl!, ReceiptHandle: ReceiptHandle! }))
        left -= 1
      }
    }
    client.destroy()
  },
  async idle(endpoint, queues, signal) {
    const client = clientOf(endpoint)
    const poll = async (QueueUrl: string) => {
      while (!signal.aborted)
        await client
          .send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 }), { abortSignal: signal })
          .catch(() => {})
    }
    await Promise.all((await queueUrls(client, 'plain-idle', queues)).map(poll))
    client.destroy()
  },
}

/** sqs-consumer at its best: ten messages a receive, handled and deleted together, sent in tens. */
const consumer: SqsContender = {
  name: 'sqs-consumer, by tens',
  async work(endpoint, jobs) {
    const client = clientOf(endpoint)
    const [QueueUrl] = await queueUrls(client, 'consumer', 1)
    for (let i = 0; i < jobs; i += ten) {
      const Entries = Array.from({ length: ten }, (_, n) => ({ Id: String(n), MessageBody: String(i + n) }))
      await client.send(new SendMessageBatchCommand({ QueueUrl: QueueUrl!, Entries }))
    }
    let left = jobs
    await new Promise<void>((resolve, reject) => {
      const app = Consumer.create({
        queueUrl: QueueUrl!,
        sqs: client,
        batchSize: ten,
        handleMessageBatch: async (messages) => messages,
      })
      app.on('message_processed', () => {
        left -= 1
        if (left > 0) return
        app.once('stopped', () => resolve())
        app.stop()
      })
      app.on('error', reject)
      app.start()
    })
    client.destroy()
  },
  async idle(endpoint, queues, signal) {
    const client = clientOf(endpoint)
    const apps = (await queueUrls(client, 'consumer-idle', queues)).map((queueUrl) =>
      Consumer.create({ queueUrl, sqs: client, batchSize: ten, handleMessageBatch: async (messages) => messages }),
    )
    for (const app of apps) app.start()
    await aborted(signal)
    for (const app of apps) app.stop({ abort: true })
    // Its polls end by themselves.
    await delay(100)
    client.destroy()
  },
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

export const sqsContenders: readonly SqsContender[] = [ours, plain, consumer]
