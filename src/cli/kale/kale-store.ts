/** The store of Kale's settings: its region and endpoint, in the form of an SQS address. Pure. */

import { hasCode } from '../../core/error-codes.js'
import { type SqsAddress, sqsAddress } from '../../stores/sqs/client/sqs-address.js'
import { isLookup, type Lookup, type PythonValue } from './python-value.js'
import type { ImportNote, Setting, Settings } from './settings-file.js'

export interface DraftStore {
  readonly region: string | Lookup
  /**
   * The joined parts of an address. Absent: AWS's own endpoint for the region. A single look-up that gives no text
   * means the same.
   */
  readonly endpoint?: readonly (string | Lookup)[]
}

const [regionName, urlName] = ['AWS_REGION', 'MESSAGE_QUEUE_ENDPOINT_URL']
const [proxyName, hostName, portName] = [
  'MESSAGE_QUEUE_USE_PROXY',
  'MESSAGE_QUEUE_PROXY_HOST',
  'MESSAGE_QUEUE_PROXY_PORT',
]
export const storeSettings: readonly string[] = [regionName, urlName, proxyName, hostName, portName]

const byHand = 'write `?endpoint=http://host:port` behind the region in `store`'

export function storeOf(settings: Settings): { readonly store: DraftStore; readonly notes: readonly ImportNote[] } {
  const notes: ImportNote[] = []
  const note = (level: ImportNote['level'], setting: string, text: string) => {
    const line = settings.get(setting)?.line
    notes.push({ ...(line !== undefined && { line }), level, setting, text })
  }
  const region = regionOf(settings.get(regionName), note)
  const endpoint = settings.has(urlName) ? urlOf(settings.get(urlName)!.value, note) : proxyOf(settings, note)
  if (settings.has(urlName))
    for (const name of [proxyName, hostName, portName])
      if (settings.has(name)) note('left', name, `${urlName} is used in its place`)
  return { store: { region, ...(endpoint !== undefined && { endpoint }) }, notes }
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
