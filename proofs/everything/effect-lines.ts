/**
 * The lines of effects: a file of each process, to which it appends what it did, beside any store. A line is written by one
 * call, so that a kill leaves whole lines. Instants are on the machine's monotonic clock, in ms.
 */

import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export const kinds = ['plain', 'delayed', 'ordered', 'throttled', 'grouped', 'ticking', 'chained', 'long'] as const
export type Kind = (typeof kinds)[number]

/**
 * `accepted`: an enqueue was answered. `completed`: the store has taken the completion of a run, as its worker was told.
 * `told`: an event of its process about a job, or about a schedule (then `id` is its name); `more` says which.
 */
export interface EffectLine {
  readonly pid: number
  readonly what: 'begun' | 'ended' | 'completed' | 'accepted' | 'late' | 'told'
  readonly at: number
  readonly kind: Kind
  readonly id: string
  /** Of runs. */
  readonly fence: number
  /** Of a run: its group, or its revisions, with commas between them; of a tick its schedule and instant. */
  readonly more: string
}

const ending = '.effects'
const letters = { begun: '+', ended: '-', completed: '=', accepted: 'a', late: 'l', told: 't' } as const
const meanings = Object.fromEntries(Object.entries(letters).map(([what, letter]) => [letter, what])) as Record<
  string,
  EffectLine['what']
>

/** Of all processes of the machine alike. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

export class LedgerWriter {
  readonly #file: number

  constructor(folder: string) {
    this.#file = openSync(join(folder, `${process.pid}${ending}`), 'a')
  }

  begun(kind: Kind, id: string, fence: number, more: string): void {
    this.#write('begun', kind, id, fence, more)
  }

  ended(kind: Kind, id: string, fence: number): void {
    this.#write('ended', kind, id, fence)
  }

  completed(kind: Kind, id: string): void {
    this.#write('completed', kind, id)
  }

  late(kind: Kind, id: string): void {
    this.#write('late', kind, id)
  }

  told(kind: Kind, id: string, ...words: readonly unknown[]): void {
    this.#write(
      'told',
      kind,
      id,
      0,
      words
        .map((word) => String(word).replaceAll(/\s+/g, '_'))
        .join('|')
        .slice(0, 300),
    )
  }

  accepted(kind: Kind, ids: readonly string[]): void {
    const at = monotonicMs()
    writeSync(this.#file, ids.map((id) => `a ${at} ${kind} ${id} 0 \n`).join(''))
  }

  #write(what: EffectLine['what'], kind: Kind, id: string, fence = 0, more = ''): void {
    writeSync(this.#file, `${letters[what]} ${monotonicMs()} ${kind} ${id} ${fence} ${more}\n`)
  }
}

/** What all processes wrote, in the order of its instants; of one process in the order in which it wrote. */
export function effectLines(folder: string): EffectLine[] {
  const lines: EffectLine[] = []
  for (const file of readdirSync(folder).filter((name) => name.endsWith(ending))) {
    const pid = Number.parseInt(file, 10)
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n')) {
      if (line === '') continue
      const [letter, at, kind, id, fence, more] = line.split(' ') as [string, string, Kind, string, string, string]
      lines.push({ pid, what: meanings[letter]!, at: Number(at), kind, id, fence: Number(fence), more })
    }
  }
  return lines.sort((a, b) => a.at - b.at)
}
