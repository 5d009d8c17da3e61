/**
 * The morgue: the dead-letter queue of each queue. SQS shows a message only to a receiver. Messages that are looked at
 * are hidden from others meanwhile, and made visible again at the end.
 */

import { InvalidArgumentError, StoreUnavailableError } from '../../../core/errors.js'
import type { Clock } from '../../../core/platform/clock.js'
import { defined } from '../../../core/values/defined.js'
import { slicesOf } from '../../../core/values/pages.js'
import type { JobSelection, Morgue, Page, Step, StoredJob } from '../../contract/job-records.js'
import { compareBytes } from '../../rules/byte-order.js'
import { type EntryFailure, mostEntries, type SendEntry, type SqsApi, type SqsMessage } from '../client/sqs-api.js'
import { type DeadLetter, type Envelope, envelopeText, readEnvelope, sendEntry } from '../envelope.js'
import { systemAttributes } from '../receive/arrival.js'
import type { DeadLetters, SqsQueue } from '../sqs-queue.js'
import type { SqsQueues } from '../sqs-queues.js'

/** Longer than a walk takes. If a process is killed during a walk, its messages stay hidden this long. */
const hiddenS = 120

/** A short poll asks some of the servers of a queue, a long one all. */
const pollS = 1

/** The most messages that a step takes, and the most that are searched for an id. */
const mostInStep = 1_000

const mostSearched = 10_000

/** Messages made visible again at a time: ten calls. */
const mostShown = 100

/** A revive of all that takes no step for so long was given up. */
const givenUpMs = 60_000

/** A revive of all jobs of a queue, with its steps so far. On the monotonic clock, but for `diedBy`. */
interface Revival {
  /** What has died since stays dead: a job that dies again would otherwise be revived again and again. */
  readonly diedBy: number
  readonly steppedAt: number
}

export class SqsMorgue implements Morgue {
  readonly #api: SqsApi
  readonly #queues: SqsQueues
  readonly #clock: Clock
  readonly #revivals = new Map<string, Revival>()

  constructor(api: SqsApi, queues: SqsQueues, clock: Clock) {
    this.#api = api
    this.#queues = queues
    this.#clock = clock
  }

  /** Looks among the first 10,000 messages. */
  async get(queue: string, id: string): Promise<StoredJob | undefined> {
    const of = await this.#queues.get(queue)
    let found: DeadJob | undefined
    await this.#walk(of, mostSearched, async (jobs) => {
      found ??= jobs.find((job) => idOf(job) === id)
      return { taken: [], isDone: found !== undefined }
    })
    return found && deadRecord(found, of)
  }

  /** Lists the first `limit` that SQS gives: it knows no pages. Throws `InvalidArgumentError` for a cursor. */
  async list(queue: string, { by, cursor, limit, group }: Parameters<Morgue['list']>[1]): Promise<Page> {
    if (cursor !== undefined)
      throw new InvalidArgumentError('a cursor must be that of a page before; SQS knows no pages, and gives none.')
    const of = await this.#queues.get(queue)
    const found: DeadJob[] = []
    await this.#walk(of, limit, async (jobs) => {
      found.push(...jobs)
      return { taken: [], isDone: false }
    })
    const order =
      by === 'id'
        ? (a: DeadJob, b: DeadJob) => compareBytes(idOf(a), idOf(b))
        : (a: DeadJob, b: DeadJob) => b.sentAt - a.sentAt
    const jobs = found.sort(order).map((job) => deadRecord(job, of))
    return { jobs: group === undefined ? jobs : jobs.filter((job) => job.group === group) }
  }

  /** Sends into the queue first, and deletes after: between the two the job exists twice, and is never missing. */
  async revive(queue: string, where: JobSelection): Promise<Step> {
    const of = await this.#queues.get(queue)
    const send = (job: DeadJob) => of.send(revivedEntry(job, of.isFifo))
    if (typeof where === 'object') return this.#take(of, where, send)
    const begun = this.#revivals.get(queue)
    const isGoingOn = begun !== undefined && this.#clock.mono() - begun.steppedAt < givenUpMs
    const diedBy = isGoingOn ? begun.diedBy : this.#clock.now()
    const { changed, more } = await this.#take(of, where, send, diedBy)
    // A step that finds only what has died since finds no others behind it either.
    const goesOn = more && changed > 0
    if (goesOn) this.#revivals.set(queue, { diedBy, steppedAt: this.#clock.mono() })
    else this.#revivals.delete(queue)
    return { changed, more: goesOn }
  }

  async delete(queue: string, where: JobSelection): Promise<Step> {
    return this.#take(await this.#queues.get(queue), where, async () => {})
  }

  /** Deletes the selected jobs that died by this instant, each once `before` is done with it. */
  async #take(
    of: SqsQueue,
    where: JobSelection,
    before: (job: DeadJob) => Promise<void>,
    diedBy = Number.POSITIVE_INFINITY,
  ): Promise<Step> {
    const asked = typeof where === 'string' ? undefined : new Set(where.ids)
    let changed = 0
    let failure: PromiseRejectedResult | undefined
    const { deletes } = await of.dead()
    const isWhole = await this.#walk(of, asked === undefined ? mostInStep : mostSearched, async (jobs) => {
      const taken = jobs.filter((job) => (asked === undefined ? job.sentAt <= diedBy : asked.delete(idOf(job))))
      const ends = await Promise.allSettled(
        taken.map(async (job) => {
          await before(job)
          refuseLeft(await deletes.add({ ReceiptHandle: job.receipt }), of.names.dead)
          changed += 1
        }),
      )
      // One that SQS refuses keeps nobody else dead.
      failure ??= ends.find((end) => end.status === 'rejected')
      return { taken, isDone: asked?.size === 0 }
    })
    if (failure !== undefined) throw failure.reason
    return { changed, more: asked === undefined && !isWhole }
  }

  /**
   * Receives up to `most` messages and shows them to `visit`, which says which it has removed and whether it has seen
   * enough. The others are visible again at the end. Resolves with whether it has seen all.
   */
  async #walk(
    of: SqsQueue,
    most: number,
    visit: (jobs: readonly DeadJob[]) => Promise<{ readonly taken: readonly DeadJob[]; readonly isDone: boolean }>,
  ): Promise<boolean> {
    const dead = await of.dead()
    // For all seen messages: the receipt of each that must be made visible again, and none for removed ones.
    const receipts = new Map<string, string | undefined>()
    try {
      for (let count = 0; count < most; ) {
        const received = await this.#receive(dead, Math.min(mostEntries, most - count))
        if (received.length === 0) return true
        count += received.length
        // SQS sometimes delivers a message twice.
        const jobs = received.filter(({ messageId }) => !receipts.has(messageId))
        for (const { messageId, receipt } of jobs) receipts.set(messageId, receipt)
        const { taken, isDone } = await visit(jobs)
        for (const { messageId } of taken) receipts.set(messageId, undefined)
        if (isDone) return false
      }
      return false
    } finally {
      await show(
        dead,
        [...receipts.values()].filter((receipt) => receipt !== undefined),
      )
    }
  }

  async #receive({ url }: DeadLetters, limit: number): Promise<DeadJob[]> {
    const { Messages = [] } = await this.#api.call('ReceiveMessage', {
      ...{ QueueUrl: url, MaxNumberOfMessages: limit, VisibilityTimeout: hiddenS, WaitTimeSeconds: pollS },
      ...{ MessageSystemAttributeNames: systemAttributes, MessageAttributeNames: ['All'] },
    })
    return Messages.map(deadJobOf)
  }
}

function refuseLeft(failure: EntryFailure | undefined, name: string): void {
  if (failure === undefined) return
  const { Code = 'no code', Message = 'no reason given' } = failure
  throw new StoreUnavailableError(`SQS did not delete a dead job of '${name}' now (${Code}: ${Message}).`)
}

/** Never rejects: a message for which this fails is visible when its time is over. */
async function show({ visibilities }: DeadLetters, receipts: readonly string[]): Promise<void> {
  for (const some of slicesOf(receipts, mostShown))
    await Promise.allSettled(some.map((receipt) => visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: 0 })))
}

interface DeadQueue {
  readonly name: string
  readonly isFifo: boolean
  readonly isOrdered: boolean
}

/** A message of a dead-letter queue. */
interface DeadJob {
  readonly messageId: string
  /** The receipt of its last receive. */
  readonly receipt: string
  readonly sentAt: number
  /** Undefined for a message that is no job. */
  readonly envelope: (Envelope & DeadLetter) | undefined
  readonly body: string
  readonly lane: string | undefined
  readonly letter: DeadLetter
}

function deadJobOf({ MessageId = '', ReceiptHandle = '', Body = '', ...message }: SqsMessage): DeadJob {
  const { Attributes = {}, MessageAttributes = {} } = message
  const read = readEnvelope(Body)
  const envelope = 'problem' in read ? undefined : read
  const [reason, error] = [MessageAttributes['reason']?.StringValue, MessageAttributes['error']?.StringValue]
  return {
    ...{ messageId: MessageId, receipt: ReceiptHandle, body: Body, envelope },
    sentAt: Number(Attributes['SentTimestamp'] ?? 0),
    lane: Attributes['MessageGroupId'],
    letter: envelope ?? defined({ reason, error }),
  }
}

function idOf({ envelope, messageId }: DeadJob): string {
  return envelope?.id ?? messageId
}

function deadRecord(job: DeadJob, { name: queue, isOrdered }: DeadQueue): StoredJob {
  const { envelope, body, sentAt, letter } = job
  const { task = '', payload = body, codec, meta, group, createdAt = sentAt, attempts = 1 } = envelope ?? {}
  const content = { payload, ...defined({ codec, meta }) }
  return {
    ...{ queue, id: idOf(job), task, state: 'dead', priority: 0, attempt: Math.max(1, attempts), crashes: 0 },
    ...(isOrdered ? { payload: '', payloads: [{ score: createdAt, ...content }], payloadCount: 1 } : content),
    ...{ createdAt, updatedAt: sentAt, runAt: createdAt, finishedAt: sentAt },
    ...defined({ group, reason: letter.reason, error: letter.error }),
  }
}

/** With all attempts again; a message that is no job goes back unchanged. */
function revivedEntry(job: DeadJob, isFifo: boolean): SendEntry {
  const { envelope, body, lane, messageId } = job
  const { task, payload, codec, meta, group, createdAt } = envelope ?? { task: '', payload: '' }
  const fresh = { id: idOf(job), task, payload, ...defined({ codec, meta, group, createdAt }) }
  const revived = envelope === undefined ? body : envelopeText(fresh)
  return sendEntry({ body: revived, lane: isFifo ? (lane ?? '') : group, sendId: messageId }, isFifo)
}
