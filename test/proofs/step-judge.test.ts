import { describe, expect, it } from 'vitest'
import { judged } from '../../proofs/steps/step-judge.js'
import { planOf, waitsOf } from '../../proofs/steps/step-plan.js'

const seed = 530_000
/** The first run with a signal that it awaits for ever, and with steps. */
const number = Array.from({ length: 100 }, (_, n) => n).find(
  (n) => waitsOf(seed, n).some(({ ms }) => ms === undefined) && planOf(seed, n, 1).some(({ kind }) => kind === 'step'),
)!
const name = `run-${number}`
const awaited = waitsOf(seed, number).find(({ ms }) => ms === undefined)!.name
const step = planOf(seed, number, 1).find(({ kind }) => kind === 'step')! as { readonly name: string }

/** The lines of a whole run, in which nothing is wrong. */
function wholeRun(): string[] {
  const lines = [`begins\t${name}\t1`]
  for (const act of planOf(seed, number, 1)) {
    const steps = act.kind === 'step' ? [act.name] : act.kind === 'side' ? act.names : []
    for (const one of steps) lines.push(`calls\t${name}\t${one}\t${one}@1.1`, `gets\t${name}\t${one}\t${one}@1.1`)
    if (act.kind !== 'wait') continue
    const data = `0:${name}:${act.name}`
    lines.push(`sends\t${name}\t${act.name}\t${data}`, `sent\t${name}\t${act.name}\t${data}\tdelivered`)
    lines.push(`hears\t${name}\t${act.name}\t${data}`)
  }
  return [...lines, `ends\t${name}\t1`]
}

/** What is found about this run alone. */
function findings(lines: readonly string[], state: 'completed' | 'waiting' = 'completed') {
  const states = new Map([[name, state]])
  const { calledAgain, changed, lost, twice, stuck } = judged(seed, number + 1, lines.join('\n'), states)
  return { calledAgain, changed, lost, twice, stuck: stuck.filter((one) => one.startsWith(`${name}`)) }
}

const nothing = { calledAgain: [], changed: [], lost: [], twice: [], stuck: [] }

describe('the judge of the steps', () => {
  it('finds nothing in a whole run, nor in a call whose result was never given out', () => {
    expect(findings(wholeRun())).toEqual(nothing)
    expect(findings([`calls\t${name}\t${step.name}\t${step.name}@0.1`, ...wholeRun()])).toEqual(nothing)
  })

  it('finds a step that is called after its result was given out', () => {
    const lines = [...wholeRun(), `calls\t${name}\t${step.name}\t${step.name}@2.1`]

    expect(findings(lines).calledAgain).toEqual([`${name}: ${step.name}`])
  })

  it('finds a step that gives another result, and one that no call has returned', () => {
    const lines = [...wholeRun(), `gets\t${name}\t${step.name}\t${step.name}@2.1`]

    expect(findings(lines).changed).toEqual([`${name}: ${step.name}`])
  })

  it('finds a signal that was taken and not heard, also if the wait was said to be in vain', () => {
    const other = `sent\t${name}\t${awaited}\t1:${name}:${awaited}\tkept`
    const inVain = wholeRun().map((line) =>
      line.startsWith(`hears\t${name}\t${awaited}`) ? line.replace(/[^\t]+$/, '-') : line,
    )

    expect(findings([...wholeRun(), other]).lost).toHaveLength(1)
    expect(findings([...wholeRun(), other]).twice).toHaveLength(1)
    expect(findings(inVain).lost).toHaveLength(1)
  })

  it('finds a signal that is heard in two forms, and one that nobody has sent', () => {
    const lines = [...wholeRun(), `hears\t${name}\t${awaited}\tsomething else`]
    const foreign = wholeRun().filter((line) => !line.startsWith(`sends\t${name}\t${awaited}`))

    expect(findings(lines).twice).toHaveLength(1)
    expect(findings(foreign).lost).toHaveLength(1)
  })

  it('finds a run that waits, and one that completed without one of its steps or signals', () => {
    const without = (what: string) => wholeRun().filter((line) => !line.includes(what))

    expect(findings(wholeRun(), 'waiting').stuck).toEqual([`${name} waiting`])
    expect(findings(without(`\t${step.name}\t`)).stuck).toEqual([`${name}: ${step.name} is missing`])
    expect(findings(without(`hears\t${name}\t${awaited}`)).stuck).toEqual([`${name}: nothing was heard of ${awaited}`])
  })
})
