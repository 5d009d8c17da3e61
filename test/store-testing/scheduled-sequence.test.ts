import { scheduledSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import type { TickAnswer } from '#src/stores/contract/schedules.js'
import { type Step, stepsOf } from './sequence-steps.js'

it('the same seed makes the same scheduled commands, and another seed makes others', () => {
  expect(scheduledSequence(5, 200)).toEqual(scheduledSequence(5, 200))
  expect(scheduledSequence(6, 200)).not.toEqual(scheduledSequence(5, 200))
})

it('a longer scheduled sequence of a seed begins with the shorter one', () => {
  expect(scheduledSequence(5, 200).slice(0, 50)).toEqual(scheduledSequence(5, 50))
})

const answered = (verb: Step['command']['verb'], answer: unknown) => (step: Step) =>
  step.command.verb === verb && step.answer === answer
const ticked = (is: (answer: TickAnswer) => boolean) => (step: Step) =>
  step.command.verb === 'tick' && step.answer !== undefined && is(step.answer as TickAnswer)
const outcome = (word: TickAnswer['outcome']) => ticked((answer) => answer.outcome === word)
const enqueued = (word: string) =>
  ticked((answer) => answer.outcome === 'ticked' && answer.enqueued.some((one) => one === word))

const rareThings: Record<string, (step: Step) => boolean> = {
  'a tick that adds a job': enqueued('added'),
  'a tick whose payload joins others': enqueued('merged'),
  'a tick whose job is there': enqueued('duplicate'),
  'a tick of several jobs': ticked((answer) => answer.outcome === 'ticked' && answer.enqueued.length > 1),
  'a tick that enqueues nothing': ticked((answer) => answer.outcome === 'ticked' && answer.enqueued.length === 0),
  'a tick that is skipped': outcome('skipped'),
  'a tick that is lost': outcome('lost'),
  'a tick into a full queue': outcome('full'),
  'a tick into a queue that drains': outcome('draining'),
  'a schedule that is written': answered('put schedule', true),
  'a schedule that was changed meanwhile': answered('put schedule', false),
  'a schedule that is removed': answered('remove schedule', true),
  'a schedule that is not removed': answered('remove schedule', false),
  'a worker that does not lead': ({ command, answer }) =>
    command.verb === 'due' && !(answer as { isLead: boolean }).isLead,
  'several that are due': ({ command, answer }) =>
    command.verb === 'due' && (answer as { due: unknown[] }).due.length > 1,
}

const steps = stepsOf(scheduledSequence, 40, 200)

it.each(Object.keys(rareThings))('scheduled sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})
