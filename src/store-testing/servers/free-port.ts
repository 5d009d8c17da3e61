/** A free port of 127.0.0.1 for a server that is started, stopped and started again. */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

export const loopback = '127.0.0.1'

/**
 * Below the ports that systems give to outgoing connections (Linux: from 32768). Up there, a client that retries while
 * the server is down would at last get the server's own port, connect to itself, and keep the server from coming back.
 */
const [lowest, beyond] = [11_000, 32_000]

/** Free at this moment; another process may be quicker to take it. Throws when 50 in a row are taken. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = randomInt(lowest, beyond)
    if (await isFree(port)) return port
  }
  throw new Error(`found no free port of ${loopback} between ${lowest} and ${beyond}`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, loopback)
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
