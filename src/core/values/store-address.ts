/** The common parts of store addresses: hosts, percent-encoded texts, and the errors that refuse an address. Pure. */

import { ConfigError } from '../errors.js'

interface ServerHost {
  readonly host: string
  readonly port: number
}

/** An address that is not understood may hold a password anywhere. */
export const hidden = 'What was given is not shown, as it may hold a password'

/** The error if the store cannot be used as configured. `message` names the remedy. */
export function unfit(message: string): ConfigError {
  return new ConfigError('the store', [{ path: 'store', message }])
}

export function refuseStore(message: string): never {
  throw unfit(message)
}

/** `forms`: how an address is written. */
export function hostIn(text: string, defaultPort: number, forms: string): ServerHost {
  const parts = /^(?:\[([\da-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d+))?$/.exec(text)
  if (parts === null) return refuseStore(`a host must be 'host', 'host:port' or '[address]:port'; ${forms}`)
  return { host: (parts[1] ?? parts[2])!, port: checkedPort(Number(parts[3] ?? defaultPort)) }
}

export function checkedPort(port: number): number {
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  return refuseStore(`${port} is no port; expected 1 … 65535`)
}

export function hostsText(hosts: readonly ServerHost[]): string {
  return hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')
}

/** `parts`: what is percent-encoded in such an address. */
export function decoded(text: string, parts: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return refuseStore(`${parts} holds a '%' that begins no code such as %40`)
  }
}
