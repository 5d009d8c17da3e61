/** An SQS store made in the user's own module: for a client that needs more than a region. */

import type { Store } from '../contract/store.js'
import { sqsAddress } from './client/sqs-address.js'
import type { SdkClient } from './client/sqs-sdk.js'

export type SqsStoreOptions = (
  | { readonly url: string }
  /** A `SQSClient` of the AWS SDK; closing the store leaves it open. */
  | { readonly client: SdkClient }
) & {
  /** The prefix of the names of all queues. Default `'millrace'`; empty: no prefix. */
  readonly namespace?: string
}

/**
 * Makes a store, for the module that `store: { module, export }` names: every process calls that module for itself,
 * with the mill's `{ namespace }`. Connects at its first call. Rejects with `ConfigError` for an invalid address, and
 * if the AWS SDK is not installed.
 *
 * @example
 * // store.ts, which `store: { module: new URL('./store.ts', import.meta.url), export: 'open' }` names
 * export const open = (given: { namespace?: string }) => sqsStore({ url: 'sqs://eu-central-1', ...given })
 */
export async function sqsStore({ namespace = 'millrace', ...source }: SqsStoreOptions): Promise<Store> {
  // Loaded here: users of other stores do not need it.
  const [{ ApiCalls, openSqs, sqsOf }, { SqsStore }] = await Promise.all([
    import('./client/sqs-sdk.js'),
    import('./sqs-store.js'),
  ])
  const calls = new ApiCalls()
  if ('client' in source) return new SqsStore({ api: await sqsOf(source.client, calls), namespace })
  const address = sqsAddress(source.url)
  return new SqsStore({ api: await openSqs(address, calls), namespace, polling: address.poll })
}
