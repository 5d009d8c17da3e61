/** Other services that speak SQS: moto, and whatever `SQS_ENDPOINT` names, be it an emulator or AWS itself. */

import { setTimeout as delay } from 'node:timers/promises'
import { defaultStartAt, ManualClock, UnseenError } from 'millrace/store-testing'
import type { SqsApi, SqsCall, SqsCalls } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import type { ServiceClock, SqsService } from '../../test/stores/sqs/sqs-harness.js'
import { type MotoServer, startMoto } from './moto-server.js'

/** A case that waits for longer is left out where the clock of the service goes by itself. */
const longestWaitMs = 5_000

/** Rejects where moto cannot be had. */
export async function motoService(): Promise<SqsService & MotoServer> {
  const moto = await startMoto(defaultStartAt)
  let startAt = defaultStartAt
  return {
    ...{ ...moto, name: 'moto', prefix: 'n' },
    async api() {
      const address = { region: 'eu-central-1', endpoint: moto.endpoint, poll: 'first' } as const
      return olderNames(await openSqs(address, new ApiCalls()))
    },
    newClock() {
      if (moto.clock === undefined) return realClock
      const clock = new ManualClock(startAt)
      return {
        now: () => clock.now(),
        mono: () => clock.mono(),
        advance(ms) {
          moto.clock!.advance(ms)
          clock.advance(ms)
          startAt = clock.now()
        },
      }
    },
  }
}

/** The service at this endpoint. The queues that are made there stay there. */
export function namedService(endpoint: string, region: string): SqsService {
  return {
    name: 'SQS_ENDPOINT',
    prefix: `contract-${Date.now().toString(36)}-`,
    api: () => openSqs({ region, endpoint, poll: 'first' }, new ApiCalls()),
    newClock: () => realClock,
  }
}

const realClock: ServiceClock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  async advance(ms) {
    const seconds = longestWaitMs / 1_000
    if (ms > longestWaitMs)
      throw new UnseenError(`the clock of the service goes by itself, and over ${seconds} s would pass`)
    await delay(ms)
  },
}

/** moto knows the attributes of a message by their older name only, `AttributeNames`; SQS takes both. */
function olderNames(api: SqsApi): SqsApi {
  return {
    ...api,
    call<Kind extends SqsCall>(kind: Kind, input: SqsCalls[Kind]['input'], signal?: AbortSignal) {
      const { MessageSystemAttributeNames: AttributeNames } = input as Partial<SqsCalls['ReceiveMessage']['input']>
      return api.call(kind, AttributeNames === undefined ? input : { ...input, AttributeNames }, signal)
    },
  }
}
