/**
 * The output of an isolated job. The process reads its own output: its standard output and error are one end of a pair
 * of sockets, and it holds the other end as well (the capture). So neither the process nor its children meet a broken
 * pipe when the worker dies. Its guard passes the output on to the worker (the tail), so that the last words of a dying
 * process are not lost.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../../core/errors.js'
import { joinedLog } from '../../core/job/job-log.js'
import { messageOf } from '../../core/messages/describe.js'
import { LineCutter } from '../../runtime/line-channel.js'
import { endsWithin } from '../../runtime/with-timeout.js'

/** A file descriptor of the process. 0 … 2 and the channel to its worker are below it, its assignment is above. */
export const captureFd = 4
/** How long a connection from this process to itself may take. */
const acceptMs = 2_000
/** The process passes on its output here while its worker lives. */
export const tailFd = 5

/** Printed after all other output: once it has been read, all of that has been read. */
export const drainMark = '\0millrace drained\0\n'

interface Capture {
  /** The end that the process prints to. */
  readonly printing: Socket
  /** The end that it reads from. */
  readonly reading: Socket
}

/** The longest address of a socket in bytes: `sun_path` (unix(7)) has 108, on macOS 104, and ends with a zero. */
const longestPath = process.platform === 'linux' ? 107 : 103
const folderName = 'millrace-'
/** The length of the suffix that `mkdtemp` adds. */
const uniqueLength = 6
const socketName = 'out'

/**
 * Both ends are still in this process: hand them over, then destroy the printing end here. `roots`: the folders in
 * which the folder of its socket may be made, in this order. Throws `ConfigError` if none works.
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
    // This process must not read a byte of it.
    reading.pause()
    await new Promise<void>((resolve, reject) => {
      reading.once('connect', resolve)
      reading.once('error', reject)
    })
    // Without a descriptor left for it the system drops the connection, and says nothing here.
    if (!(await endsWithin(acceptMs, accepted))) {
      reading.destroy()
      throw new Error('this process has no file descriptor left for the output of a job; raise its limit (ulimit -n).')
    }
    return { printing: await accepted, reading }
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * A folder of our own, so that nobody else can connect. The system would cut a path that is too long, and the socket
 * would be elsewhere, perhaps within reach of others.
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

/**
 * `printed`: this was printed. `cut`: the output so far is being sent to the store. `sent`: the store has it. `lost`:
 * the store says that the lease is lost, and the process is ended now.
 */
export type TailMessage = readonly ['printed', string] | readonly ['cut'] | readonly ['sent'] | readonly ['lost']

/** One message to the worker, as a line of JSON. */
export function tailLine(message: TailMessage): string {
  return `${JSON.stringify(message)}\n`
}

const longestTail = 4_096
/** The guard reads at most 64 KiB at once; as JSON that is at most six times as long. */
const longestLine = 1_048_576

/** The worker's copy of the output. */
export class Tail {
  readonly #lines = new LineCutter(longestLine)
  #last = ''
  #sending = ''
  #unsent = ''
  #isLost = false

  /** The lease was lost. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** The last output. */
  get last(): string {
    return this.#last.trimEnd()
  }

  /** Output that may not be in the store. */
  get unsent(): string {
    return joinedLog(this.#sending, this.#unsent)
  }

  /** Reads lines of the guard, in pieces. The job may have written here itself, and must not harm its worker. */
  read(text: string): void {
    for (const line of this.#lines.cut(text)) this.#onLine(line)
  }

  /** Adds output that the guard has not read. */
  print(text: string): void {
    this.#last = (this.#last + text).slice(-longestTail)
    this.#unsent = joinedLog(this.#unsent, text)
  }

  #onLine(line: string): void {
    const [kind, text] = messageIn(line)
    if (kind === 'printed' && typeof text === 'string') this.print(text)
    else if (kind === 'sent') this.#sending = ''
    else if (kind === 'lost') this.#isLost = true
    else if (kind === 'cut') {
      this.#sending = joinedLog(this.#sending, this.#unsent)
      this.#unsent = ''
    }
  }
}

function messageIn(line: string): readonly unknown[] {
  try {
    const message: unknown = JSON.parse(line)
    return Array.isArray(message) ? message : []
  } catch {
    return []
  }
}
