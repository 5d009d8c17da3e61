import { joinedSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import type { GraphAnswer } from '#src/stores/contract/joins.js'
import { pairs, type Step, stepsOf } from './sequence-steps.js'

it('the same seed makes the same joined commands, and another seed makes others', () => {
  expect(joinedSequence(5, 200)).toEqual(joinedSequence(5, 200))
  expect(joinedSequence(6, 200)).not.toEqual(joinedSequence(5, 200))
})

it('a longer joined sequence of a seed begins with the shorter one', () => {
  expect(joinedSequence(5, 200).slice(0, 50)).toEqual(joinedSequence(5, 50))
})

const graph = (is: (answer: GraphAnswer) => boolean) => (step: Step) =>
  step.command.verb === 'graph' && is(step.answer as GraphAnswer)
const refused = (as: string) => graph((answer) => answer.outcome === 'refused' && answer.as === as)
const sealed = (answer: string) => (step: Step) => step.command.verb === 'seal' && step.answer === answer
/** A join goes from this state to that, by this verb if one is named. */
const becomes = (from: string, to: string, verb?: string) => (step: Step) =>
  (verb === undefined || step.command.verb === verb) &&
  pairs(step, from === 'dead' ? 'dead' : 'live').some(
    ([before, after]) =>
      /^[jo]\d$/.test(before.id) &&
      before.state === from &&
      (after?.state === to || isDead(step, before.id, from, to) || isAlive(step, before.id, from, to)),
  )
const found = ({ after }: Step, id: string, state: string) =>
  after.some(({ jobs }) => jobs.some((job) => job.id === id && job.state === state))
const isDead = (step: Step, id: string, from: string, to: string) =>
  from !== 'dead' && to === 'dead' && found(step, id, 'dead')
const isAlive = (step: Step, id: string, from: string, to: string) => from === 'dead' && found(step, id, to)
const died = (reason: string) => (step: Step) =>
  step.after.some(({ jobs }, i) =>
    jobs.some(
      (job) =>
        job.reason === reason && !step.before[i]?.jobs.some(({ id, reason: old }) => id === job.id && old === reason),
    ),
  )

const rareThings: Record<string, (step: Step) => boolean> = {
  'a graph that is added': graph(({ outcome }) => outcome === 'added'),
  'a graph that is there already': graph(({ outcome }) => outcome === 'duplicate'),
  'a graph that a full queue refuses': refused('full'),
  'a graph that a draining queue refuses': refused('draining'),
  'a join that is sealed': sealed('sealed'),
  'a dead join that is sealed': sealed('dead'),
  'a join that is gone when it is sealed': sealed('gone'),
  'a seal by a wrong number': sealed('refused: argument-invalid'),
  'a join that the end of a claim makes ready': becomes('waiting', 'ready', 'settle'),
  'a join that is scheduled when its members have ended': becomes('waiting', 'scheduled'),
  'a join that is ready when it is sealed': becomes('waiting', 'ready', 'seal'),
  'a join that the end of a claim makes dead': becomes('waiting', 'dead', 'settle'),
  'a join that a claim makes dead': becomes('waiting', 'dead', 'claim'),
  'a join that a cancel makes dead': becomes('waiting', 'dead', 'cancel'),
  'a join that a lack of time makes dead': becomes('waiting', 'dead', 'sweep'),
  'a join that waits again': becomes('dead', 'waiting', 'revive'),
  'a dead join that is ready when it is revived': becomes('dead', 'ready', 'revive'),
  'a member that is cancelled with the rest': died('join-dead'),
  'a join that is late': died('join-late'),
  'a join that nobody sealed': died('join-never-sealed'),
}

const steps = stepsOf(joinedSequence, 60, 250)

it.each(Object.keys(rareThings))('joined sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})
