/** The command `dash`: serves the dashboard of the mill in a process of its own, until a signal stops it. */

import { randomBytes } from 'node:crypto'
import { hostname, networkInterfaces } from 'node:os'
import { type Command, Option } from 'commander'
import type { Mill } from '../../mill/mill.js'
import { isLoopbackAddress } from '../../web/access/host-list.js'
import { fromEnvironment, namesFlag, wholeFlag } from '../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { UsageError } from '../output/exit-code.js'
import { stopRequest } from '../output/stop-request.js'
import type { Terminal } from '../output/terminal.js'

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
  const command = millCommand(program, 'dash', 'Serve a window on the mill: a page and an HTTP API, until stopped')
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
  const { isToken, tokenForm } = await import('../../web/window/web-options.js')
  if (token !== undefined && !isToken(token))
    throw new UsageError(`--token (or ${variable}) must be ${tokenForm}. Nothing was started.`)
}

async function serve(mill: Mill, terminal: Terminal, flags: DashFlags): Promise<void> {
  const [{ webHandler }, { serveWindow }] = await Promise.all([
    import('../../web/web.js'),
    import('../output/window-server.js'),
  ])
  const { host, port, token: given, readOnly = false } = flags
  const token = given ?? randomBytes(24).toString('base64url')
  const window = webHandler(mill, { token, readOnly, hosts: flags.hosts ?? hostsOf(host) })
  const stopped = stopRequest()
  const server = await serveWindow(window, host, port)
  const login = `${server.url}/${window.loginPath()}`
  // A token that the user gave is not repeated.
  const made = given === undefined ? { token } : {}
  terminal.event('dash.started', { url: server.url, login, ...made }, () => `window on ${login} (logs in once)`)
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
