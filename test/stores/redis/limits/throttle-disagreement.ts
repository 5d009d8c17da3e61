/** Where the Lua of the throttle and that of the memory store do not agree in a scene. */

import { ruleText } from '#src/core/queue/throttle.js'
import type { Heard, Look, Scene } from './throttle-scene.js'

/** How many steps were compared, and where the two do not agree, in words: nowhere, where there is no text. */
export function disagreement(
  { plan, subjects, throttle: { by, rules: first } }: Scene,
  heard: readonly Heard[],
): { readonly compared: number; readonly text?: string } {
  let rules = first
  let written: ReadonlyMap<string, Buffer> = new Map()
  const trimmed = new Set<string>()
  for (const [i, { step, now, answers, looks, quietForMs, recoveries, subjects: known }] of plan.entries()) {
    const said = heard[i]!
    if (step.verb === 'set') rules = step.rules
    const told = (text: string) => ({
      compared: i,
      text: `step ${i} ${JSON.stringify(step)} at ${now} by ${rules.map(ruleText).join(' ')}: ${text}`,
    })
    const differing = (what: string, expected: unknown, found: unknown) => {
      const [a, b] = [JSON.stringify(expected), JSON.stringify(found)]
      return a === b ? undefined : told(`${what} ${a}, not ${b}`)
    }
    // What was idle and is gone may be seen again: by longer windows, after a restart that charges it, by a clock that was
    // set back. How far beyond its windows a start is known is the store's affair.
    const seen = [...known, ...looks.flatMap(({ subject, log }) => (log.length > 0 ? [subject] : []))]
    const isKnownAgain = seen.some((subject) => !said.counters.has(subject))
    const asked = step.verb === 'claim' ? step.of.map(({ subject }) => subject) : []
    for (const { subject, log } of looks) {
      const isGone = written.has(subject) && !said.counters.has(subject)
      if (isGone && log.length > 0) return told(`'${subject}' was forgotten too soon`)
      if (isGone) trimmed.add(subject)
    }
    written = said.counters
    const expected = [quietForMs, known.length, by === 'group' ? 1 : 0]
    for (const { waitMs, hits } of looks) expected.push(waitMs, ...hits)
    const found =
      differing('it answered', answers, said.answers) ??
      differing('it was recovered so often:', recoveries, Number(said.rules['recoveries'] ?? 0)) ??
      differing('quiet, subjects, group, waits and hits are', expected, said.look) ??
      subjects
        .map((subject, s) => {
          const [expected, found] = writtenOf(subject, looks[s]!, said)
          return differing(`'${subject}' has`, expected, found)
        })
        .find((one) => one !== undefined)
    if (found !== undefined)
      return isKnownAgain || asked.some((subject) => trimmed.has(subject)) ? { compared: i } : found
    for (const subject of said.counters.keys()) trimmed.delete(subject)
  }
  return { compared: plan.length }
}

/** Of a subject that was written under the recovery of today: the counter as it should be, and as it is. */
function writtenOf(subject: string, { log, grids }: Look, { rules, starts, counters }: Heard) {
  const counter = counters.get(subject)
  const { recoveries = '0', version = '0', shift = '0' } = rules
  if (counter === undefined || log.length === 0 || counter.readUInt32BE(10) !== Number(recoveries))
    return [0, 0] as const
  const from = Buffer.from(`${subject}\0`)
  const mine = starts
    .filter((member) => member.length === from.length + 10 && member.subarray(0, from.length).equals(from))
    .map((member) => ({
      at: member.readUIntBE(from.length, 6) + Number(shift),
      count: member.readUInt32BE(from.length + 6),
    }))
  const isOfRules = counter.readUInt32BE(14) === Number(version)
  const places = isOfRules
    ? grids.map((_, i) => {
        const slot = counter.readUIntBE(18 + 10 * i, 1) * 2 ** 48 + counter.readUIntBE(19 + 10 * i, 6)
        return [slot === 0 ? undefined : slot + Number(shift) * 1_000, counter.readUIntBE(25 + 10 * i, 3)]
      })
    : grids
  const sum = log.reduce((all, { count }) => all + count, 0)
  return [
    { log, places: grids, starts: sum, lastAt: log.at(-1)!.at },
    { log: mine, places, starts: counter.readUInt32BE(0), lastAt: counter.readUIntBE(4, 6) + Number(shift) },
  ] as const
}
