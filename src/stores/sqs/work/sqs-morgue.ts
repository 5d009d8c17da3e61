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
import { type DeadLetter, type Envelope, envelopeForms, readEnvelope, sendEntry } from '../envelope.js'
import { systemAttributes } from '../receive/arrival.js'
import { type DeadLetters, isMessageRefused, type SqsQueue } from '../sqs-queue.js'
import type { SqsQueues } from '../sqs-queues.js'

/** Longer than a walk takes. If a process is killed during a walk, its messages stay hidden this long. */
const hiddenS = 120

/** A short poll asks some of the servers of a queue, a long one all. */
const pollS = 1

/** The most messages that a step takes, and the most that are searched for an id. */
const mostInStep = 1_000

const mostSearched = 10_000

/** After this many receives in a row that brought only messages which are left out, a walk ends. */
const mostIdle = 10

/** The next step of an action comes within this time. */
const longestRestMs = 60_000

/** Messages made visible again at a time: ten calls. */
const mostShown = 100

/** A revival or a removal of all dead jobs, which takes as many steps as it needs. */
interface WholeAction {
  /** Of the wall clock. */
  readonly startedAt: number
  /** Until when its next step comes, on the monotonic clock. */
  readonly lastsUntil: number
}

/** What a visitor of a walk says of the jobs that it was shown. */
interface Visit {
  readonly taken: readonly DeadJob[]
  /** None of them was of interest. */
  readonly isIdle?: boolean
  readonly isDone: boolean
}

export class SqsMorgue implements Morgue {
  readonly #api: SqsApi
  readonly #queues: SqsQueues
  readonly #clock: Clock
  /** By verb and queue: those with more to do. */
  readonly #wholes = new Map<string, WholeAction>()

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
    const send = (job: DeadJob) => of.send(...revivedEntries(job, of.isFifo))
    return typeof where === 'string' ? this.#takeAll(of, 'revive', send) : this.#takeSome(of, where.ids, send)
  }

  async delete(queue: string, where: JobSelection): Promise<Step> {
    const of = await this.#queues.get(queue)
    const nothing = async () => {}
    return typeof where === 'string' ? this.#takeAll(of, 'delete', nothing) : this.#takeSome(of, where.ids, nothing)
  }

  async #takeSome(of: SqsQueue, ids: readonly string[], before: (job: DeadJob) => Promise<void>): Promise<Step> {
    const asked = new Set(ids)
    const { changed, refused } = await this.#take(of, mostSearched, before, (job) => asked.delete(idOf(job)), asked)
    if (refused !== undefined) throw refused
    return { changed, more: false }
  }

  /**
   * A job that dies after the start of the action is left out: a revived one may die again at once, and would run for as
   * long as the action goes on. A refused job is told of when a step has nothing else to do.
   */
  async #takeAll(of: SqsQueue, verb: string, before: (job: DeadJob) => Promise<void>): Promise<Step> {
    const key = `${verb} ${of.name}`
    const last = this.#wholes.get(key)
    this.#wholes.delete(key)
    const goesOn = last !== undefined && this.#clock.mono() < last.lastsUntil
    const startedAt = goesOn ? last.startedAt : this.#clock.now()
    const { changed, refused, isWhole } = await this.#take(of, mostInStep, before, ({ sentAt }) => sentAt <= startedAt)
    const more = changed > 0 && (!isWhole || refused !== undefined)
    if (refused !== undefined && !more) throw refused
    if (more) this.#wholes.set(key, { startedAt, lastsUntil: this.#clock.mono() + longestRestMs })
    return { changed, more }
  }

  /**
   * Deletes the chosen jobs, each once `before` is done with it; of those that it refuses for good, resolves with the first
   * error. Ends when nothing is left in `asked`.
   */
  async #take(
    of: SqsQueue,
    most: number,
    before: (job: DeadJob) => Promise<void>,
    isChosen: (job: DeadJob) => boolean,
    asked?: ReadonlySet<string>,
  ): Promise<{ readonly changed: number; readonly refused: unknown; readonly isWhole: boolean }> {
    let changed = 0
    let refused: unknown
    const { deletes } = await of.dead()
    const isWhole = await this.#walk(of, most, async (jobs) => {
      const chosen = jobs.filter(isChosen)
      const ends = await Promise.allSettled(
        chosen.map(async (job) => {
          try {
            await before(job)
          } catch (error) {
            if (!isMessageRefused(error)) throw error
            refused ??= error
            return []
          }
          refuseLeft(await deletes.add({ ReceiptHandle: job.receipt }), of.names.dead)
          changed += 1
          return [job]
        }),
      )
      const taken = ends.flatMap((end) => {
        if (end.status === 'rejected') throw end.reason
        return end.value
      })
      return { taken, isIdle: chosen.length === 0, isDone: asked?.size === 0 }
    })
    return { changed, refused, isWhole }
  }

  /**
   * Receives up to `most` messages and shows them to `visit`, which says which it has removed and whether it has seen
   * enough. The others are hidden until the end. Resolves with whether it has seen all.
   */
  async #walk(of: SqsQueue, most: number, visit: (jobs: readonly DeadJob[]) => Promise<Visit>): Promise<boolean> {
    const dead = await of.dead()
    // For all seen messages: the receipt of each that must be made visible again, and none for removed ones.
    const receipts = new Map<string, string | undefined>()
    try {
      for (let count = 0, idle = 0; count < most && idle < mostIdle; ) {
        const received = await this.#receive(dead, Math.min(mostEntries, most - count))
        if (received.length === 0) return true
        count += received.length
        // SQS sometimes delivers a message twice.
        const jobs = received.filter(({ messageId }) => !receipts.has(messageId))
        for (const { messageId, receipt } of jobs) receipts.set(messageId, receipt)
        const { taken, isIdle = false, isDone } = await visit(jobs)
        idle = isIdle ? idle + 1 : 0
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

/** The forms of its message, with all attempts again; a message that is no job goes back unchanged. */
function revivedEntries(job: DeadJob, isFifo: boolean): SendEntry[] {
  const { envelope, body, lane, messageId } = job
  const { id, task, payload, codec, meta, group, createdAt } = envelope ?? { task: '', payload: '' }
  const fresh = { task, payload, ...defined({ id, codec, meta, group, createdAt }) }
  const bodies = envelope === undefined ? [body] : envelopeForms(fresh, { id: idOf(job) })
  return bodies.map((one) => sendEntry({ body: one, lane: isFifo ? (lane ?? '') : group, sendId: messageId }, isFifo))
}
