/** Kale's settings: the option of Millrace that each becomes, and the remedy if there is none. Pure. */

import { posix } from 'node:path'
import { hasCode } from '../../../core/errors.js'
import { parseByteSize } from '../../../core/values/byte-size.js'
import { defined } from '../../../core/values/defined.js'
import type { SelectorName } from '../../../selectors/named-selectors.js'
import { type SqsAddress, sqsAddress } from '../../../stores/sqs/client/sqs-address.js'
import { isLookup, isSettingsPath, type Lookup, type PythonValue } from './python-value.js'
import type { ImportNote, Setting, Settings } from './settings-file.js'

/** A configuration to be written. Absent parts get their defaults. */
export interface ConfigDraft {
  readonly store: DraftStore
  /** Relative to the folder of the configuration, or absolute. */
  readonly queueFile: string | Lookup
  readonly maxPayloadBytes?: number | Lookup
  readonly selector?: SelectorName
  readonly maxRssMb?: number | Lookup
}

export interface DraftStore {
  readonly region: string | Lookup
  /**
   * The joined parts of an address. Absent: AWS's own endpoint for the region. A single look-up that gives no text
   * means the same.
   */
  readonly endpoint?: readonly (string | Lookup)[]
}

/** Absolute paths. */
interface ImportFolders {
  /** The folder in which Kale's worker is started, as far as it is known. */
  readonly working: string
  readonly settings: string
  readonly config: string
}

/** The outcome of one setting: a part of the draft, or nothing, with a note for the user. */
interface Became {
  readonly level: ImportNote['level']
  readonly text: string
  readonly part?: Partial<ConfigDraft>
}

type Rule = (value: PythonValue, folders: ImportFolders) => Became

/** Kale's own default. */
const defaultQueueFile = 'queue_config.yaml'
const mostPayloadBytes = 1_048_576

const selectors: Readonly<Record<string, SelectorName>> = {
  ReducedLottery: 'reduced-lottery',
  Lottery: 'lottery',
  LotteryLottery: 'lottery-lottery',
  HighestPriorityFirst: 'highest-first',
  HighestPriorityLottery: 'highest-first-lottery',
  Random: 'random',
}

const left = (text: string): Rule => {
  return () => ({ level: 'left', text })
}

const credential = left(
  'is not copied: the AWS SDK finds it in the environment variable of this name, a profile or a role; never in a configuration',
)
const crypt = left(
  'is a secret and is not copied: `seal` encrypts the data of jobs, with a key from the environment; SQS encrypts at rest',
)
const deadLetters: Rule = (value) =>
  value === true
    ? { level: 'taken', text: 'a job that cannot be done is buried in `dlq-<name>`, always' }
    : { level: 'left', text: 'a job that cannot be done is buried in `dlq-<name>` all the same; there is no switch' }

const rules: Readonly<Record<string, Rule>> = {
  AWS_ACCESS_KEY_ID: credential,
  AWS_SECRET_ACCESS_KEY: credential,
  UTIL_CRYPT_CIPHER: crypt,
  UTIL_CRYPT_KEY: crypt,
  QUEUE_CONFIG: queueFile,
  QUEUE_SELECTOR: selector,
  QUEUE_CLASS: (value) =>
    value === 'kale.queue_info.TaskQueue'
      ? { level: 'taken', text: "`namespace: ''` keeps the names of the queues" }
      : {
          level: 'left',
          text: 'is a class of yours: if it decorates the names of queues with a prefix, set `namespace` to that',
        },
  SQS_TASK_SIZE_LIMIT: (value) =>
    amount(value, mostPayloadBytes, (maxPayloadBytes) => ({
      level: 'taken',
      text: '`maxPayloadBytes`: of one input, before it is put into a message',
      part: { maxPayloadBytes },
    })) ?? { level: 'left', text: `is no number from 1 to ${mostPayloadBytes}: \`maxPayloadBytes\` stays 256000` },
  DIE_ON_RESIDENT_SET_SIZE_MB: (value) =>
    amount(value, 1_048_576, (maxRssMb) => ({
      level: 'taken',
      text: '`worker.maxRss`, as `--max-rss` of `millrace work`',
      part: { maxRssMb },
    })) ?? { level: 'left', text: 'is no whole number of megabytes: give `--max-rss` to `millrace work`' },
  RETRY_DELAY_MULTIPLE_SEC: (value) => ({
    level: 'left',
    text: `belongs to each task: \`retry: { backoff: exponential({ base: '${typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 60}s', jitter: false }) }\``,
  }),
  SQS_MAX_TASK_DELAY_SEC: left('is not needed: a delay may be of any length'),
  USE_DEAD_LETTER_QUEUE: deadLetters,
  ENABLE_DEAD_LETTER_QUEUE: deadLetters,
  TASK_MAPPER: left('belongs to each task: `aliases`, its former names'),
  COMPRESSOR: left("is an option of the mill: `compress: { above: '1kB' }`, by gzip"),
  DECOMPRESSOR: left("is an option of the mill: `compress: { above: '1kB' }`, by gzip"),
  PICKLE_PROTOCOL: left('has no counterpart: the payload is JSON, and a pickled message is never unpickled'),
  SQS_QUEUE_TAG_FUNCTION: left(
    'is a function of yours: `millrace queues create --tag key=value` gives all that it makes the same tags',
  ),
  TIMESTAMP_FUNC: left('is not needed: `ctx.job.createdAt` is the time of the enqueue'),
  PUBLISHER_STR_FUNC: left('has no counterpart: put such data into `meta`'),
  RESET_TIMEOUT_THRESHOLD: left('is not needed: jobs that are put back are visible at once'),
  ON_WORKER_STARTUP: left('is a function of yours: `onWorkerStart` of the configuration'),
  ON_WORKER_SHUTDOWN: left('is a function of yours: `onWorkerStop` of the configuration'),
}

/** The settings of the store. */
const [regionName, urlName] = ['AWS_REGION', 'MESSAGE_QUEUE_ENDPOINT_URL']
const [proxyName, hostName, portName] = [
  'MESSAGE_QUEUE_USE_PROXY',
  'MESSAGE_QUEUE_PROXY_HOST',
  'MESSAGE_QUEUE_PROXY_PORT',
]
const storeSettings: readonly string[] = [regionName, urlName, proxyName, hostName, portName]

/** Every known setting of Kale. */
export const kaleSettings: ReadonlySet<string> = new Set([...Object.keys(rules), ...storeSettings])

/**
 * The configuration for these settings, and the outcome of each. Without a setting of Kale's it is the configuration of
 * Kale's defaults.
 */
export function draftOf(
  settings: Settings,
  folders: ImportFolders,
): { readonly draft: ConfigDraft; readonly notes: readonly ImportNote[] } {
  const { store, notes: told } = storeOf(settings)
  const notes: ImportNote[] = [...told]
  const { part: defaults } = queueFile(defaultQueueFile, folders)
  let draft: ConfigDraft = { store, queueFile: defaultQueueFile, ...defaults }
  for (const [setting, { value, line }] of settings) {
    if (storeSettings.includes(setting)) continue
    const rule = Object.hasOwn(rules, setting)
      ? rules[setting]!
      : left('is no setting of Kale, and is left to the code that reads it')
    const { level, text, part } = rule(value, folders)
    draft = { ...draft, ...part }
    notes.push({ line, level, setting, text })
  }
  if (!settings.has('QUEUE_CONFIG'))
    notes.push({
      level: 'left',
      setting: 'QUEUE_CONFIG',
      text: `is not set: \`queues\` is Kale's default, ${defaultQueueFile}`,
    })
  notes.push({
    level: 'left',
    setting: 'long_poll_time_sec',
    text: 'of the queue file has no effect on SQS: an idle worker polls one queue for 20 s, and finds a job in another when it is its turn; `?poll=each` behind the region of `store` polls all at once',
  })
  return { draft, notes }
}

function queueFile(value: PythonValue, { working, settings, config }: ImportFolders): Became {
  const fromConfig = (path: string, folder: string) => {
    if (path.startsWith('/')) return path
    const relative = posix.relative(config, posix.join(folder, path))
    return relative.startsWith('../') ? relative : `./${relative}`
  }
  if (isSettingsPath(value))
    return { level: 'taken', text: '`queues`', part: { queueFile: fromConfig(value.below, settings) } }
  if (typeof value === 'string' && value !== '')
    return { level: 'taken', text: '`queues`', part: { queueFile: fromConfig(value, working) } }
  if (isLookup(value)) {
    const { variable, otherwise } = value
    const lookup = { variable, otherwise: fromConfig(String(otherwise ?? defaultQueueFile), working) }
    return {
      level: 'taken',
      text: '`queues`; a relative path in the variable is taken from the folder of the configuration',
      part: { queueFile: lookup },
    }
  }
  return { level: 'left', text: `is no path: \`queues\` is Kale's default, ${defaultQueueFile}` }
}

function selector(value: PythonValue): Became {
  const [, name = ''] = (typeof value === 'string' && /^kale\.queue_selector\.(\w+)$/.exec(value)) || []
  if (Object.hasOwn(selectors, name))
    return { level: 'taken', text: '`worker.selector`', part: { selector: selectors[name]! } }
  return {
    level: 'left',
    text: isLookup(value)
      ? 'is chosen by an environment variable: `worker.selector` takes a name, and `--selector` of `millrace work` another'
      : 'is a class of yours: `worker.selector` takes a function, or one of eight names',
  }
}

/** Undefined unless it is a whole number of at least 1, or a look-up of one. */
function amount(value: PythonValue, most: number, became: (of: number | Lookup) => Became): Became | undefined {
  const given = isLookup(value) ? Number(value.otherwise ?? 1) : value
  if (typeof given !== 'number' || parseByteSize(given) === undefined || given > most) return undefined
  return became(value as number | Lookup)
}

const byHand = 'write `?endpoint=http://host:port` behind the region in `store`'

/** The region and the endpoint of the store, in the form of an SQS address. */
function storeOf(settings: Settings): { readonly store: DraftStore; readonly notes: readonly ImportNote[] } {
  const notes: ImportNote[] = []
  const note = (level: ImportNote['level'], setting: string, text: string) => {
    const line = settings.get(setting)?.line
    notes.push({ ...defined({ line }), level, setting, text })
  }
  const region = regionOf(settings.get(regionName), note)
  const endpoint = settings.has(urlName) ? urlOf(settings.get(urlName)!.value, note) : proxyOf(settings, note)
  if (settings.has(urlName))
    for (const name of [proxyName, hostName, portName])
      if (settings.has(name)) note('left', name, `${urlName} is used in its place`)
  return { store: { region, ...defined({ endpoint }) }, notes }
}

type Say = (level: ImportNote['level'], setting: string, text: string) => void

function regionOf(setting: Setting | undefined, note: Say): string | Lookup {
  const value = setting?.value ?? ''
  const own = '`store` reads the environment variable AWS_REGION'
  if (value === '') note('left', regionName, `is not set: ${own}; if there is none, write the region there`)
  else if (!isTextWith(value, (region) => addressOf(`sqs://${region}`) !== undefined))
    note('left', regionName, `is no region such as us-west-2: ${own} instead`)
  else {
    note('taken', regionName, '`store`')
    return value
  }
  return { variable: regionName }
}

function urlOf(value: PythonValue, note: Say): DraftStore['endpoint'] {
  if (value === null || value === '') {
    note('taken', urlName, "`store`: AWS's own endpoint")
    return undefined
  }
  if (!isTextWith(value, (url) => url === '' || originOf(url) !== undefined)) {
    note('left', urlName, `is no address of the form http://host:port without a user; ${byHand}`)
    return undefined
  }
  note('taken', urlName, '`store`')
  return [withText(value, (url) => originOf(url) ?? '')]
}

function proxyOf(settings: Settings, note: Say): DraftStore['endpoint'] {
  const [use, host, port] = [proxyName, hostName, portName].map((name) => settings.get(name)?.value)
  const given = [proxyName, hostName, portName].filter((name) => settings.has(name))
  const left = (text: string) => {
    for (const name of given) note('left', name, text)
    return undefined
  }
  if (isLookup(use ?? null))
    return left(`an environment variable decides whether there is a proxy; if there is one, ${byHand}`)
  if (!use) return left(`no proxy is used, for ${proxyName} is not True`)
  const fits = (text: string, isPort: boolean) =>
    text === '' || originOf(isPort ? `http://a:${text}` : `http://${text}:1`) !== undefined
  const number = typeof port === 'number' ? String(port) : port
  if (!isTextWith(host, (text) => fits(text, false)) || !isTextWith(number, (text) => fits(text, true)))
    return left(`they name no host and port that fit together; ${byHand}`)
  for (const name of given) note('taken', name, '`store`')
  const everywhere = '0.0.0.0'
  if (host === everywhere || (isLookup(host) && host.otherwise === everywhere))
    note('left', hostName, `${everywhere} is an address to listen on: 127.0.0.1 is written, which needs no credentials`)
  return ['http://', withText(host, (text) => (text === everywhere ? '127.0.0.1' : text)), ':', number]
}

/** Whether it is a text of that form, or a look-up whose default, if any, has it. */
function isTextWith(value: PythonValue | undefined, fits: (text: string) => boolean): value is string | Lookup {
  if (value === undefined) return false
  if (!isLookup(value)) return typeof value === 'string' && fits(value)
  return value.otherwise === undefined || fits(String(value.otherwise))
}

function withText(value: string | Lookup, change: (text: string) => string): string | Lookup {
  if (!isLookup(value)) return change(value)
  return value.otherwise === undefined ? value : { ...value, otherwise: change(String(value.otherwise)) }
}

/** The origin; undefined for a text that is not an endpoint, or that contains a user. */
function originOf(url: string): string | undefined {
  return addressOf(`sqs://us-west-2?endpoint=${encodeURIComponent(url)}`)?.endpoint
}

function addressOf(url: string): SqsAddress | undefined {
  try {
    return sqsAddress(url)
  } catch (error) {
    if (hasCode(error, 'config-invalid')) return undefined
    throw error
  }
}
