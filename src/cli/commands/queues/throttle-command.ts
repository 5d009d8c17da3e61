/**
 * The command `queues throttle`: shows the starts that a throttle has counted, and changes its limits while everything
 * runs.
 */

import { type Command, Option } from 'commander'
import type { ThrottleStatus } from '../../../client/admin/throttle-admin.js'
import { InvalidArgumentError } from '../../../core/errors.js'
import { defined } from '../../../core/values/defined.js'
import type { Mill } from '../../../mill/mill.js'
import { wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { printable, shortened } from '../../printable.js'
import { OperationError, UsageError } from '../../process/exit-code.js'
import { confirm } from '../../terminal/confirmation.js'
import type { Terminal } from '../../terminal/terminal.js'
import { holdLines, rateLines, throttleLines } from '../../terminal/throttle-lines.js'
import { type Rate, rateChangeFlag, rulesOf, rulesText, windowsOf } from '../../terminal/throttle-text.js'

const longestGroup = 40

interface ThrottleFlags extends MillFlags {
  readonly group?: string
  readonly set?: readonly Rate[] | 'default'
  readonly by?: 'queue' | 'group'
  readonly moderate?: boolean
  readonly elastic?: number
  readonly yes?: boolean
}

export function addThrottle(queues: Command): void {
  const command = millCommand(
    queues,
    'throttle <queue>',
    'Show the throttle of a queue, its counts and its holds, or change its rules',
  )
    .option('--group <group>', 'show the starts and the holds of this group; with --set: give it a rate of its own')
    .option(
      '--set <rates>',
      'the windows from now on: 10/60s, or 3/s,300/h; may be repeated; default ends the rate of a group',
      rateChangeFlag,
    )
    .addOption(
      new Option('--by <what>', 'with --set: which rules, if it has some for all jobs and some for each group').choices(
        ['queue', 'group'],
      ),
    )
    .option('--moderate', 'with --set: space starts evenly')
    .option(
      '--elastic <buffer>',
      'with --moderate: catch up, but leave this many starts unused',
      wholeFlag(0, 1_000_000),
    )
    .option('--yes', 'do not ask first (only a person at a terminal is asked, if other queues share it)')
    .addHelpText(
      'after',
      `
  New rules hold at once, for every queue of the scope; earlier starts still count. Scope and grouping stay as they are.
  Then set the same rules in the configuration: a mill with others is refused as throttle-conflict. The rate of one group
  is no part of a configuration: it stays until --set default.

Examples:
  $ millrace queues throttle crawl --group example.org
  $ millrace queues throttle crawl --group slow.example --set 1/10s
  $ millrace queues throttle crawl --group slow.example --set default
  $ millrace queues throttle mail --set 3/s,300/h
  $ millrace queues throttle api --set 10/60s --moderate --elastic 2`,
    )
  withJson(
    command,
    'print {"queue","group","scope","by","rules","eachGroup","isOwn","own","queues","hits","groupHits","forMs","quietForMs","groups","rates","holds","held"}; with --set {"queue","group","queues","before","after"}',
  ).action((queue: string, flags: ThrottleFlags) => {
    refuseLoneFlags(flags)
    return withMill(flags, (mill, terminal) =>
      flags.set === undefined ? show(mill, terminal, queue, flags) : set(mill, terminal, queue, flags),
    )
  })
}

function refuseLoneFlags({ group, set, by, moderate, elastic, yes }: ThrottleFlags): void {
  if (set === 'default' && group === undefined)
    throw new UsageError('--set default ends the rate of one group: name it by --group.')
  if (group !== undefined && by !== undefined) throw new UsageError('--group names one group: leave --by out.')
  if (set !== undefined && set !== 'default') return
  const alone = set === undefined ? { by, moderate, elastic, yes } : { moderate, elastic }
  const lone = Object.entries(alone).find(([, value]) => value !== undefined)
  if (lone !== undefined) throw new UsageError(`--${lone[0]} goes with --set, such as --set 10/60s.`)
}

async function show(mill: Mill, terminal: Terminal, queue: string, { group }: ThrottleFlags): Promise<void> {
  const state = await stateOf(mill, queue, group)
  const { throttle } = mill.queue(queue)
  const { holds, total: held } = await throttle.holds(group === undefined ? {} : { group })
  if (state === undefined && held === 0) throw new OperationError(noThrottle(queue))
  if (group !== undefined && state?.by === 'queue' && state.eachGroup === undefined && held === 0)
    throw new UsageError(`the throttle of queue '${queue}' holds for all of its jobs together: leave --group out.`)
  const rated = state?.own === undefined || group !== undefined ? { rates: [], total: 0 } : await throttle.rates()
  const about = {
    ...defined({ group }),
    ...state,
    ...(rated.total > 0 && { rates: rated.rates }),
    ...(held > 0 && { holds, held }),
  }
  terminal.print({ queue, ...about }, () => [
    ...(state === undefined ? [`${queue} has no throttle.`] : throttleLines(state, { queue, group, terminal })),
    ...rateLines(rated, terminal),
    ...holdLines(queue, { holds, total: held }, terminal),
  ])
}

async function set(mill: Mill, terminal: Terminal, queue: string, flags: ThrottleFlags): Promise<void> {
  const { group, by } = flags
  const change = flags.set === 'default' ? flags.set : windowsOf(flags.set!, flags)
  const asked = change === 'default' ? undefined : rulesOf(change, '--set')
  const state = await stateOf(mill, queue, group)
  if (state === undefined) throw new InvalidArgumentError(noThrottle(queue))
  const { scope } = state
  // Beside rules for all jobs, those of each group are apart.
  const isOfGroups = state.eachGroup !== undefined && (group !== undefined || flags.by === 'group')
  const rulesIn = (of: ThrottleStatus) => (isOfGroups ? of.eachGroup! : of.rules)
  const before = rulesIn(state)
  const others = othersOf(state, queue)
  const isForAll = group === undefined
  // A user who named one queue may not know of the others.
  if (others.length > 0)
    await confirm(
      async () =>
        `queues throttle ${queue}: ${others.join(', ')} ${others.length === 1 ? 'shares' : 'share'} its scope '${scope}', with the same ${isForAll ? 'rules' : 'rate of this group'}. Go on?`,
      flags,
    )
  const { throttle } = mill.queue(queue)
  if (!isForAll) await throttle.set(change, { group })
  else if (change !== 'default') await throttle.set(change.map((one) => ({ ...one, ...defined({ by }) })))
  const after = asked ?? rulesIn((await stateOf(mill, queue, group))!)
  const name = isForAll
    ? `${queue}${isOfGroups ? ', each group' : ''}`
    : `${queue}, group '${shortened(printable(group), longestGroup)}'`
  const like = (isLike: boolean) => (isLike ? ', like all groups' : '')
  terminal.print({ queue, ...(isForAll ? {} : { group }), queues: state.queues, before, after }, () => [
    `${name}: ${rulesText(after)}${like(asked === undefined)}; before: ${rulesText(before)}${like(!isForAll && state.isOwn === undefined)}.`,
    ...(others.length > 0 ? [`It holds for ${others.join(', ')} too, by the scope '${scope}'.`] : []),
    isForAll
      ? 'Give the configuration the same rules: a mill with others is refused as throttle-conflict.'
      : asked === undefined
        ? 'The configuration says the rules of all groups.'
        : 'It stays until --set default: no configuration changes it.',
  ])
}

async function stateOf(mill: Mill, queue: string, group?: string): Promise<ThrottleStatus | undefined> {
  const { throttle } = mill.queue(queue)
  // Looking changes nothing in the store.
  if ((await mill.storedQueues())?.some(({ name }) => name === queue)) return throttle.get(group)
  throw new OperationError(
    `queue '${queue}' is not stored yet: it gets its throttle when a worker or a producer first uses it.`,
  )
}

/** The other queues of its scope. */
function othersOf({ queues }: ThrottleStatus, queue: string): string[] {
  return queues.filter((name) => name !== queue)
}

function noThrottle(queue: string): string {
  return `queue '${queue}' has no throttle; give it one by \`throttle\` in the configuration.`
}
