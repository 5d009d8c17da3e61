/** Fresh stores on one SQS for tests: each has queues of its own, and more handles on them if they are asked for. */

import { afterAll, beforeAll } from 'vitest'
import type { SqsPolling } from '#src/stores/sqs/client/sqs-address.js'
import type { SqsApi } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { type StrictSqs, strictSqs } from './strict-sqs.js'

interface FreshStore {
  readonly store: SqsStore
  readonly calls: ApiCalls
  readonly api: SqsApi
  readonly namespace: string
  /** Another handle on the same queues. */
  open(): Promise<SqsStore>
}

/** In a file of tests: a service for all of them. */
export function freshStores(polling: SqsPolling = 'first') {
  let sqs: StrictSqs
  let namespaces = 0
  beforeAll(async () => {
    sqs = await strictSqs()
  })
  afterAll(() => sqs.close())
  return {
    service: () => sqs,
    async freshStore(): Promise<FreshStore> {
      const namespace = `fresh${++namespaces}`
      const calls = new ApiCalls()
      const address = { region: 'eu-central-1', endpoint: sqs.endpoint, poll: polling }
      const api = await openSqs(address, calls)
      const open = async () => new SqsStore({ api: await openSqs(address, calls), namespace, polling })
      return { store: new SqsStore({ api, namespace, polling }), calls, api, namespace, open }
    },
  }
}
