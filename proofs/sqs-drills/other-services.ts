/** Other services that speak SQS: moto, and whatever `SQS_ENDPOINT` names, be it an emulator or AWS itself. */

import { setTimeout as delay } from 'node:timers/promises'
import { defaultStartAt, ManualClock, UnseenError } from 'millrace/store-testing'
import { ApiCalls } from '#src/stores/sqs/client/api-calls.js'
import type { SqsApi, SqsCall, SqsCalls } from '#src/stores/sqs/client/sqs-api.js'
import { openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import type { ServiceClock, SqsService } from '../../test/stores/sqs/sqs-harness.js'
import { type MotoServer, startMoto } from './moto-server.js'

/** A case that waits for longer is left out where the clock of the service goes by itself. */
const longestWaitMs = 5_000

/** Rejects where moto cannot be had. */
export async function motoService(): Promise<
  SqsService & Pick<MotoServer, 'version' | 'stop'> & { clockStands: boolean }
> {
  const { version, endpoint, stand, stop } = await startMoto()
  let now = defaultStartAt
  stand?.(now)
  return {
    ...{ name: 'moto', prefix: 'n', version, stop, clockStands: stand !== undefined },
    async api() {
      return olderNames(await openSqs({ region: 'eu-central-1', endpoint, poll: 'first' }, new ApiCalls()))
    },
    clock() {
      if (stand === undefined) return realClock
      const clock = new ManualClock(now)
      return {
        now: () => clock.now(),
        mono: () => clock.mono(),
        advance(ms) {
          clock.advance(ms)
          now = clock.now()
          stand(now)
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
    clock: () => realClock,
  }
}

const realClock: ServiceClock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  async advance(ms) {
    if (ms > longestWaitMs)
      throw new UnseenError(`the clock of the service goes by itself, and ${ms} ms are long to wait for`)
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
