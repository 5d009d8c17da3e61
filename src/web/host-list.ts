/**
 * The host list: the names under which the window may be reached. A foreign page whose name was made to point here (DNS
 * rebinding) still sends its own name. Pure.
 */

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]'])
const hostForm = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i

/** Whether the text may be a Host header: a name or an address, and a port. */
export function isHost(text: string): boolean {
  return hostForm.test(text)
}

/** The host without its port, in lower case. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '')
}

export function isLoopbackHost(host: string): boolean {
  return isHost(host) && loopbackNames.has(nameOf(host))
}

/** Loopback, or one of `hosts`: a name for every port, or `name:port`. */
export function isAllowedHost(host: string | undefined, hosts: readonly string[]): boolean {
  if (host === undefined || !isHost(host)) return false
  return loopbackNames.has(nameOf(host)) || isListed(host, hosts)
}

/** Whether the peer is this machine, by the address of its socket. */
export function isLoopbackAddress(address: string): boolean {
  return /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/.test(address)
}

/**
 * Whether a request comes from a page of ours, or from no page. `origin`: the header; it must name the host of the
 * request, or one listed in `hosts`. `site`: the browser's description of the page (`Sec-Fetch-Site`).
 */
export function isOwnOrigin(
  { origin, site }: { readonly origin: string | undefined; readonly site: string | undefined },
  host: string,
  hosts: readonly string[],
): boolean {
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  if (origin === undefined) return true
  const asked = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase()
  return asked !== undefined && (asked === host.toLowerCase() || isListed(asked, hosts))
}

function isListed(host: string, hosts: readonly string[]): boolean {
  return hosts.some((one) => one.toLowerCase() === host.toLowerCase() || one.toLowerCase() === nameOf(host))
}
