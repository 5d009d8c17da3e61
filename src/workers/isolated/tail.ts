/**
 * The tail: the output of an isolated job that its guard passes on to its worker, as lines of JSON. The last words of a
 * dying process are then not lost.
 */

import { joinedLog } from '../../core/job-log.js'
import { LineCutter } from '../../runtime/line-channel.js'

/**
 * `printed`: this was printed. `cut`: the output so far is being sent to the store. `sent`: the store has it. `lost`:
 * the store says that the lease is lost, and the process is ended now.
 */
export type TailWord = readonly ['printed', string] | readonly ['cut'] | readonly ['sent'] | readonly ['lost']

export function tailLine(word: TailWord): string {
  return `${JSON.stringify(word)}\n`
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
    for (const line of this.#lines.cut(text)) this.#hear(line)
  }

  /** Adds output that the guard has not read. */
  print(text: string): void {
    this.#last = (this.#last + text).slice(-longestTail)
    this.#unsent = joinedLog(this.#unsent, text)
  }

  #hear(line: string): void {
    const [word, text] = wordsIn(line)
    if (word === 'printed' && typeof text === 'string') this.print(text)
    else if (word === 'sent') this.#sending = ''
    else if (word === 'lost') this.#isLost = true
    else if (word === 'cut') {
      this.#sending = joinedLog(this.#sending, this.#unsent)
      this.#unsent = ''
    }
  }
}

function wordsIn(line: string): readonly unknown[] {
  try {
    const words: unknown = JSON.parse(line)
    return Array.isArray(words) ? words : []
  } catch {
    return []
  }
}
