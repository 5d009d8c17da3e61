/**
 * The capture: what a process prints, read by the process itself. Its standard output and error are one end of a pair of
 * sockets whose other end it holds as well, so that neither it nor what it starts meets a broken pipe when its worker dies.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** File descriptors of the process, behind 0 … 2 and the channel to its worker; its assignment is behind them. */
export const captureFd = 4
/** Here it passes on what it reads, for as long as its worker lives. */
export const tailFd = 5

/** Printed behind all else, it shows that all else has been read. */
export const drainMark = '\0millrace drained\0\n'

export interface Capture {
  /** Where the process prints. */
  readonly printing: Socket
  /** Where it reads that. */
  readonly reading: Socket
}

/** Both ends are still in this process: hand them over, then destroy here where the process prints. */
export async function openCapture(): Promise<Capture> {
  // A folder of our own: nobody else can be the one who connects.
  const folder = await mkdtemp(join(tmpdir(), 'millrace-'))
  const path = join(folder, 'out')
  const server = createServer({ pauseOnConnect: true })
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
    const reading = connect({ path })
    // Not a byte of it may be read here.
    reading.pause()
    await new Promise<void>((resolve, reject) => {
      reading.once('connect', resolve)
      reading.once('error', reject)
    })
    return { printing: await accepted, reading }
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
}
