/**
 * The tail: what the guard of an isolated job passes on to its worker of what is printed, as lines of JSON, so that the last
 * words of a process that dies are not lost with it.
 */

import { joinedLog } from '../../core/job-log.js'
import { LineCutter } from '../../runtime/line-cutter.js'

/**
 * `printed`: so it reads. `cut`: what has been printed so far is being sent to the store. `sent`: the store has that. `lost`:
 * the store says that the lease is lost, and the process is ended this moment.
 */
export type TailWord = readonly ['printed', string] | readonly ['cut'] | readonly ['sent'] | readonly ['lost']

export function tailLine(word: TailWord): string {
  return `${JSON.stringify(word)}\n`
}

const longestTail = 4_096
/** What the guard reads at once is 64 KiB, of which JSON makes at most six times as much. */
const longestLine = 1_048_576

/** What a worker knows of it. */
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

  /** The last that was printed. */
  get last(): string {
    return this.#last.trimEnd()
  }

  /** What was printed and may not be in the store. */
  get unsent(): string {
    return joinedLog(this.#sending, this.#unsent)
  }

  /** Lines of the guard, in pieces. The job may have written here itself: its worker must not suffer for it. */
  read(text: string): void {
    for (const line of this.#lines.cut(text)) this.#hear(line)
  }

  /** What the guard has not read itself. */
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
