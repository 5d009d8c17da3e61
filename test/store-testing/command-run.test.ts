import { type Command, commandSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import type { Claimed } from '#src/stores/contract/claim.js'
import { type Step, stepsOf } from './sequence-steps.js'

const waits = ({ command, answer }: Step) => (command.verb === 'claim' ? (answer as Partial<Claimed>).waits : []) ?? []
const crashes = ({ answer }: Step) => (answer as Partial<Claimed> | undefined)?.crashed ?? []
const lapses = (which: 'lead' | 'suspectLead') => (step: Step) =>
  step.command.verb === 'advance' && step.before.some((queue, i) => queue[which] && !step.after[i]![which])
/** Suspects that were in one state before the step and are in another after it. */
const moves = (from: string, to: string, suspect: boolean) => (step: Step) =>
  step.before.some((queue, i) =>
    queue.jobs.some(({ id, state, suspect: was }) => {
      const next = step.after[i]!.jobs.find((job) => job.id === id)
      return state === from && was && next?.state === to && next.suspect === suspect
    }),
  )
const verb = (name: Command['verb'], more: (step: Step) => boolean) => (step: Step) =>
  step.command.verb === name && more(step)

const rareThings: Record<string, (step: Step) => boolean> = {
  'a crash that is charged': (step) => crashes(step).some(({ charged }) => charged),
  'a crash that is not': (step) => crashes(step).some(({ charged }) => !charged),
  'a claim alone of a suspect': verb('claim', moves('ready', 'running', true)),
  'a release of a suspect without delay': verb('settle', moves('running', 'ready', true)),
  'a suspect that is put off': verb('settle', moves('running', 'scheduled', false)),
  'a suspect that is retried at once': verb('settle', moves('running', 'ready', false)),
  'a suspect that crashes again': verb('claim', moves('running', 'ready', true)),
  'a suspect that is failed from outside': verb(
    'fail',
    (step) => moves('running', 'scheduled', false)(step) || moves('running', 'ready', false)(step),
  ),
  'a suspect that an operator buries': verb('bury', moves('ready', 'dead', false)),
  'a lead': (step) => waits(step).some(({ lead, reason }) => lead && reason !== 'suspect'),
  'a claimer that does not lead': (step) =>
    waits(step).some(({ lead, forMs, reason }) => !lead && forMs && reason !== 'suspect'),
  'a lead that passes to a claimer with an earlier change': verb('claim', ({ before, after }) =>
    before.some(({ lead }, i) => lead && after[i]!.lead && lead.worker !== after[i]!.lead.worker),
  ),
  'a lead that lapses': lapses('lead'),
  'a lead of suspects': (step) => waits(step).some(({ lead, reason }) => lead && reason === 'suspect'),
  'a claimer that does not lead the suspects': (step) =>
    waits(step).some(({ lead, reason }) => !lead && reason === 'suspect'),
  'a lead of suspects that lapses': lapses('suspectLead'),
  'suspects next to a grant': (step) =>
    waits(step).some(({ reason, queue }) => reason === 'suspect' && queue === (step.answer as Claimed).queue),
  'a gone worker that held a claim': verb('gone', (step) => crashes(step).length > 0),
  'a gone worker that held none of the claims': verb('gone', (step) => crashes(step).length === 0),
  'a gone worker whose job is buried': verb('gone', ({ answer }) => (answer as Claimed).buried.length > 0),
  'a worker that holds claims': verb('held', ({ answer }) => (answer as unknown[]).length > 0),
}

const steps = stepsOf(commandSequence, 40, 200)

it.each(Object.keys(rareThings))('command sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})
