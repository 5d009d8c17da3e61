/** The SQS store's errors: turns the errors of the service, and of the way to it, into typed ones. Pure. */

import { QueueMissingError, StoreRefusedError, StoreUnavailableError } from '../../../core/errors.js'
import type { SqsCall } from './sqs-api.js'

/** An error of the SDK. Its name is the error code, with or without the prefix of the older protocol. */
interface SdkError {
  readonly name?: string
  readonly message?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** The service takes fewer bytes in one call: what was sent must be cut up. Nobody outside `client/` sees it. */
export class CallTooLongError extends Error {}

const noCredentials = 'CredentialsProviderError'

/** The service has refused the call, and would refuse it again. */
const refused: Readonly<Record<string, string>> = {
  AccessDenied: 'the credentials have no right to it: give them the policy that `millrace doctor` prints',
  AccessDeniedException: 'the credentials have no right to it: give them the policy that `millrace doctor` prints',
  [noCredentials]: 'no credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  InvalidClientTokenId: 'the service does not know the access key',
  UnrecognizedClientException: 'the service does not know the access key',
  InvalidAccessKeyId: 'the service does not know the access key',
  SignatureDoesNotMatch: 'the secret of the access key is wrong, or the clock of this machine is',
  InvalidSecurity: 'the queue takes only calls over TLS',
  KmsAccessDenied: "the credentials have no right to the queue's key",
  KmsDisabled: "the queue's key is disabled",
  KmsInvalidState: "the queue's key cannot be used now",
  KmsNotFound: "the queue's key does not exist",
  KmsOptInRequired: 'the account has no access to KMS',
}

/** The service has not carried the call out, but may do so soon. */
const notNow: Readonly<Record<string, string>> = {
  ThrottlingException: 'it is asked too often',
  Throttling: 'it is asked too often',
  RequestThrottled: 'it is asked too often',
  KmsThrottled: "the queue's key is asked too often",
  TooManyRequestsException: 'it is asked too often',
  OverLimit: 'as many messages of the queue as it allows are in flight: settle or release some',
  ExpiredToken: 'the credentials have expired, and no newer ones were found yet',
  ExpiredTokenException: 'the credentials have expired, and no newer ones were found yet',
  RequestExpired: 'the clock of this machine is wrong, or the call took too long',
  RequestTimeTooSkewed: 'the clock of this machine is wrong',
  InvalidSignatureException: 'the clock of this machine is wrong, or the secret of the access key is',
}

/** Nothing has reached the service. */
const unsent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Some services with this API, and older emulators, take 262,144 bytes where SQS takes 1 MiB. */
const tooLong = new Set(['BatchRequestTooLong', 'RequestEntityTooLarge'])

const missing = new Set(['QueueDoesNotExist', 'NonExistentQueue'])

/**
 * The typed error for a call of the API that failed at `where`. `hadCredentials`: an earlier call has found some, and what
 * gives them is away for a time.
 */
export function sqsError(where: string, call: SqsCall, error: unknown, hadCredentials = false): Error {
  const { name = '', message = '', code = '', $metadata } = (error ?? {}) as SdkError
  const word = name.replace(/^.*[.#]/, '')
  const said = `${call} on ${where}: ${word === 'Error' || word === '' ? message : `${word}: ${message}`}`
  if (missing.has(word)) return new QueueMissingError(said)
  if (tooLong.has(word)) return new CallTooLongError(said)
  if (hadCredentials && word === noCredentials)
    return new StoreUnavailableError(`No newer credentials were found yet (${said}).`, { inDoubt: false })
  const why = refused[word]
  if (why !== undefined) return new StoreRefusedError(`SQS refuses the call, ${why} (${said}).`)
  const wait = notNow[word]
  if (wait !== undefined)
    return new StoreUnavailableError(`SQS does not carry the call out now: ${wait} (${said}).`, { inDoubt: false })
  const status = $metadata?.httpStatusCode
  // A fault of the call, and so of ours; the same call would fail again.
  if (status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429)
    return new StoreRefusedError(`SQS refuses the call (${said}). Please report it.`)
  return new StoreUnavailableError(`SQS cannot be reached now (${said}).`, { inDoubt: !unsent.has(code) })
}
