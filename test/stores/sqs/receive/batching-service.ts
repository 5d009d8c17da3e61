/** A service that gives several messages of a group in one receive, as SQS does and emulators may not. */

import type { Clock } from '#src/core/platform/clock.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SqsApi, SqsCall, SqsMessage } from '#src/stores/sqs/client/sqs-api.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'

/** It hides no message whose receipt is void. */
function batchingService(messages: SqsMessage[], voidReceipts: ReadonlySet<string>) {
  const sent: [SqsCall, string[]][] = []
  const call = async (
    kind: SqsCall,
    input: { QueueName?: string; Entries?: { Id: string; ReceiptHandle: string; VisibilityTimeout?: number }[] },
  ) => {
    if (kind === 'GetQueueUrl') return { QueueUrl: input.QueueName }
    if (kind === 'ReceiveMessage') return { Messages: messages.splice(0) }
    sent.push([
      kind,
      input.Entries!.map(({ ReceiptHandle, VisibilityTimeout }) =>
        `${ReceiptHandle} ${VisibilityTimeout ?? ''}`.trim(),
      ),
    ])
    const isVoid = ({ ReceiptHandle }: { ReceiptHandle: string }) =>
      kind === 'ChangeMessageVisibilityBatch' && voidReceipts.has(ReceiptHandle)
    const Failed = input
      .Entries!.filter(isVoid)
      .map(({ Id }) => ({ Id, Code: 'MessageNotInflight', SenderFault: true }))
    return { Failed }
  }
  return { api: { where: 'a service of the test', call: call as SqsApi['call'], made: () => ({}), close() {} }, sent }
}

export const message = (n: number, group = 'g', more = {}, receives = 1): SqsMessage => ({
  ...{ MessageId: `m${n}`, ReceiptHandle: `r${n}` },
  Body: JSON.stringify({ v: 1, id: `job-${n}`, task: 't', payload: String(n), ...more }),
  Attributes: { ApproximateReceiveCount: String(receives), SentTimestamp: '1000', MessageGroupId: group },
})

export async function storeWith(messages: SqsMessage[], settings: Partial<QueueSettings>, clock?: Clock) {
  const voidReceipts = new Set<string>()
  const { api, sent } = batchingService(messages, voidReceipts)
  const store = new SqsStore({ api, namespace: '', worthAsking: () => true, ...(clock === undefined ? {} : { clock }) })
  await store.open([{ name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...settings }])
  const claim = async (leaseMs = 30_000) =>
    (await store.claim([{ queue: 'q', limit: 10 }], { worker: 'w', leaseMs })).claims
  return { store, sent, claim, voidReceipts }
}
