/** Kale's settings: the option of Millrace that each becomes, and the remedy if there is none. Pure. */

import { posix } from 'node:path'
import { parseByteSize } from '../../core/values/byte-size.js'
import type { SelectorName } from '../../selectors/named-selectors.js'
import { type DraftStore, storeOf, storeSettings } from './kale-store.js'
import { isLookup, isSettingsPath, type Lookup, type PythonValue } from './python-value.js'
import type { ImportNote, Settings } from './settings-file.js'

/** A configuration to be written. Absent parts get their defaults. */
export interface ConfigDraft {
  readonly store: DraftStore
  /** Relative to the folder of the configuration, or absolute. */
  readonly queueFile: string | Lookup
  readonly maxPayloadBytes?: number | Lookup
  readonly selector?: SelectorName
  readonly maxRssMb?: number | Lookup
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
    text: `belongs to each task: \`retry: { backoff: kale({ multiple: '${typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 60}s' }) }\``,
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
