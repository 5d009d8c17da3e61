import { steppedSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import { pairs, type Step, stepsOf } from './sequence-steps.js'

it('the same seed makes the same stepped commands, and another seed makes others', () => {
  expect(steppedSequence(5, 200)).toEqual(steppedSequence(5, 200))
  expect(steppedSequence(6, 200)).not.toEqual(steppedSequence(5, 200))
})

it('a longer stepped sequence of a seed begins with the shorter one', () => {
  expect(steppedSequence(5, 200).slice(0, 50)).toEqual(steppedSequence(5, 50))
})

const answers = (verb: string, answer: unknown) => (step: Step) => step.command.verb === verb && step.answer === answer
/** A job that waits for a signal is in this state after the verb; undefined: it is gone. */
const leaves = (verb: string, state: string | undefined) => (step: Step) =>
  step.command.verb === verb &&
  pairs(step, 'live').some(
    ([before, after]) => before.awaits !== null && (after ?? found(step, before.id))?.state === state,
  )
const found = ({ after }: Step, id: string) => after.flatMap(({ jobs }) => jobs).find((job) => job.id === id)
/** A job with entries goes from this state to that; undefined: it is gone, and its entries with it. */
const becomes = (from: string, to: string | undefined) => (step: Step) =>
  pairs(step, from === 'dead' ? 'dead' : 'live').some(
    ([before, after]) =>
      before.state === from && before.steps.length > 0 && (after ?? found(step, before.id))?.state === to,
  )

const rareThings: Record<string, (step: Step) => boolean> = {
  'a step of a lost claim': answers('keep', 'lost'),
  'a step of a cancelled job': answers('keep', 'cancel'),
  'a step that is forgotten': answers('forget', true),
  'a signal that is delivered': answers('signal', 'delivered'),
  'a signal that is kept': answers('signal', 'kept'),
  'a signal that comes twice': answers('signal', 'duplicate'),
  'a signal after a wait in vain': (step) =>
    answers('signal', 'gone')(step) && step.before.some(({ jobs }) => jobs.some(hasEntry('timeout'))),
  'a wait in vain': leaves('sweep waits', 'ready'),
  'a wait that ends at once': (step) =>
    step.command.verb === 'settle' &&
    step.command.items.some(({ end }) => end.kind === 'wait') &&
    pairs(step, 'live').some(([before, after]) => before.state === 'running' && after?.state === 'ready'),
  'a job that is cancelled while it waits': leaves('cancel', undefined),
  'a job that is deleted while it waits': leaves('delete', undefined),
  'a job that is buried while it waits': leaves('bury', 'dead'),
  'a job that is kept out while another waits': (step) =>
    step.command.verb === 'enqueue' &&
    (step.answer as string[][]).flat().includes('duplicate') &&
    step.before.some(({ jobs }) => jobs.some(({ awaits }) => awaits !== null)),
  'a job with steps that dies': becomes('running', 'dead'),
  'a job with steps that is revived': becomes('dead', 'ready'),
  'a job with steps that is gone': becomes('running', undefined),
  'a job with steps whose result is kept': becomes('running', 'completed'),
  'a crash of a job with steps': (step) =>
    pairs(step, 'live').some(
      ([before, after]) => before.steps.length > 0 && !before.suspect && after?.suspect === true,
    ),
  'a join that waits for its members, and later for a signal': (step) =>
    step.before.some(({ jobs }) => jobs.some(({ id, awaits }) => /^[ac]$/.test(id) && awaits !== null)) &&
    step.command.verb === 'graph',
}

function hasEntry(kind: string) {
  return ({ steps }: { steps: readonly { kind: string }[] }) => steps.some((one) => one.kind === kind)
}

const steps = stepsOf(steppedSequence, 60, 250)

it.each(Object.keys(rareThings))('stepped sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})
