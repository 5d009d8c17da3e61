import { type CanonicalQueue, type CanonicalState, type Command, limitedSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import type { Claimed, Wait } from '#src/stores/contract/claim.js'
import { type Step, stepsOf } from './sequence-steps.js'

it('the same seed makes the same limited commands, and another seed makes others', () => {
  expect(limitedSequence(5, 200)).toEqual(limitedSequence(5, 200))
  expect(limitedSequence(6, 200)).not.toEqual(limitedSequence(5, 200))
})

it('a longer limited sequence of a seed begins with the shorter one', () => {
  expect(limitedSequence(5, 200).slice(0, 50)).toEqual(limitedSequence(5, 50))
})

type Throttle = CanonicalState['throttles'][number]
type Counter = Throttle['counters'][number]
const verb = (name: Command['verb'], more: (step: Step) => boolean) => (step: Step) =>
  step.command.verb === name && more(step)
const claimed = ({ command, answer }: Step): Partial<Claimed> =>
  command.verb === 'claim' ? (answer as Partial<Claimed>) : {}
const granted = (step: Step, name: string) => (claimed(step).claims ?? []).filter(({ queue }) => queue === name).length

/** A queue, or shard, before a step and after it. */
const queue =
  (is: (before: CanonicalQueue, after: CanonicalQueue, step: Step) => boolean, names?: readonly string[]) =>
  (step: Step) =>
    step.after.some((after) => {
      const before = step.before.find(({ name, shard }) => name === after.name && shard === after.shard)
      return before !== undefined && (names ?? [after.name]).includes(after.name) && is(before, after, step)
    })
const throttle = (is: (before: Throttle, after: Throttle, step: Step) => boolean) => (step: Step) =>
  step.throttles.after.some((after) => {
    const before = step.throttles.before.find(({ scope }) => scope === after.scope)
    return before !== undefined && is(before, after, step)
  })
const counter = (is: (before: Counter, after: Counter, throttle: Throttle, step: Step) => boolean) =>
  throttle((before, after, step) =>
    after.counters.some((one) => {
      const other = before.counters.find(({ group }) => group === one.group)
      return other !== undefined && is(other, one, after, step)
    }),
  )

/** Somebody is denied a queue for this reason; those that are told so of several shards count once. */
const denied = (reason: Wait['reason'], names: readonly string[]) => (step: Step) =>
  (claimed(step).waits ?? []).some((wait) => wait.reason === reason && names.includes(wait.queue))
const limitOf = (rule: string) => Number(rule.split('/')[0])
/** The rules of the group, be they its own. */
const rulesOf = ({ rules, eachGroup, rates }: Throttle, subject: string) => {
  const group = eachGroup === null ? subject : subject.slice(1)
  const own = rates.find(([name]) => name === group && (eachGroup === null || subject !== ''))
  return own?.[1].split(' ') ?? (subject === '' ? rules : (eachGroup ?? rules))
}
const starts = ({ starts }: Counter) => starts.reduce((sum, { count }) => sum + count, 0)
const shut = ({ lanes }: CanonicalQueue) => lanes.shut.map(({ group }) => group)
const heldFor = ({ lanes }: CanonicalQueue, name: string) => lanes.held.find(({ group }) => group === name)?.inMs
const shutFor = ({ lanes }: CanonicalQueue, name: string) => lanes.shut.find(({ group }) => group === name)?.inMs
const running = ({ name }: CanonicalQueue, queues: readonly CanonicalQueue[]) =>
  queues.filter((one) => one.name === name).flatMap(({ jobs }) => jobs.filter(({ state }) => state === 'running'))
    .length
const ready = ({ jobs }: CanonicalQueue) => jobs.filter(({ state, suspect }) => state === 'ready' && !suspect)
const isFull = (one: CanonicalQueue, queues: readonly CanonicalQueue[]) =>
  typeof one.maxRunning === 'number' && running(one, queues) >= one.maxRunning
/** Groups with jobs of which as many run as may. */
const fullGroups = (one: CanonicalQueue) => {
  const most = typeof one.maxRunning === 'object' ? one.maxRunning?.perGroup : undefined
  const of = (group: string | null) => one.jobs.filter((job) => job.state === 'running' && job.group === group).length
  return [...new Set(ready(one).map(({ group }) => group))].filter((group) => most !== undefined && of(group) >= most)
}
const holds = ({ command, answer }: Step, of: 'queue' | 'group') =>
  command.verb === 'settle' &&
  command.items.some(
    ({ end }, i) => end.kind === 'release' && end.hold?.of === of && (answer as readonly string[])[i] === 'ok',
  )

const rareThings: Record<string, (step: Step) => boolean> = {
  'a claim that a throttle denies': denied('throttled', ['mail', 'sms', 'even']),
  'a queue that its throttle shuts': queue((before, after) => before.shutInMs === null && after.shutInMs !== null),
  'a queue that opens at its time': verb(
    'advance',
    queue((before, after) => before.shutInMs !== null && after.shutInMs === null),
  ),
  'a claim that takes all that a throttle permits, and leaves jobs': (step) =>
    (claimed(step).waits ?? []).some((wait) => wait.reason === 'throttled' && granted(step, wait.queue) > 0),
  'a claim that a throttle by group denies': denied('throttled', ['sites', 'orders']),
  'a lane that its throttle shuts': queue(
    (before, after) =>
      shut(after).some((group) => !shut(before).includes(group) && heldFor(after, group) === undefined),
    ['sites', 'orders'],
  ),
  'a lane of jobs without a group that is shut': queue((_, after) => shut(after).includes('')),
  'a shut lane that a claim opens': verb(
    'claim',
    queue((before, after) => shut(before).some((group) => after.lanes.turns.includes(group))),
  ),
  'a group that has another turn of its round, while others wait for theirs': verb(
    'claim',
    queue((_, after) => after.lanes.turns.length > 1 && / after \d+$/.test(after.lanes.turns[0]!)),
  ),
  'a group that has had the last turn of its round': verb(
    'claim',
    queue((before, after) => before.lanes.turns.some((turn) => turn === `${after.lanes.turns.at(-1)} after 1`)),
  ),
  'a shut lane that loses its last job': queue((before, after) =>
    shut(before).some((group) => group !== '' && !shut(after).includes(group) && !after.lanes.turns.includes(group)),
  ),
  'a job that comes into a shut lane': verb(
    'enqueue',
    queue((before, after) =>
      shut(before).some((group) => {
        const of = (one: CanonicalQueue) => ready(one).filter((job) => (job.group ?? '') === group).length
        return of(after) > of(before)
      }),
    ),
  ),
  'a hold of a queue': verb(
    'settle',
    queue((before, after) => before.heldInMs === null && after.heldInMs !== null),
  ),
  'a hold of a group': verb(
    'settle',
    queue((before, after) => after.lanes.held.length > before.lanes.held.length),
  ),
  'a hold of a group by a job without one': verb(
    'settle',
    (step) =>
      !holds(step, 'queue') && queue((before, after) => before.heldInMs === null && after.heldInMs !== null)(step),
  ),
  'a queue that is both shut and held': queue(({ shutInMs, heldInMs }) => shutInMs !== null && heldInMs !== null),
  'a group that is held and shut for longer': queue((_, after) =>
    after.lanes.held.some(({ group, inMs }) => (shutFor(after, group) ?? 0) > inMs),
  ),
  'a queue that is denied because it is full': denied('full', ['sms', 'orders']),
  'a full queue of two shards': queue(
    (before, _, { before: all }) => isFull(before, all) && running(before, [before]) > 0,
    ['orders'],
  ),
  'the end of a claim that makes room in a full queue': verb(
    'settle',
    queue(
      (before, after, step) => isFull(before, step.before) && !isFull(after, step.after) && ready(after).length > 0,
    ),
  ),
  'a queue that is denied because its groups are full': denied('full', ['tenants']),
  'a group that becomes full': verb(
    'claim',
    queue((before, after) => fullGroups(after).some((group) => !fullGroups(before).includes(group))),
  ),
  'the end of a claim that makes room in a full group': verb(
    'settle',
    queue((before, after) =>
      fullGroups(before).some((group) => !fullGroups(after).includes(group) && after.lanes.turns.includes(group ?? '')),
    ),
  ),
  'a recovery after a restart': verb(
    'claim',
    throttle((before, after) => after.recoveries > before.recoveries),
  ),
  'a recovery that makes a silence': throttle((before, after) => before.quietInMs === null && after.quietInMs !== null),
  'a recovery that charges a long window': verb(
    'claim',
    counter((before, after, { scope }, step) => {
      const taken = scope === 'api' ? granted(step, 'mail') + granted(step, 'sms') : Number.POSITIVE_INFINITY
      return starts(after) > starts(before) + taken
    }),
  ),
  'an even counter that goes on along its grid': verb(
    'claim',
    counter((before, after) =>
      after.grids.some(
        ({ slotAgoUs, credit }, i) => credit > 1 && slotAgoUs !== null && slotAgoUs < before.grids[i]!.slotAgoUs!,
      ),
    ),
  ),
  'a counter that catches up': verb(
    'claim',
    counter((before, after, throttle) =>
      rulesOf(throttle, after.group).some((rule, i) => {
        const was = before.grids[i]!
        const isElastic = rule.includes('e') && limitOf(rule) > 1 && was.credit >= limitOf(rule)
        const taken = starts(after) - starts(before)
        return isElastic && (taken > 1 || (taken === 1 && after.grids[i]!.slotAgoUs === was.slotAgoUs))
      }),
    ),
  ),
  'a counter that has nothing left to start, and loses its credit': verb(
    'claim',
    counter((before, after) => before.grids.some(({ credit }, i) => credit > 0 && after.grids[i]!.credit === 0)),
  ),
  'a counter that is idle for the longest window': verb(
    'advance',
    throttle((before, after) => after.counters.length < before.counters.length),
  ),
  'a queue with both kinds of rules that those for all shut while a group is shut by its own': queue(
    (before, after) => before.shutInMs === null && after.shutInMs !== null && shut(after).length > 0,
    ['both'],
  ),
  'a group that is shut by its own rules while another of its queue starts': verb('claim', (step) =>
    queue((before, after) => shut(after).length > shut(before).length && after.shutInMs === null, ['both'])(step),
  ),
  'other rules for each group next to those for all': verb('set throttle', (step) =>
    throttle((before, after) => after.eachGroup?.join() !== before.eachGroup?.join())(step),
  ),
  'other rules for what has started': verb(
    'set throttle',
    throttle((before, after) => after.counters.length > 0 && after.rules.join() !== before.rules.join()),
  ),
  'a group that gets rules of its own': verb(
    'set rate',
    throttle((before, after) => after.rates.length > before.rates.length),
  ),
  'a group that goes by the rules of all again': verb(
    'set rate',
    throttle((before, after) => after.rates.length < before.rates.length),
  ),
  'other rules of a group for what has started': verb('set rate', (step) =>
    throttle(
      (before, after) =>
        after.counters.some(({ group }) => group === Reflect.get(step.command, 'group')) &&
        JSON.stringify(after.rates) !== JSON.stringify(before.rates),
    )(step),
  ),
  'rules of a group that open it': verb(
    'set rate',
    queue((before, after) => shut(before).some((group) => after.lanes.turns.includes(group))),
  ),
  'a group that starts more by rules of its own than others may': verb(
    'claim',
    counter(
      (before, after, throttle) =>
        starts(after) > starts(before) &&
        starts(after) > Math.max(...throttle.rules.map(limitOf)) &&
        throttle.rates.some(([name]) => name === after.group),
    ),
  ),
  'rules that are set and open a queue': verb(
    'set throttle',
    queue(
      (before, after) =>
        (before.shutInMs !== null && after.shutInMs === null) ||
        shut(before).some((group) => after.lanes.turns.includes(group)),
    ),
  ),
  'a queue that is shut by starts of another in its scope': verb(
    'claim',
    queue(
      (before, after) => before.lastFence === 0 && before.shutInMs === null && after.shutInMs !== null,
      ['mail', 'sms'],
    ),
  ),
  'a queue that is given another bound': verb(
    'setLimits',
    queue((before, after) => JSON.stringify(before.maxRunning) !== JSON.stringify(after.maxRunning)),
  ),
  'a suspect that a throttle by group grants': verb(
    'claim',
    queue(
      (before, after) =>
        before.jobs.some(
          ({ id, suspect, claim }) =>
            suspect && claim === null && after.jobs.some((job) => job.id === id && job.claim?.alone === true),
        ),
      ['sites', 'orders'],
    ),
  ),
  'the state of a throttle that denies': verb(
    'throttle',
    ({ answer }) => ((answer as { readonly forMs: number } | undefined)?.forMs ?? 0) > 0,
  ),
}

const steps = stepsOf(limitedSequence, 60, 250)

it.each(Object.keys(rareThings))('limited sequences reach %s', async (title) => {
  expect((await steps).filter(rareThings[title]!).length).toBeGreaterThan(2)
})
