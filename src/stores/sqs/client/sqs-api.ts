/**
 * The API of SQS, as far as the store calls it. Typed here and not by the AWS SDK, which need not be installed. It uses
 * the service's names, so that the service's documentation explains each field.
 */

/** Every call names a queue by its URL, except those that look for one. */
export interface SqsCalls {
  readonly GetQueueUrl: {
    readonly input: { readonly QueueName: string }
    readonly output: { readonly QueueUrl?: string }
  }
  readonly CreateQueue: {
    readonly input: {
      readonly QueueName: string
      readonly Attributes: Readonly<Record<string, string>>
      readonly tags?: Readonly<Record<string, string>>
    }
    readonly output: { readonly QueueUrl?: string }
  }
  readonly GetQueueAttributes: {
    readonly input: { readonly QueueUrl: string; readonly AttributeNames: readonly string[] }
    readonly output: { readonly Attributes?: Readonly<Record<string, string>> }
  }
  readonly SendMessageBatch: EntryCall<SendEntry>
  readonly DeleteMessageBatch: EntryCall<DeleteEntry>
  readonly ChangeMessageVisibilityBatch: EntryCall<VisibilityEntry>
  readonly ReceiveMessage: {
    readonly input: {
      readonly QueueUrl: string
      /** 1 … 10. */
      readonly MaxNumberOfMessages: number
      /** In seconds, whole. */
      readonly VisibilityTimeout: number
      /** In seconds, 0 … 20. */
      readonly WaitTimeSeconds: number
      readonly MessageSystemAttributeNames: readonly string[]
      readonly MessageAttributeNames: readonly string[]
    }
    readonly output: { readonly Messages?: readonly SqsMessage[] }
  }
}

export type SqsCall = keyof SqsCalls
/** Calls that carry up to ten entries. */
export type SqsEntryCall = 'SendMessageBatch' | 'DeleteMessageBatch' | 'ChangeMessageVisibilityBatch'

interface EntryCall<Entry> {
  readonly input: { readonly QueueUrl: string; readonly Entries: readonly (Entry & { readonly Id: string })[] }
  readonly output: { readonly Failed?: readonly (EntryFailure & { readonly Id?: string })[] }
}

/** Why one entry of a call failed. */
export interface EntryFailure {
  readonly Code?: string
  readonly Message?: string
  /** Whether sending it again would fail again. */
  readonly SenderFault?: boolean
}

export interface SendEntry {
  readonly MessageBody: string
  /** In seconds, 0 … 900. Not on a FIFO queue. */
  readonly DelaySeconds?: number
  readonly MessageAttributes?: Readonly<Record<string, { readonly DataType: 'String'; readonly StringValue: string }>>
  readonly MessageGroupId?: string
  readonly MessageDeduplicationId?: string
}

interface DeleteEntry {
  readonly ReceiptHandle: string
}

interface VisibilityEntry {
  readonly ReceiptHandle: string
  /** In seconds, from now on. */
  readonly VisibilityTimeout: number
}

export interface SqsMessage {
  readonly MessageId?: string
  readonly ReceiptHandle?: string
  readonly Body?: string
  readonly Attributes?: Readonly<Record<string, string>>
  readonly MessageAttributes?: Readonly<Record<string, { readonly StringValue?: string }>>
}

/** The client of the service: it makes the calls. */
export interface SqsApi {
  /** The name of the service in messages. Holds no secret. */
  readonly where: string
  /** Rejects with a typed error of Millrace. */
  call<Kind extends SqsCall>(
    kind: Kind,
    input: SqsCalls[Kind]['input'],
    signal?: AbortSignal,
  ): Promise<SqsCalls[Kind]['output']>
  /** How many calls of each kind were made: each is paid for, including repeated ones. */
  made(): Readonly<Partial<Record<SqsCall, number>>>
  close(): void
}

/** The limits of SQS. */
export const mostEntries = 10
export const mostBatchBytes = 1_048_576
export const longestPollS = 20
export const longestDelayS = 900
/** The longest that a received message can be kept hidden in all. */
export const longestHiddenMs = 12 * 3_600_000
