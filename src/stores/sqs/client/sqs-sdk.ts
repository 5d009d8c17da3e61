/** The API through the AWS SDK, which is loaded when a store is first made. */

import { messageOf } from '../../../core/messages/describe.js'
import { timerMs } from '../../../core/platform/timer.js'
import { defined } from '../../../core/values/defined.js'
import { unfit } from '../../../core/values/store-address.js'
import { isLoopback, type SqsAddress, sqsAddressText } from './sqs-address.js'
import type { SqsApi, SqsCall, SqsCalls } from './sqs-api.js'
import { sqsError } from './sqs-errors.js'

/** A `SQSClient` of the AWS SDK. Not typed by it, as it need not be installed. */
export interface SdkClient {
  send(command: never, options?: { readonly abortSignal?: AbortSignal }): Promise<unknown>
  destroy(): void
}

interface Sdk {
  readonly SQSClient: new (options: object) => SdkClient
  readonly [command: `${string}Command`]: new (input: object) => unknown
}

/** A call without an answer is broken off after this time, with all its tries; a long poll lasts 20 s. */
const longestAnswerMs = 30_000
/**
 * A call that does not wait has a third of that time for each of its three tries: its connection may be dead without a word, and
 * the next try has another. So a beat that is sent at a third of its lease of 30 s is answered before the lease ends.
 */
const mostTries = 3
const connectMs = 3_000

/**
 * Throws `ConfigError` if the SDK is not installed. Connects at its first call. `answerMs`: a call without an answer fails
 * as unavailable after this time.
 */
export async function openSqs(address: SqsAddress, calls: ApiCalls, answerMs = longestAnswerMs): Promise<SqsApi> {
  const sdk = await loadedSdk()
  const { region, endpoint } = address
  const isLocal = endpoint !== undefined && isLoopback(endpoint) && !hasCredentials(process.env)
  const client = new sdk.SQSClient({
    region,
    ...defined({ endpoint }),
    // An emulator requires credentials, but accepts any.
    ...(isLocal ? { credentials: { accessKeyId: 'local', secretAccessKey: 'local' } } : {}),
    // Without the second, the SDK only prints a warning after the first.
    requestHandler: {
      ...{ requestTimeout: answerMs / mostTries, throwOnRequestTimeout: true },
      connectionTimeout: connectMs,
    },
  })
  return apiOf(client, sdk, sqsAddressText(address), calls, answerMs)
}

/** The API through a client that the user has made; closing the store leaves it open. */
export async function sqsOf(client: SdkClient, calls: ApiCalls): Promise<SqsApi> {
  return { ...apiOf(client, await loadedSdk(), 'SQS', calls, longestAnswerMs), close() {} }
}

function apiOf(client: SdkClient, sdk: Sdk, where: string, calls: ApiCalls, answerMs: number): SqsApi {
  let hasAnswered = false
  return {
    where,
    async call<Kind extends SqsCall>(kind: Kind, input: SqsCalls[Kind]['input'], signal?: AbortSignal) {
      const command = new sdk[`${kind}Command`]!(input)
      const late = AbortSignal.timeout(timerMs(answerMs))
      const abortSignal = signal === undefined ? late : AbortSignal.any([signal, late])
      const isPoll = 'WaitTimeSeconds' in input && input.WaitTimeSeconds > 0
      try {
        // Undeclared, as it is no part of what a client must take: the time for one try, where 0 is no limit.
        const answer = await client.send(command as never, { abortSignal, ...(isPoll ? { requestTimeout: 0 } : {}) })
        calls.made(kind, attemptsIn(answer))
        hasAnswered = true
        return answer as SqsCalls[Kind]['output']
      } catch (error) {
        calls.made(kind, attemptsIn(error))
        if (signal?.aborted) throw signal.reason
        const failure = late.aborted ? new Error(`no answer within ${answerMs / 1_000} s`) : error
        throw sqsError(where, kind, failure, hasAnswered)
      }
    },
    made: () => calls.byKind,
    close: () => client.destroy(),
  }
}

/** How often the SDK has sent the call: each attempt is paid for. */
function attemptsIn(answer: unknown): number {
  const { attempts } = (answer as { $metadata?: { attempts?: number } } | null)?.$metadata ?? {}
  return attempts ?? 1
}

function hasCredentials(env: Readonly<Record<string, string | undefined>>): boolean {
  return env.AWS_ACCESS_KEY_ID !== undefined || env.AWS_PROFILE !== undefined
}

async function loadedSdk(): Promise<Sdk> {
  try {
    return (await import('@aws-sdk/client-sqs')) as unknown as Sdk
  } catch (error) {
    throw unfit(
      `needs the package '@aws-sdk/client-sqs', which cannot be loaded (${messageOf(error)}). Install it: npm install @aws-sdk/client-sqs`,
    )
  }
}

/** The API calls of a store: each is paid for. */
export class ApiCalls {
  readonly #made = new Map<SqsCall, number>()

  /** `attempts`: how often the call was sent. */
  made(kind: SqsCall, attempts: number): void {
    this.#made.set(kind, (this.#made.get(kind) ?? 0) + attempts)
  }

  /** The calls that were made, by kind. */
  get byKind(): Partial<Record<SqsCall, number>> {
    return Object.fromEntries(this.#made)
  }

  get total(): number {
    return [...this.#made.values()].reduce((sum, made) => sum + made, 0)
  }
}
