/** The command `dash`: serves the dashboard of the mill in a process of its own, until a signal stops it. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { type Command, Option } from 'commander'
import type { Mill } from '../../mill/mill.js'
import { isLoopbackAddress } from '../../web/host-list.js'
import type { WebHandler } from '../../web/web-handler.js'
import { fromEnvironment, namesFlag, wholeFlag } from '../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { OperationError, UsageError } from '../process/exit-code.js'
import { stopRequest } from '../process/stop-request.js'
import type { Terminal } from '../terminal/terminal.js'

interface DashFlags extends MillFlags {
  readonly port: number
  readonly host: string
  readonly token?: string
  readonly hosts?: string[]
  readonly readOnly?: boolean
  readonly allowRemote?: boolean
}

const variable = 'MILLRACE_DASH_TOKEN'

export function addDash(program: Command): void {
  const command = millCommand(program, 'dash', 'Serve the dashboard, a page with an HTTP API, until stopped')
    .option('--port <n>', 'the port it listens on; 0: any free port', wholeFlag(0, 65_535), 4_747)
    .option('--host <address>', 'the address it listens on', '127.0.0.1')
    .addOption(
      fromEnvironment(variable, new Option('--token <token>', 'the secret that gives access (default: a new one)')),
    )
    .option('--hosts <names>', 'host names of its URLs: jobs.example.org (default: those of this machine)', namesFlag)
    .option('--read-only', 'refuse every change')
    .option('--allow-remote', 'listen on an address that other machines reach; needs a token')
    .addHelpText(
      'after',
      `
  It prints a link that logs in once, within 10 minutes. Programs send the token: Authorization: Bearer <token>;
  a generated token is printed with --json only.
  The API is below /api/v1; docs/http-api.md describes it.

Examples:
  $ millrace dash
  $ millrace dash --port 8080 --read-only
  $ ${variable}=… millrace dash --host 0.0.0.0 --allow-remote --hosts jobs.example.org`,
    )
  withJson(command, 'print one line of JSON when it listens: {"event","at","pid","url","login","token"}').action(
    async (flags: DashFlags) => {
      refuseOpen(flags)
      await refuseWeak(flags)
      return withMill(flags, (mill, terminal) => serve(mill, terminal, flags), { isLong: true })
    },
  )
}

/** Throws `UsageError` for an address that other machines reach, unless the flags allow that and a token is set. */
function refuseOpen({ host, token, allowRemote }: DashFlags): void {
  if (isLoopback(host)) return
  if (token === undefined)
    throw new UsageError(
      `--host ${host} lets other machines in, which needs a token: set ${variable} to the output of \`openssl rand -base64 24\`. Nothing was started.`,
    )
  if (!allowRemote)
    throw new UsageError(
      `--host ${host} lets other machines in: add --allow-remote if that is meant. The token and all that it shows travel as they are, so put a proxy with TLS before it. Nothing was started.`,
    )
}

async function refuseWeak({ token }: DashFlags): Promise<void> {
  const { isToken, tokenForm } = await import('../../web/web-options.js')
  if (token !== undefined && !isToken(token))
    throw new UsageError(`--token (or ${variable}) must be ${tokenForm}. Nothing was started.`)
}

async function serve(mill: Mill, terminal: Terminal, flags: DashFlags): Promise<void> {
  const { webHandler } = await import('../../web/web.js')
  const { host, port, token: given, readOnly = false } = flags
  const token = given ?? randomBytes(24).toString('base64url')
  const window = webHandler(mill, { token, readOnly, hosts: flags.hosts ?? hostsOf(host) })
  const stopped = stopRequest()
  const server = await serveWindow(window, host, port)
  const login = `${server.url}/${window.loginPath()}`
  // A token that the user gave is not repeated.
  const made = given === undefined ? { token } : {}
  terminal.event('dash.started', { url: server.url, login, ...made }, () => `dashboard on ${login} (logs in once)`)
  await stopped
  await server.close()
}

/**
 * The host names by which others may ask: the address itself, or every name of this machine. Loopback is always among
 * them.
 */
function hostsOf(host: string): string[] {
  if (isLoopback(host)) return []
  const isEvery = host === '0.0.0.0' || host === '::'
  const own = Object.values(networkInterfaces()).flatMap((some) => (some ?? []).map(({ address }) => address))
  const addresses = (isEvery ? own : [host]).filter((address) => !address.includes('%'))
  return [hostname(), ...addresses.map((address) => (address.includes(':') ? `[${address}]` : address))]
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}

/** A request is for a page, or has at most 1 MiB. Only answers are streams and may last. */
const headersMs = 5_000
const requestMs = 30_000
const checkEveryMs = 500
const mostConnections = 1_000
const mostHeaderBytes = 16_384
/** How long a stop waits for answers that are being written. */
const graceMs = 500

interface WindowServer {
  readonly url: string
  /** Ends streams at once, and answers within half a second. */
  close(): Promise<void>
}

/** Serves the dashboard from now on. Throws `OperationError` if it cannot listen there. */
async function serveWindow(window: WebHandler, host: string, port: number): Promise<WindowServer> {
  const { createServer } = await import('node:http')
  const server = createServer(
    {
      ...{ headersTimeout: headersMs, requestTimeout: requestMs, connectionsCheckingInterval: checkEveryMs },
      maxHeaderSize: mostHeaderBytes,
    },
    (request, response) => window.node(request, response),
  )
  server.maxConnections = mostConnections
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EADDRINUSE' ? 'another process listens there; choose another --port' : message
    throw new OperationError(`dash cannot listen on ${host}:${port}: ${reason}. Nothing was started.`, { cause: error })
  }
  // A connection that breaks off ends only itself.
  server.on('error', () => {})
  const { address, family, port: bound } = server.address() as AddressInfo
  return {
    url: `http://${reachable(address, family)}:${bound}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      await window.close()
      const late = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(late)
    },
  }
}

/** The address by which this machine reaches it. */
function reachable(address: string, family: string): string {
  if (address === '0.0.0.0' || address === '::') return 'localhost'
  return family === 'IPv6' ? `[${address}]` : address
}
