/** An SQS address: the region, the endpoint and the way of polling. Pure. */

import { refuseStore } from '../../../core/values/store-address.js'

/**
 * Which queues an idle worker polls. `'first'`: one at a time for 20 s, so three calls a minute, however many queues
 * there are; a job in another queue waits for its turn, with three queues at most 40 s. `'each'`: all at once, three
 * calls a minute each.
 */
export type SqsPolling = 'first' | 'each'

export interface SqsAddress {
  readonly region: string
  /** The endpoint of the service, if it is not AWS's own for the region. */
  readonly endpoint?: string
  readonly poll: SqsPolling
}

const form = "expected 'sqs://region[?endpoint=http://host:port][&poll=first|each]'"
const shape = /^sqs:\/\/([^/?#@]*)\/?(?:\?([^#]*))?$/
const region = /^[a-z]{2,4}(?:-[a-z]+)+-\d+$/
const parameters = ['endpoint', 'poll']

/**
 * Throws `ConfigError`. An address holds no secret: credentials come from the chain of the AWS SDK, and are refused
 * here.
 */
export function sqsAddress(url: string): SqsAddress {
  const parts = shape.exec(url)
  if (parts === null) return refuseStore(`${form}. What was given is not shown, as it may hold a secret`)
  const [, name = '', query = ''] = parts
  if (!region.test(name)) return refuseStore(`'${name}' is no region of AWS such as 'eu-central-1'; ${form}`)
  const search = new URLSearchParams(query)
  const unknown = [...search.keys()].find((key) => !parameters.includes(key))
  if (unknown !== undefined)
    return refuseStore(
      `'${unknown}' is no parameter; there are ${parameters.join(', ')}. Credentials come from the environment`,
    )
  const double = parameters.find((parameter) => search.getAll(parameter).length > 1)
  if (double !== undefined) return refuseStore(`'${double}' is given twice`)
  const endpoint = search.get('endpoint')
  const poll = search.get('poll') ?? 'first'
  if (poll !== 'first' && poll !== 'each') return refuseStore(`poll is '${poll}'; expected 'first' or 'each'`)
  return { region: name, poll, ...(endpoint === null ? {} : { endpoint: endpointIn(endpoint) }) }
}

/** The address as messages show it. */
export function sqsAddressText({ region, endpoint }: SqsAddress): string {
  return `sqs://${region}${endpoint === undefined ? '' : `?endpoint=${endpoint}`}`
}

/** Whether the service runs on this machine, as an emulator does. */
export function isLoopback(endpoint: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(endpoint).hostname)
}

function endpointIn(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    return refuseStore("the endpoint is no address such as 'http://localhost:9324'")
  if (url.username !== '' || url.password !== '')
    return refuseStore('the endpoint holds a user or a password, which SQS has not')
  if (url.pathname !== '/' || url.search !== '')
    return refuseStore(
      "the endpoint holds a path or a query; expected a host and a port, as in 'http://localhost:9324'",
    )
  return url.origin
}
