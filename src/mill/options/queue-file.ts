/**
 * A queue file: queues in YAML, in Kale's form or with Millrace's options. Every mistake is reported at once, with its
 * line and column. Aliases and tags are refused, because they would let a small file stand for a huge one.
 */

import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type * as Yaml from 'yaml'
import { ConfigError, type ConfigIssue, hasCode } from '../../core/errors.js'
import { describe, messageOf } from '../../core/messages/describe.js'
import { mostPerClaim, type QueueOptions, queueOptionsSchema } from '../../core/queue/queue.js'
import { isQueueName, queueNameForm } from '../../core/values/ids.js'
import { mistakesIn } from '../../core/values/option-check.js'
import { baseFolder } from '../base-folder.js'

const mostBytes = 1_048_576
/** Millrace's options that are maps themselves. */
const nested = new Set(['retention', 'maxRunning', 'throttle'])

/** Loaded only for a queue file, because it takes 20 ms. By `require`, because options are checked synchronously. */
const require = createRequire(import.meta.url)
const yaml = () => require('yaml') as typeof Yaml

type Place = (offset: number | undefined) => string

/**
 * The queues of the file by name. A relative path is resolved from the folder of the configuration. Throws
 * `ConfigError`.
 */
export function readQueueFile(path: string): Record<string, QueueOptions> {
  const file = resolve(baseFolder(), path)
  const queues = queuesIn(textOf(file, path), path)
  if ('issues' in queues) throw new ConfigError(`the queue file '${path}'`, queues.issues)
  return queues.queues
}

function textOf(file: string, path: string): string {
  const refuse = (message: string): never => {
    throw new ConfigError('the configuration', [{ path: 'queues', message }])
  }
  try {
    if (statSync(file).size > mostBytes)
      return refuse(`'${path}' is larger than a queue file can be: ${mostBytes} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'config-invalid')) throw error
    return refuse(`names the file '${file}', which cannot be read: ${messageOf(error)}`)
  }
}

/** The queues in a text. Pure. `path`: the name of the file in messages. */
export function queuesIn(
  text: string,
  path: string,
): { readonly queues: Record<string, QueueOptions> } | { readonly issues: ConfigIssue[] } {
  const { isMap, LineCounter, parseAllDocuments, visit } = yaml()
  const lines = new LineCounter()
  const place: Place = (offset = 0) => {
    const { line, col } = lines.linePos(offset)
    return `${path}:${line}:${col}`
  }
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true, schema: 'core' })
  const [document] = Array.isArray(documents) ? documents : []
  if (document === undefined) return { issues: [{ path: place(0), message: 'is empty; expected a queue at least' }] }
  const issues: ConfigIssue[] = [...document.errors, ...document.warnings].map(({ pos, message }) => ({
    path: place(pos[0]),
    // The second line of the library's message draws the place.
    message: message.split('\n')[0]!.replace(/ at line .*$/, ''),
  }))
  visit(document, {
    Alias: (_, { range }) => {
      issues.push({ path: place(range?.[0]), message: 'is an alias; write out what it stands for' })
    },
    Node: (_, { tag, range }) => {
      if (tag !== undefined && !tag.startsWith('tag:yaml.org,2002:'))
        issues.push({ path: place(range?.[0]), message: `has the tag '${tag}'; leave it out` })
    },
  })
  if (Array.isArray(documents) && documents.length > 1)
    issues.push({ path: place(documents[1]!.range[0]), message: 'begins a second document; a queue file has one' })
  const { contents } = document
  if (!isMap(contents)) {
    if (issues.length === 0) issues.push({ path: place(0), message: 'must be a map of queues, each with its options' })
    return { issues }
  }
  const queues = new Map<string, QueueOptions>()
  for (const pair of contents.items as Yaml.Pair[]) {
    const queue = new QueueEntry(pair, place)
    issues.push(...queue.issues)
    if (queues.has(queue.name))
      issues.push({ path: queue.place, message: `is a second queue '${queue.name}'; each has a name of its own` })
    queues.set(queue.name, queue.options)
  }
  return issues.length > 0 ? { issues } : { queues: Object.fromEntries(queues) }
}

/** One queue of the file. */
class QueueEntry {
  readonly issues: ConfigIssue[] = []
  readonly place: string
  readonly name: string
  readonly options: QueueOptions
  readonly #placeOf: Place
  /** The place and the key of each option that was read. */
  readonly #keys = new Map<string, { readonly place: string; readonly key: string }>()

  constructor({ key, value }: Yaml.Pair, place: Place) {
    this.#placeOf = place
    this.place = place(startOf(key))
    const label = textIn(key)
    // Without a prototype, because a key can have any name.
    const given: Record<string, unknown> = Object.create(null)
    let name = label
    if (!yaml().isMap(value))
      this.#refuse(this.place, `'${label}' has no options; expected a map of them, indented behind it`)
    else
      for (const pair of value.items as Yaml.Pair[]) {
        if (textIn(pair.key) === 'name') name = this.#nameIn(pair)
        else this.#option(pair, given, label)
      }
    if (!isQueueName(name)) this.#refuse(this.place, `names the queue ${describe(name)}; expected ${queueNameForm}`)
    this.name = name
    this.options = given as QueueOptions
    for (const { path, message } of mistakesIn(queueOptionsSchema, given)) {
      const told = this.#keys.get(path.split('.')[0]!)
      this.#refuse(told?.place ?? this.place, `'${told?.key ?? path}' ${message}`)
    }
  }

  #nameIn({ key, value }: Yaml.Pair): string {
    const name: unknown = yaml().isScalar(value) ? value.value : undefined
    if (typeof name === 'string') return name
    this.#refuse(this.#placeOf(startOf(key)), `'name' must be a text; got ${describe(name)}`)
    return textIn(key)
  }

  #option({ key, value }: Yaml.Pair, given: Record<string, unknown>, label: string): void {
    const word = textIn(key)
    const place = this.#placeOf(startOf(key))
    const said = plainValue(value)
    const kale = kaleKeys.get(word)
    const option = kale?.option ?? word
    const before = this.#keys.get(option)
    // A queue has been indented too far: its options are next to it, or below it.
    if (kale === undefined && !nested.has(word) && (said === null || yaml().isMap(value)))
      this.#refuse(place, `'${word}' is no option of a queue. If it is a queue, begin it in the column of '${label}'`)
    // The duplicate key has been reported already.
    else if (before?.key === word) return
    else if (before !== undefined) this.#refuse(place, `'${word}' repeats '${before.key}'`)
    else {
      this.#keys.set(option, { place, key: word })
      const read = kale === undefined ? said : kale.read(said)
      if (read !== undefined) given[option] = read
      else this.#refuse(place, `'${word}' must be ${kale!.form}; got ${describe(said)}`)
    }
  }

  #refuse(path: string, message: string): void {
    this.issues.push({ path, message })
  }
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: readonly [number, ...unknown[]] | null } | null)?.range?.[0]
}

function textIn(key: unknown): string {
  return yaml().isScalar(key) ? String(key.value) : String(key)
}

function plainValue(value: unknown): unknown {
  if (yaml().isScalar(value)) return value.value
  return yaml().isMap(value)
    ? (value as Yaml.YAMLMap).toJSON()
    : ((value as { toJSON?: () => unknown } | null)?.toJSON?.() ?? null)
}

interface KaleKey {
  readonly option: string
  /** The value of the option; undefined if it is invalid. */
  read(value: unknown): number | undefined
  readonly form: string
}

const isWhole = (value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most

const count = (option: string, least: number, most?: number): KaleKey => ({
  option,
  read: (value) => (isWhole(value, least, most) ? value : undefined),
  form: most === undefined ? `a whole number of at least ${least}` : `a whole number from ${least} to ${most}`,
})

/** Kale treats 0 as 20. */
const longPollOfZeroS = 20

/** The keys of Kale's queue file, with the options that they become. */
const kaleKeys: ReadonlyMap<string, KaleKey> = new Map(
  Object.entries({
    priority: count('weight', 1, 100),
    batch_size: count('claimSize', 1, mostPerClaim),
    num_iterations: count('iterations', 1, 1_000_000),
    visibility_timeout_sec: {
      option: 'lease',
      read: (value) => (isWhole(value, 3, 43_200) ? value * 1_000 : undefined),
      form: 'a whole number of seconds from 3 to 43200',
    },
    long_poll_time_sec: {
      option: 'longPoll',
      read: (value) => (isWhole(value, 0, 20) ? (value || longPollOfZeroS) * 1_000 : undefined),
      form: 'a whole number of seconds from 0 to 20 (0 is 20, as in Kale)',
    },
  } satisfies Record<string, KaleKey>),
)
