/**
 * The capture: what a process prints, read by the process itself. Its standard output and error are one end of a pair of
 * sockets whose other end it holds as well, so that neither it nor what it starts meets a broken pipe when its worker dies.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../../core/errors.js'
import { messageOf } from '../../core/values/describe.js'

/** File descriptors of the process, behind 0 … 2 and the channel to its worker; its assignment is behind them. */
export const captureFd = 4
/** Here it passes on what it reads, for as long as its worker lives. */
export const tailFd = 5

/** Printed behind all else, it shows that all else has been read. */
export const drainMark = '\0millrace drained\0\n'

interface Capture {
  /** Where the process prints. */
  readonly printing: Socket
  /** Where it reads that. */
  readonly reading: Socket
}

/** The longest address of a socket in bytes: `sun_path` (unix(7)) has 108, on macOS 104, and ends with a zero. */
const longestPath = process.platform === 'linux' ? 107 : 103
const folderName = 'millrace-'
/** What `mkdtemp` puts behind it. */
const uniqueLength = 6
const socketName = 'out'

/**
 * Both ends are still in this process: hand them over, then destroy here where the process prints. `roots`: where the folder
 * of its socket may be made, in this order. Throws `ConfigError` where it can be made in none.
 */
export async function openCapture(roots: readonly string[] = [tmpdir(), '/tmp']): Promise<Capture> {
  const folder = await privateFolder(roots)
  const path = join(folder, socketName)
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

/**
 * A folder of our own: nobody else can be the one who connects. A path that is too long would be cut by the system, and the
 * socket lie elsewhere, perhaps where others can reach it.
 */
async function privateFolder(roots: readonly string[]): Promise<string> {
  const refusals: string[] = []
  for (const root of new Set(roots)) {
    const bytes = Buffer.byteLength(join(root, folderName)) + uniqueLength + 1 + socketName.length
    if (bytes > longestPath) {
      refusals.push(`'${root}' is ${bytes - longestPath} bytes too long for the address of a socket`)
      continue
    }
    try {
      return await mkdtemp(join(root, folderName))
    } catch (error) {
      refusals.push(messageOf(error))
    }
  }
  const message = `must name a folder with a short path that can be written to, as isolated jobs need: ${refusals.join('; ')}`
  throw new ConfigError('the environment', [{ path: 'TMPDIR', message }])
}
