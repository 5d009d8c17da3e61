/** The lottery on SQS: workers with three queues, whose calls are counted by queue. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill } from 'millrace'
import { Mill as MillClass } from '#src/mill/mill.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { plainAccess } from '#src/mill/store-source.js'
import type { SqsApi, SqsCall, SqsCalls } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'

export const weights = { high: 100, default: 40, low: 5 } as const
export type QueueName = keyof typeof weights
export const queueNames = Object.keys(weights) as QueueName[]

/** How often each queue was asked, by name. */
type Asked = Record<QueueName, number>

const body = JSON.stringify({ v: 1, task: 'draw', payload: '1' })

/** Counts what is asked of each queue, and passes it on. */
class CountedApi implements SqsApi {
  readonly where: string
  readonly asked: Asked = { high: 0, default: 0, low: 0 }
  readonly calls: Partial<Record<SqsCall, number>> = {}
  readonly #api: SqsApi

  constructor(api: SqsApi) {
    this.#api = api
    this.where = api.where
  }

  call<Kind extends SqsCall>(kind: Kind, input: SqsCalls[Kind]['input'], signal?: AbortSignal) {
    this.calls[kind] = (this.calls[kind] ?? 0) + 1
    if (kind === 'ReceiveMessage') {
      const { QueueUrl } = input as SqsCalls['ReceiveMessage']['input']
      this.asked[queueNames.find((name) => QueueUrl.endsWith(name))!] += 1
    }
    return this.#api.call(kind, input, signal)
  }

  made(): Partial<Record<SqsCall, number>> {
    return this.calls
  }

  close(): void {
    this.#api.close()
  }

  get total(): number {
    return Object.values(this.calls).reduce((sum, made) => sum + made, 0)
  }
}

/** A service in this process whose queues have a job for everyone who asks: the store is the real one, and no time goes by on the way. */
function fullService(): SqsApi {
  let messages = 0
  const call = async (kind: SqsCall, input: { readonly QueueName?: string }) => {
    if (kind === 'GetQueueUrl') return { QueueUrl: input.QueueName }
    if (kind !== 'ReceiveMessage') return {}
    const MessageId = String(++messages)
    return { Messages: [{ MessageId, ReceiptHandle: MessageId, Body: body }] }
  }
  return { where: 'full queues', call: call as SqsApi['call'], made: () => ({}), close() {} }
}

/** A mill on a store of these calls. With a `claimSize` of 1 there are as many claims as draws. */
function millOn(api: SqsApi, claimSize: number, run: () => void): { mill: Mill; tasks: ReturnType<typeof tasksOf> } {
  const store = new SqsStore({ api, namespace: 'lottery' })
  const tasks = tasksOf(run)
  const queues = Object.fromEntries(queueNames.map((name) => [name, { weight: weights[name], claimSize }]))
  const options = checkOptions({ store: 'memory:', tasks: Object.values(tasks), queues }, store.traits)
  const source = { text: api.where, access: plainAccess, traits: store.traits, create: async () => store }
  return { mill: new MillClass(options, source), tasks }
}

function tasksOf(run: () => void) {
  const task = (name: string, queue: QueueName) => defineTask({ name, queue, run })
  return { high: task('high', 'high'), default: task('draw', 'default'), low: task('low', 'low') }
}

/** From which queue each of so many jobs was taken; after `early` of them, and after all. */
export async function drawsOfFull(
  draws: number,
  early: number,
): Promise<{ early: Asked; all: Asked; seconds: number }> {
  const api = new CountedApi(fullService())
  let atEarly: Asked | undefined
  let done: (all: Asked) => void = () => {}
  const ended = new Promise<Asked>((resolve) => {
    done = resolve
  })
  const { mill } = millOn(api, 1, () => {
    const asked = queueNames.reduce((sum, name) => sum + api.asked[name], 0)
    if (asked >= early) atEarly ??= { ...api.asked }
    if (asked >= draws) done({ ...api.asked })
  })
  const startedAt = performance.now()
  try {
    await mill.worker({ concurrency: 10, selector: 'reduced-lottery' }).start()
    const all = await ended
    return { early: atEarly!, all, seconds: (performance.now() - startedAt) / 1_000 }
  } finally {
    await mill.close()
  }
}

/** The same on a service with real queues, which have more jobs than are drawn: from which queue each job was taken. */
export async function drawsOfService(endpoint: string, draws: number): Promise<Asked> {
  const api = new CountedApi(await openSqs({ region: 'eu-central-1', endpoint, poll: 'first' }, new ApiCalls()))
  let done: (all: Asked) => void = () => {}
  const ended = new Promise<Asked>((resolve) => {
    done = resolve
  })
  const { mill, tasks } = millOn(api, 1, () => {
    const asked = queueNames.reduce((sum, name) => sum + api.asked[name], 0)
    if (asked >= draws) done({ ...api.asked })
  })
  try {
    await mill.createQueues()
    const all = queueNames.reduce((sum, name) => sum + weights[name], 0)
    for (const name of queueNames) {
      const count = Math.ceil(((draws * weights[name]) / all) * 1.1) + 200
      await mill.enqueueMany(tasks[name], Array(count).fill(0))
    }
    await mill.worker({ concurrency: 10, selector: 'reduced-lottery' }).start()
    return await ended
  } finally {
    await mill.close()
  }
}

/** Jobs come into the queue of the least weight alone: how often each queue was asked, by how many calls in all. */
export async function onlyLow(endpoint: string, forMs: number) {
  const api = new CountedApi(await openSqs({ region: 'eu-central-1', endpoint, poll: 'first' }, new ApiCalls()))
  let ran = 0
  const { mill, tasks } = millOn(api, 10, () => {
    ran += 1
  })
  try {
    await mill.createQueues()
    await mill.worker({ concurrency: 10, selector: 'reduced-lottery' }).start()
    const { high: highBefore, default: defaultBefore } = { ...api.asked }
    const startedAt = performance.now()
    while (performance.now() < startedAt + forMs) {
      await mill.enqueueMany(tasks.low, Array(10).fill(0))
      await delay(100)
    }
    return { ran, high: api.asked.high - highBefore, default: api.asked.default - defaultBefore, low: api.asked.low }
  } finally {
    await mill.close()
  }
}

/** Nothing comes at all: how many calls are made in a minute, when a minute has gone by. */
export async function idleMinute(endpoint: string): Promise<number> {
  const api = new CountedApi(await openSqs({ region: 'eu-central-1', endpoint, poll: 'first' }, new ApiCalls()))
  const { mill } = millOn(api, 10, () => {})
  try {
    await mill.createQueues()
    await mill.worker({ concurrency: 10, selector: 'reduced-lottery' }).start()
    await delay(60_000)
    const before = api.total
    await delay(60_000)
    return api.total - before
  } finally {
    await mill.close()
  }
}
