/** One SQS store on a service whose clock the test moves, and a second look at what lies in its queues. */

import { defaultStartAt, ManualClock } from 'millrace/store-testing'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { SettleItem } from '#src/stores/contract/settle.js'
import type { SqsApi } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { type StrictSqs, strictSqs } from './strict-sqs.js'

type OwnedSettle<Item> = Item extends SettleItem ? Omit<Item, 'queue' | 'id' | 'fence'> : never

export interface SqsScene {
  readonly sqs: StrictSqs
  readonly store: SqsStore
  readonly calls: ApiCalls
  readonly api: SqsApi
  readonly namespace: string
  /** Another handle on the same queues. `beforePoll` is called before each of its long polls, which then do not wait. */
  open(beforePoll?: () => void | Promise<void>): Promise<SqsStore>
  advance(ms: number): void
  add(jobs: readonly (Partial<NewJob> & { readonly id: string })[], callId?: string): Promise<void>
  claim(limit?: number, leaseMs?: number): Promise<Claim[]>
  settle(claim: Claim, how: OwnedSettle<SettleItem>): Promise<string>
  /** What lies in a queue of SQS; it is not taken out. */
  bodies(name: string): Promise<{ body: Record<string, unknown> | string; attributes: Record<string, string> }[]>
}

/** In a file of tests: a service for all of them. */
export function sqsScenes(): () => Promise<SqsScene> {
  let sqs: StrictSqs
  let scenes = 0
  beforeAll(async () => {
    sqs = await strictSqs(defaultStartAt)
  })
  afterAll(() => sqs.close())
  return async () => {
    const namespace = `s${++scenes}`
    const clock = new ManualClock(sqs.now())
    const calls = new ApiCalls()
    const address = { region: 'eu-central-1', endpoint: sqs.endpoint, poll: 'first' } as const
    const open = async (beforePoll?: () => void | Promise<void>) => {
      const opened = await openSqs(address, calls)
      const api = beforePoll === undefined ? opened : withUnwaitedPolls(opened, beforePoll)
      const store = new SqsStore({ api, namespace, clock, worthAsking: () => true })
      onTestFinished(() => store.close())
      return store
    }
    const api = await openSqs(address, new ApiCalls())
    onTestFinished(() => api.close())
    const store = await open()
    const queues = [{ name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }] as const
    await store.provision.create(queues)
    await store.open(queues)
    return {
      ...{ sqs, store, calls, api, namespace, open },
      advance(ms) {
        sqs.advance(ms)
        clock.advance(ms)
      },
      async add(jobs, callId = crypto.randomUUID()) {
        const filled = jobs.map((job) => ({ task: 'send', payload: '1', priority: 0, rememberMs: 0, ...job }))
        await store.enqueue([{ callId, queue: 'mail', jobs: filled }])
      },
      async claim(limit = 10, leaseMs = 30_000) {
        return (await store.claim([{ queue: 'mail', limit }], { worker: 'w', leaseMs })).claims
      },
      async settle({ queue, id, fence }, how) {
        const [answer] = await store.settle([{ queue, id, fence, ...how } as SettleItem])
        return answer!
      },
      async bodies(name) {
        const { QueueUrl = '' } = await api.call('GetQueueUrl', { QueueName: name })
        const { Messages = [] } = await api.call('ReceiveMessage', {
          ...{ QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 0, WaitTimeSeconds: 0 },
          ...{ MessageSystemAttributeNames: [], MessageAttributeNames: ['All'] },
        })
        return Messages.map(({ Body = '', MessageAttributes = {} }) => ({
          body: Body.startsWith('{') ? (JSON.parse(Body) as Record<string, unknown>) : Body,
          attributes: Object.fromEntries(
            Object.entries(MessageAttributes).map(([key, one]) => [key, one.StringValue ?? '']),
          ),
        }))
      },
    }
  }
}

function withUnwaitedPolls(api: SqsApi, beforePoll: () => void | Promise<void>): SqsApi {
  return {
    where: api.where,
    async call(kind, input, signal) {
      if (!('WaitTimeSeconds' in input) || input.WaitTimeSeconds === 0) return api.call(kind, input, signal)
      await beforePoll()
      return api.call(kind, { ...input, WaitTimeSeconds: 0 }, signal)
    },
    made: () => api.made(),
    close: () => api.close(),
  }
}
