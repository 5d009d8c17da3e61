/** The window server: serves the dashboard over HTTP, so that slow clients cannot block it. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { WebHandler } from '../../web/web.js'
import { OperationError } from './exit-code.js'

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
export async function serveWindow(window: WebHandler, host: string, port: number): Promise<WindowServer> {
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
