/**
 * The archive of the demo: a tar file made of gzip members, each with some whole files. It is good up to the end of any of
 * them, so that packing can go on there; `gzip` and `tar` read all members as one.
 */

import { constants } from 'node:fs'
import { type FileHandle, open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A member ends with the file that fills it. */
const memberBytes = 2_000_000
const memberFiles = 128
const blockBytes = 512
const longestNameBytes = 100
const longestPrefixBytes = 155

const compressed = promisify(gzip)

export class Archive {
  readonly #file: FileHandle
  #bytes: number

  private constructor(file: FileHandle, bytes: number) {
    this.#file = file
    this.#bytes = bytes
  }

  /** Goes on behind so many bytes, the end of a member; what came after them is cut off. */
  static async open(path: string, bytes: number): Promise<Archive> {
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT)
    await file.truncate(bytes)
    return new Archive(file, bytes)
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds the first of these files of the folder as one member. Resolves with how many those are once they are on disk; a file
   * that cannot be read any more is one of them, and is left out.
   */
  async add(folder: string, paths: readonly string[]): Promise<number> {
    const blocks: Buffer[] = []
    let [files, bytes] = [0, 0]
    for (; files < Math.min(paths.length, memberFiles) && bytes < memberBytes; files += 1) {
      const entry = await entryOf(folder, paths[files]!)
      blocks.push(...entry)
      bytes += entry.reduce((sum, { length }) => sum + length, 0)
    }
    await this.#write(Buffer.concat(blocks))
    return files
  }

  /** Adds what ends a tar file. */
  end(): Promise<void> {
    return this.#write(Buffer.alloc(2 * blockBytes))
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #write(content: Buffer): Promise<void> {
    const member = await compressed(content, { level: 9 })
    await this.#file.write(member, 0, member.length, this.#bytes)
    await this.#file.datasync()
    this.#bytes += member.length
  }
}

/** Whether a tar file can name it. */
export function isNameable(path: string): boolean {
  return nameOf(path) !== undefined
}

async function entryOf(folder: string, path: string): Promise<Buffer[]> {
  try {
    const file = join(folder, path)
    const [{ mtimeMs }, content] = [await stat(file), await readFile(file)]
    const padding = Buffer.alloc(-content.length & (blockBytes - 1))
    return [headerOf(path, content.length, mtimeMs), content, padding]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    return []
  }
}

/** A header as POSIX has it since 1988 (ustar): texts, and octal numbers with a zero behind them. */
function headerOf(path: string, size: number, mtimeMs: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  const text = (at: number, value: string) => header.write(value, at)
  const octal = (at: number, digits: number, value: number) => text(at, value.toString(8).padStart(digits, '0'))
  const { name, prefix } = nameOf(path)!
  text(0, name)
  octal(100, 7, 0o644)
  // Its owner: nobody in particular.
  octal(108, 7, 0)
  octal(116, 7, 0)
  octal(124, 11, size)
  octal(136, 11, Math.max(0, Math.floor(mtimeMs / 1_000)))
  text(156, '0')
  text(257, 'ustar\u000000')
  text(345, prefix)
  // Summed up with blanks in the place of the sum.
  text(148, ' '.repeat(8))
  octal(
    148,
    6,
    header.reduce((sum, byte) => sum + byte, 0),
  )
  header[154] = 0
  return header
}

/** A long path is split at a slash. */
function nameOf(path: string): { name: string; prefix: string } | undefined {
  const bytes = Buffer.from(path)
  if (bytes.length <= longestNameBytes) return { name: path, prefix: '' }
  const slash = bytes.indexOf('/', bytes.length - longestNameBytes - 1)
  if (slash === -1 || slash > longestPrefixBytes) return undefined
  return { name: bytes.toString('utf8', slash + 1), prefix: bytes.toString('utf8', 0, slash) }
}
