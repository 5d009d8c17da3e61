/**
 * The tail: what the guard of an isolated job passes on to its worker of what is printed, as lines of JSON, so that the last
 * words of a process that dies are not lost with it.
 */

import { joinedLog } from '../core/job-log.js'

/** `printed`: so it reads. `cut`: what has been printed so far is being sent to the store. `sent`: the store has that. */
export type TailWord = readonly ['printed', string] | readonly ['cut'] | readonly ['sent']

export function tailLine(word: TailWord): string {
  return `${JSON.stringify(word)}\n`
}

const longestTail = 4_096

/** What a worker knows of it. */
export class Tail {
  #rest = ''
  #last = ''
  #sending = ''
  #unsent = ''

  /** The last that was printed. */
  get last(): string {
    return this.#last.trimEnd()
  }

  /** What was printed and may not be in the store. */
  get unsent(): string {
    return joinedLog(this.#sending, this.#unsent)
  }

  /** Lines of the guard, in pieces. */
  read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) this.#hear(line)
  }

  /** What the guard has not read itself. */
  print(text: string): void {
    this.#last = (this.#last + text).slice(-longestTail)
    this.#unsent = joinedLog(this.#unsent, text)
  }

  #hear(line: string): void {
    let word: TailWord
    try {
      word = JSON.parse(line) as TailWord
    } catch {
      // The job has written here itself: its worker must not suffer for it.
      return
    }
    if (word[0] === 'printed') this.print(word[1])
    else if (word[0] === 'cut') {
      this.#sending = joinedLog(this.#sending, this.#unsent)
      this.#unsent = ''
    } else this.#sending = ''
  }
}
