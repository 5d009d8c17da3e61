/** A job line: one line of an enqueued stream, as the jobs that it describes. Pure. */

import type { Hash, Hmac } from 'node:crypto'
import { describe, messageOf } from '../../core/messages/describe.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import { jsonContent } from '../../core/values/codec.js'
import { idOf } from '../../core/values/ids.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import { exactJson, exactJsonOfNode } from '../../core/values/json.js'
import type { NumberedLine } from './input-text.js'

/** One job, or one payload of an ordered one. */
export interface LineJob {
  readonly line: number
  readonly task: string
  readonly input: unknown
  readonly options: AnyEnqueueOptions
  /**
   * The id of a plain job without its own, and the name of an ordered payload without a score: the same for the same
   * line of the same text.
   */
  readonly lineId?: string
}

/** The rules that all lines of a stream share. */
export interface LineRules {
  /** Undefined: each line names its own task. */
  readonly task: string | undefined
  /** The path in the input that gives the id, such as `order.id`. */
  readonly key: string | undefined
  /** Lines without an id of their own get new ones. */
  readonly newIds: boolean
  readonly options: AnyEnqueueOptions
  /** A hash of lines for their ids; keyed if the mill seals. */
  readonly hash: () => Hash | Hmac
}

/** The fields that a line of an envelope may have. */
interface JobEnvelope {
  readonly task: string
  readonly state?: string
  readonly input?: unknown
  readonly payloads?: readonly { readonly input?: unknown; readonly score?: number; readonly meta?: unknown }[]
  readonly meta?: unknown
  readonly runAt?: string
  readonly expiresAt?: string
  readonly [field: string]: unknown
}

const waitingStates = ['ready', 'scheduled']
const placing = ['queue', 'priority', 'group', 'score', 'delay', 'expiresIn'] as const
const enveloped = ['id', 'ifWaiting', 'atMost', 'idempotency', 'fields', ...placing] as const
const known = ['task', 'input', 'meta', ...enveloped, 'runAt', 'expiresAt', 'state', 'payloads']

/** The input of one job. Throws an error whose message describes the mistake in the line. */
export function plainJob(
  line: NumberedLine,
  { task, key, newIds, options, hash }: LineRules & { task: string },
): LineJob {
  const input = parsedLine(line, exactJson)
  const lineId = newIds ? {} : { lineId: lineIdOf(line, task, hash) }
  const id = key === undefined ? {} : { id: keyOf(input, key) }
  return { line: line.number, task, input, options: { ...options, ...id }, ...lineId }
}

/**
 * The jobs of an envelope, `[]` if the job was not waiting, or has expired `now`. Its `runAt` counts only if
 * the job was not due. Throws an error whose message describes the mistake in the line.
 */
export function envelopeJobs(line: NumberedLine, { newIds, options, hash }: LineRules, now: number): LineJob[] {
  // `jobs list --envelope` has written it, or another language.
  const envelope = parsedLine(line, exactJsonOfNode)
  if (Object.hasOwn(Object(envelope), 'queues'))
    throw new Error('is a page of `jobs list --json`; `jobs list --envelope` writes a line for each job')
  if (!isEnvelope(envelope))
    throw new Error(
      'expected {"task","input"} with "queue", "id", "priority", "runAt", "delay", "group" and "meta" as they are needed, or {"task","id","payloads"}',
    )
  const strange = Object.keys(envelope).filter((field) => !known.includes(field))
  if (strange.length > 0)
    throw new Error(`has ${strange.map((field) => `'${field}'`).join(', ')}; there are ${known.join(', ')}`)
  const { task, state, input, payloads, runAt, expiresAt } = envelope
  const expiresIn = expiresAt === undefined ? undefined : fromNow('expiresAt', expiresAt, now)
  if (expiresIn !== undefined && expiresIn <= 0) return []
  if (state !== undefined && !waitingStates.includes(state)) return []
  const said = Object.fromEntries(
    enveloped.flatMap((name) => (envelope[name] === undefined ? [] : [[name, envelope[name]]])),
  )
  // A job that expires is enqueued with a delay, because an expiry cannot be compared with a time.
  const dueOf = (at: string) =>
    expiresIn === undefined ? { runAt: at } : { delay: Math.max(0, fromNow('runAt', at, now)) }
  const shared = {
    ...said,
    ...(runAt !== undefined && state !== 'ready' && dueOf(runAt)),
    ...(expiresIn !== undefined && { expiresIn }),
    ...options,
  }
  const jobOf = (
    part: { readonly input?: unknown; readonly meta?: unknown; readonly score?: number },
    place: number,
  ): LineJob => ({
    line: line.number,
    task,
    ...(!newIds && { lineId: `${lineIdOf(line, task, hash)}${place === 0 ? '' : `-${place}`}` }),
    input: jsonContent(part.input),
    options: {
      ...shared,
      ...(part.score !== undefined && { score: part.score }),
      ...(part.meta !== undefined && { meta: jsonContent(part.meta) as never }),
    },
  })
  return payloads === undefined ? [jobOf({ ...envelope, input }, 0)] : payloads.map(jobOf)
}

/** The time from now, in ms. Throws an error that names the field if it is not a time. */
function fromNow(field: string, value: unknown, now: number): number {
  const at = parseInstant(value)
  if (at === undefined) throw new Error(`${field} ${instantMistake(value)}; got ${describe(value)}`)
  return at - now
}

function isEnvelope(value: unknown): value is JobEnvelope {
  if (typeof value !== 'object' || value === null) return false
  const { task, payloads } = value as Record<string, unknown>
  return typeof task === 'string' && (payloads === undefined ? 'input' in value : Array.isArray(payloads))
}

function parsedLine({ text }: NumberedLine, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch (error) {
    throw new Error(`not JSON: ${messageOf(error)}`)
  }
}

function lineIdOf({ number, text }: NumberedLine, task: string, hash: LineRules['hash']): string {
  const digest = hash().update(`${task}\n${text.trim()}`).digest('base64url')
  return `line-${number}-${digest.slice(0, 16)}`
}

function keyOf(input: unknown, key: string): string {
  let value = input
  for (const step of key.split('.'))
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  // A text that is no id is refused with the others of its line.
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? idOf(value) : value
  throw new Error(`has no text and no number at '${key}', which --key names`)
}
