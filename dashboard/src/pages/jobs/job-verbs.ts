/**
 * The job verbs: actions on chosen jobs of a queue, on all of them, or on all that failed; each confirmed with its
 * count.
 */

import type { Changed, JobState, QueueCounts } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import type { MenuItem } from '../../parts/popover-menu.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf, exactCount } from '../../words/count-words.js'
import type { ShownFilter } from './list-filters.js'
import { askForMatches } from './match-acts.js'

type JobVerb = 'cancel' | 'run-now' | 'bury' | 'delete'

interface VerbWords {
  readonly text: string
  /** The text for many jobs: `Bury 12 waiting`. */
  readonly ofAll: (which: string) => string
  readonly effect: string
  readonly done: string
  /** The state of the jobs on which it acts, if all are meant. */
  readonly state: string
  readonly among: (counts: QueueCounts) => number
  /** These states. */
  readonly takes: readonly JobState[]
}

const waiting = {
  state: 'waiting',
  among: ({ ready, scheduled, waiting }: QueueCounts) => ready + scheduled + waiting,
  takes: ['waiting', 'scheduled', 'ready'] as const,
}
const words: Readonly<Record<JobVerb, VerbWords>> = {
  'run-now': {
    text: 'Run now',
    ofAll: (which) => `Run ${which} now`,
    effect: 'Those that are scheduled are due now. Their attempts stay.',
    done: 'due now',
    state: 'scheduled',
    among: ({ scheduled }) => scheduled,
    takes: ['scheduled'],
  },
  cancel: {
    text: 'Cancel',
    ofAll: (which) => `Cancel ${which}`,
    effect: 'What waits never runs; what runs is told at its next beat.',
    done: 'cancelled, or told',
    state: 'waiting or running',
    among: ({ ready, scheduled, waiting, running }) => ready + scheduled + waiting + running,
    takes: [...waiting.takes, 'running'],
  },
  bury: {
    text: 'Bury',
    ofAll: (which) => `Bury ${which}`,
    effect: 'Those that wait go to the morgue, and can be revived there.',
    done: 'buried',
    ...waiting,
  },
  delete: {
    text: 'Delete',
    ofAll: (which) => `Delete ${which}`,
    effect: 'Those that wait are removed without a trace, and never run. Running and dead ones stay.',
    done: 'deleted',
    ...waiting,
  },
}

export const jobVerbs = Object.keys(words) as readonly JobVerb[]

export function verbText(verb: JobVerb): string {
  return words[verb].text
}

interface Asking {
  readonly queue: string
  /** Called after an action. */
  readonly done: () => unknown
}

export function askForChosen(verb: JobVerb, ids: readonly string[], { queue, done }: Asking): void {
  const { text, effect, done: told } = words[verb]
  askToConfirm({
    title: `${text}: ${countOf(ids.length, 'job')}?`,
    text:
      verb === 'delete' ? 'They are removed without a trace, kept results too. Running and dead ones stay.' : effect,
    verb: text,
    isDangerous: verb !== 'run-now',
    act: () => post<Changed>(at`queues/${queue}/jobs/${verb}`, { ids }),
    done: tell(told, done),
  })
}

/** The actions on all jobs of a queue, and on all that failed; only those for which there are jobs. */
export function allItems(counts: QueueCounts, { queue, done }: Asking): readonly MenuItem[] {
  return (['all', 'failed'] as const).flatMap((which) =>
    jobVerbs.flatMap((verb) => {
      const { ofAll, effect, done: told, state, among } = words[verb]
      const count = which === 'all' ? among(counts) : Math.min(among(counts), counts.retries)
      if (count === 0) return []
      const text = ofAll(`${exactCount(count)} ${which === 'all' ? state : 'that failed'}`)
      const onPick = () =>
        askToConfirm({
          title: `${text}?`,
          text: `All of the queue ${queue} that are ${state}${which === 'failed' ? ' and have failed before' : ''}, whatever this list shows: ${countOf(count, 'job')} at this moment. ${effect}`,
          verb: words[verb].text,
          isDangerous: verb !== 'run-now',
          typed: queue,
          act: () => post<Changed>(at`queues/${queue}/jobs/${verb}`, { [which]: true, confirm: queue }),
          done: tell(told, done),
        })
      return [{ text: `${text} …`, isDangerous: verb === 'delete', onPick }]
    }),
  )
}

/** The actions on all jobs that match the filter of the list; none for jobs that have ended. */
export function matchItems(
  filter: ShownFilter,
  listed: JobState | 'all',
  { queue, done }: Asking,
): readonly MenuItem[] {
  return jobVerbs.flatMap((verb) => {
    const { text, ofAll, effect, done: told, state, takes } = words[verb]
    if (listed !== 'all' && !takes.includes(listed)) return []
    const isDangerous = verb === 'delete'
    const onPick = () =>
      askForMatches({
        ...{ queue, filter, path: `jobs/${verb}`, verb: text, effect, states: state, isDangerous: verb !== 'run-now' },
        ...(listed === 'all' ? { takes } : { takes: [listed], state: listed }),
        done: tell(told, done),
      })
    return [{ text: `${ofAll('all that match')} …`, isDangerous, onPick }]
  })
}

function tell(told: string, done: () => unknown): (changed: number) => void {
  return (changed) => {
    say(
      changed === 0
        ? 'Nothing was changed: none of them is in a state that allows it.'
        : `${countOf(changed, 'job')} ${told}.`,
    )
    void done()
  }
}
