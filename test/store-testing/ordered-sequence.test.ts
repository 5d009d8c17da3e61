import { type CanonicalJob, type Command, commandSequence, orderedSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import type { Claimed } from '#src/stores/contract/claim.js'
import type { Step as RecordStep } from '#src/stores/contract/job-records.js'
import { pairs, type Step, stepsOf } from './sequence-steps.js'

it('the same seed makes the same ordered commands, and another seed makes others', () => {
  expect(orderedSequence(5, 200)).toEqual(orderedSequence(5, 200))
  expect(orderedSequence(6, 200)).not.toEqual(orderedSequence(5, 200))
})

it('a longer ordered sequence of a seed begins with the shorter one', () => {
  expect(orderedSequence(5, 200).slice(0, 50)).toEqual(orderedSequence(5, 50))
})

const claimed = ({ command, answer }: Step): Partial<Claimed> =>
  command.verb === 'claim' ? (answer as Partial<Claimed>) : {}
const changed = ({ answer }: Step) => (answer as Partial<RecordStep>).changed ?? 0
const verb =
  (names: Command['verb'] | readonly Command['verb'][], more: (step: Step) => boolean) =>
  (step: Step): boolean =>
    [names].flat().includes(step.command.verb) && more(step)
const answers = (word: string) => verb('enqueue', ({ answer }) => JSON.stringify(answer).includes(word))
const refused = (code: string) => (step: Step) => step.answer === `refused: ${code}`

/** A live job, or an entry of the morgue, that becomes another in one step; `after` is absent where it goes. */
const live = (is: (before: CanonicalJob, after: CanonicalJob | undefined) => boolean) => (step: Step) =>
  pairs(step, 'live').some(([before, after]) => is(before, after))
const dead = (is: (before: CanonicalJob, after: CanonicalJob | undefined) => boolean) => (step: Step) =>
  pairs(step, 'dead').some(([before, after]) => is(before, after))
const size = (job: CanonicalJob | undefined) => job?.payloads?.length ?? 0
/** By how many the waiting payloads are more than the different ones. */
const equalsIn = (job: CanonicalJob | undefined) => {
  const waiting = (job?.claim ? job.successor?.payloads : job?.payloads) ?? []
  return waiting.length - new Set(waiting.map(({ payload, codec }) => `${codec} ${payload}`)).size
}
const ranOut = live(
  (before, after) => before.state === 'running' && size(before) > 1 && after?.state === 'ready' && after.attempt === 1,
)
const isNew = live(
  ({ state, successor }, after) =>
    state === 'running' && successor !== null && after?.claim === null && after.createdAt === successor.createdAt,
)
const cancelRequested = live(({ claim }, after) => claim?.cancelRequested === true && after !== undefined)

const rareThings: Record<string, (step: Step) => boolean> = {
  'a payload that joins others': answers('merged'),
  'a payload that does not fit': answers('full'),
  'a payload that a draining queue refuses': answers('draining'),
  'a claim that leaves payloads behind': (step) => claimed(step).claims?.some(({ hasMore }) => hasMore) ?? false,
  'a claim of several payloads': (step) => claimed(step).claims?.some((claim) => claim.payloads?.[1]) ?? false,
  'a shard in use': (step) => claimed(step).waits?.some(({ reason }) => reason === 'full') ?? false,
  'a shard that is not there': verb('claim', (step) =>
    (claimed(step).waits ?? []).some(
      ({ queue, shard }) => shard !== undefined && !step.after.some((q) => q.name === queue && q.shard === shard),
    ),
  ),
  'a claim of two shards': (step) => new Set(claimed(step).claims?.map(({ fence }) => fence)).size > 1,
  'a push next to a running job': verb(
    'enqueue',
    live(({ claim, successor }, after) => claim !== null && successor === null && after?.successor !== null),
  ),
  'a failure that merges with waiting payloads': verb(
    'settle',
    live((before, after) => before.successor !== null && after?.attempt === before.attempt + 1),
  ),
  'equal payloads that meet again after a failure': verb(
    'settle',
    live(
      (before, after) =>
        after?.attempt === before.attempt + 1 && size(after) < size(before) + (before.successor?.payloads.length ?? 0),
    ),
  ),
  'equal payloads that stay apart while they wait together': verb(
    'enqueue',
    live((before, after) => equalsIn(after) > equalsIn(before)),
  ),
  'a last failure that leaves payloads': verb('settle', ranOut),
  'a completed job with a new one next to it': verb('settle', isNew),
  'a crash with other payloads waiting': verb(
    ['claim', 'gone'],
    live(({ claim, successor }, after) => claim !== null && successor !== null && after?.suspect === true),
  ),
  'one crash too many that leaves payloads': verb(['claim', 'gone'], ranOut),
  'one crash too many with a new job next to it': (step) =>
    (claimed(step).buried ?? []).length > 0 && isNew(step) && !cancelRequested(step),
  'a push after a cancel': verb(
    'enqueue',
    live(
      ({ claim, successor }, after) =>
        claim?.cancelRequested === true && successor === null && Boolean(after?.successor),
    ),
  ),
  'a cancelled job that leaves a new one': (step) =>
    step.command.verb !== 'move' && cancelRequested(step) && isNew(step),
  'an id that is buried twice': verb(
    ['settle', 'bury', 'claim'],
    dead((before, after) => size(after) > size(before)),
  ),
  'an equal payload that is buried twice': verb(
    ['settle', 'bury'],
    dead((before, after) => after !== undefined && size(after) === size(before) && after.stamp !== before.stamp),
  ),
  'a revival into a waiting job': verb(
    'revive',
    live((before, after) => before.claim === null && size(after) > size(before)),
  ),
  'a revival into a running job': verb(
    'revive',
    live(({ claim, successor }, after) => claim !== null && after?.successor?.stamp !== successor?.stamp),
  ),
  'a reshard that moves jobs': verb('reshard', (step) => changed(step) > 0),
  'a reshard that waits for running jobs': verb('reshard', ({ answer }) => (answer as RecordStep).more === true),
  'a reshard while another is under way': verb('reshard', refused('config-conflict')),
  'a reshard of a plain queue': verb('reshard', ({ answer }) => String(answer).startsWith('refused: ')),
  'a move that brings jobs': verb('move', (step) => changed(step) > 0),
  'a move that joins others': verb(
    'move',
    (step) =>
      live((before, after) => size(after) > size(before))(step) ||
      live(({ successor }, after) => (after?.successor?.payloads.length ?? 0) > (successor?.payloads.length ?? 0))(
        step,
      ),
  ),
  'a move into a morgue that has the id': verb(
    'move',
    dead((before, after) => size(after) > size(before)),
  ),
  'a move that is refused': verb('move', ({ answer }) => String(answer).startsWith('refused: ')),
  'a queue that keeps the latest payload only, and then all': verb('open', ({ before, after }) =>
    before.some(({ merge }, i) => merge === 'latest' && after[i]!.merge === 'all'),
  ),
  'another form that is refused': verb('open', ({ answer }) => String(answer).startsWith('refused: ')),
}

const steps = stepsOf(orderedSequence, 60, 200)

it.each(Object.keys(rareThings))('ordered sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})

it('the same seed makes the same commands, and another seed makes others', () => {
  expect(commandSequence(5, 200)).toEqual(commandSequence(5, 200))
  expect(commandSequence(6, 200)).not.toEqual(commandSequence(5, 200))
})

it('a longer sequence of a seed begins with the shorter one', () => {
  expect(commandSequence(5, 200).slice(0, 50)).toEqual(commandSequence(5, 50))
})

it('a long sequence has every verb and every end of a claim', () => {
  const commands = commandSequence(1, 5_000)

  expect([...new Set(commands.map(({ verb }) => verb))].sort()).toEqual(
    [
      ...[
        'adopt',
        'advance',
        'beat',
        'bury',
        'cancel',
        'claim',
        'clear',
        'delete',
        'delete dead',
        'depth',
        'drain',
        'enqueue',
      ],
      ...[
        'expect',
        'extend',
        'fail',
        'get',
        'gone',
        'held',
        'list',
        'list dead',
        'open',
        'pause',
        'queues',
        'remove worker',
        'reopen',
        'report',
        'resume',
        'reschedule',
      ],
      ...['revive', 'runNow', 'set fields', 'setLimits', 'settle', 'watch', 'workers'],
    ].sort(),
  )
  const ends = commands
    .flatMap((command) => (command.verb === 'settle' ? command.items : []))
    .map(({ end }) => end.kind)
  expect([...new Set(ends)].sort()).toEqual(['bury', 'cancel', 'complete', 'release', 'retry'])
})
