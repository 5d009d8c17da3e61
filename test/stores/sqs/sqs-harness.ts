/** The harness of the SQS store, on whatever service it is given. Nobody can look into that, set its clock back or start it anew. */

import { defaultStartAt, type HarnessMaker, ManualClock, UnseenError } from 'millrace/store-testing'
import type { Clock } from '#src/core/platform/clock.js'
import type { SqsApi } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { strictSqs } from './strict-sqs.js'

/** A clock that goes as that of the service does. */
export interface ServiceClock extends Clock {
  /** Throws `UnseenError` where it would take too long. */
  advance(ms: number): void | Promise<void>
}

export interface SqsService {
  readonly name: string
  /** What the namespaces of its harnesses begin with. */
  readonly prefix: string
  api(): Promise<SqsApi>
  newClock(): ServiceClock
}

let namespaces = 0

/** On standard queues, or on FIFO queues. */
export const sqsHarnessOn =
  (kind: 'standard' | 'fifo', start: () => Promise<SqsService>): HarnessMaker =>
  async (options) => {
    const service = await start()
    const clock = service.newClock()
    if (options?.startAt !== undefined) throw new UnseenError('nobody can set the clock of the service')
    const namespace = `${service.prefix}${++namespaces}`
    const handles: SqsStore[] = []
    const unseen = (what: string) => async (): Promise<never> => {
      throw new UnseenError(what)
    }
    return {
      name: kind === 'fifo' ? `${service.name}-fifo` : service.name,
      async open() {
        const store = new SqsStore({ api: await service.api(), namespace, clock, worthAsking: () => true })
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
        await clock.advance(ms)
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

let started: Promise<SqsService> | undefined

/** The strict emulator, whose clock stands until it is moved. */
function strictService(): Promise<SqsService> {
  started ??= strictSqs(defaultStartAt).then((sqs) => ({
    name: 'sqs',
    prefix: 'n',
    api: () => openSqs({ region: 'eu-central-1', endpoint: sqs.endpoint, poll: 'first' }, new ApiCalls()),
    newClock() {
      const clock = new ManualClock(sqs.now())
      return {
        now: () => clock.now(),
        mono: () => clock.mono(),
        advance(ms) {
          sqs.advance(ms)
          clock.advance(ms)
        },
      }
    },
  }))
  return started
}

export const sqsHarness = sqsHarnessOn('standard', strictService)
export const sqsFifoHarness = sqsHarnessOn('fifo', strictService)
