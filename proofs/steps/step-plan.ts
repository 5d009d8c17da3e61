/**
 * The plan of the steps drill: what each run does, by its number and the version of the code; and the ledger, in which
 * processes write what they do. The same in every process of the drill.
 */

import { createHash } from 'node:crypto'
import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * `side`: three steps at once. `failsAt`: the attempts of the job at which its function throws. A wait with `ms` may end in
 * vain.
 */
export type Act =
  | { readonly kind: 'step'; readonly name: string; readonly pauseMs: number; readonly failsAt: readonly number[] }
  | { readonly kind: 'side'; readonly names: readonly string[] }
  | { readonly kind: 'sleep'; readonly name: string; readonly ms: number }
  | { readonly kind: 'wait'; readonly name: string; readonly ms?: number }

/** The version of the code that a process has: the second is deployed in the middle. */
export type Version = 1 | 2

/** The names of all signals. Each run waits for the first few. */
export const signalNames = ['go-0', 'go-1', 'go-2', 'go-3'] as const

/** A number from 0 to 1 that belongs to this text. */
function lotOf(...text: readonly (string | number)[]): number {
  return createHash('sha256').update(text.join(' ')).digest().readUInt32BE() / 2 ** 32
}

export const nameOf = (number: number) => `run-${number}`

/** One run in 20 has 40 acts, the others 1 to 39, most of them few. */
export function planOf(seed: number, number: number, version: Version): Act[] {
  const lot = (...what: readonly (string | number)[]) => lotOf(seed, number, ...what)
  const size = number % 20 === 3 ? 40 : 1 + Math.floor(lot('size') ** 3 * 39)
  let signals = 0
  const acts = Array.from({ length: size }, (_, i): Act => {
    const kind = lot(i, 'kind')
    if (kind < 0.1) return { kind: 'sleep', name: `sleep-${i}`, ms: Math.round(lot(i, 'ms') ** 2 * 800) }
    if (kind < 0.2 && signals < signalNames.length) {
      const name = signalNames[signals]!
      signals += 1
      return lot(i, 'bound') < 0.4
        ? { kind: 'wait', name, ms: Math.round(lot(i, 'ms') * 2_000) }
        : { kind: 'wait', name }
    }
    if (kind < 0.28) return { kind: 'side', names: ['a', 'b', 'c'].map((part) => `side-${i}-${part}`) }
    const failsAt = lot(i, 'fails') < 0.04 ? [1, 2] : []
    // The new code does one step differently, and so under another name.
    const name = version === 2 && lot('changed') < 0.5 && i === Math.floor(size / 2) ? `step-${i}-new` : `step-${i}`
    return { kind: 'step', name, pauseMs: Math.round(lot(i, 'pause') ** 4 * 60), failsAt }
  })
  if (version === 2 && lot('longer') < 0.5) acts.push({ kind: 'step', name: 'step-last', pauseMs: 0, failsAt: [] })
  return acts
}

/** The signals that a run waits for, in either version. */
export function waitsOf(seed: number, number: number): (Act & { readonly kind: 'wait' })[] {
  return planOf(seed, number, 1).filter((act) => act.kind === 'wait')
}

/** Whether the second version is deployed: processes that begin after that have it. */
export const deployedIn = (folder: string) => join(folder, 'deployed')
export const versionIn = (folder: string): Version => (existsSync(deployedIn(folder)) ? 2 : 1)

export const ledgerIn = (folder: string) => join(folder, 'ledger.log')

/** Writes one line: it is in the file before anything else that this process does. */
export function note(folder: string, ...words: readonly (string | number)[]): void {
  appendFileSync(ledgerIn(folder), `${words.join('\t')}\n`)
}
