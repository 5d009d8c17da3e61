/** The harness of the SQS store. The clock of its service stands, and nobody can look into it, set its clock back or start it anew. */

import { defaultStartAt, type HarnessMaker, ManualClock, UnseenError } from 'millrace/store-testing'
import { ApiCalls } from '#src/stores/sqs/client/api-calls.js'
import { openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { type StrictSqs, strictSqs } from './strict-sqs.js'

let started: Promise<StrictSqs> | undefined
let namespaces = 0

/** On standard queues, or on FIFO queues. */
const harnessOn =
  (kind: 'standard' | 'fifo'): HarnessMaker =>
  async (options) => {
    started ??= strictSqs(defaultStartAt)
    const sqs = await started
    const clock = new ManualClock(sqs.now())
    if (options?.startAt !== undefined) throw new UnseenError('nobody can set the clock of the service')
    const namespace = `n${++namespaces}`
    const handles: SqsStore[] = []
    const unseen = (what: string) => async (): Promise<never> => {
      throw new UnseenError(what)
    }
    return {
      name: kind === 'fifo' ? 'sqs-fifo' : 'sqs',
      async open() {
        const api = await openSqs({ region: 'eu-central-1', endpoint: sqs.endpoint, poll: 'first' }, new ApiCalls())
        const store = new SqsStore({ api, namespace, clock, worthAsking: () => true })
        // The contract makes queues by opening them.
        const opened = store.open.bind(store)
        store.open = async (given) => {
          const queues = kind === 'fifo' ? given.map((queue) => ({ ...queue, fifo: true as const })) : given
          await store.provision.create(queues)
          return opened(queues)
        }
        const enqueue = store.enqueue.bind(store)
        store.enqueue = async (calls) => {
          const isLater = calls.some(({ jobs }) => jobs.some(({ delayMs, runAt }) => delayMs || runAt !== undefined))
          if (kind === 'fifo' && isLater) throw new UnseenError('a FIFO queue delays no single job')
          return enqueue(calls)
        }
        handles.push(store)
        return store
      },
      async advance(ms) {
        sqs.advance(ms)
        clock.advance(ms)
      },
      step: unseen('nobody can set the clock of the service'),
      restart: unseen('the service never says that it was started anew'),
      dump: unseen('nobody can look into the service'),
      audit: unseen('the service keeps no audit'),
      async close() {
        for (const store of handles) await store.close()
      },
    }
  }

export const sqsHarness = harnessOn('standard')
export const sqsFifoHarness = harnessOn('fifo')
