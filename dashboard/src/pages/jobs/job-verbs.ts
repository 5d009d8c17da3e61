/** The job verbs: what is done to chosen jobs of a queue, to all of them, or to all that failed; each asked for with its count before. */

import type { Changed, QueueCounts } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf } from '../../words/count-words.js'

type JobVerb = 'cancel' | 'run-now' | 'bury' | 'delete'

interface VerbWords {
  readonly text: string
  /** What becomes of them, after "…: ". */
  readonly effect: string
  /** Of which it takes some, where all are meant. */
  readonly which: string
  readonly done: string
  readonly isDangerous: boolean
  readonly among: (counts: QueueCounts) => number
}

const words: Readonly<Record<JobVerb, VerbWords>> = {
  'run-now': {
    text: 'Run now',
    effect: 'Those that are scheduled are due now. Their attempts stay.',
    which: 'scheduled',
    done: 'due now',
    isDangerous: false,
    among: ({ scheduled }) => scheduled,
  },
  cancel: {
    text: 'Cancel',
    effect: 'What waits never runs; what runs is told at its next beat.',
    which: 'waiting or running',
    done: 'cancelled, or told',
    isDangerous: true,
    among: ({ ready, scheduled, running }) => ready + scheduled + running,
  },
  bury: {
    text: 'Bury',
    effect: 'Those that wait go to the morgue, and can be revived there.',
    which: 'waiting',
    done: 'buried',
    isDangerous: true,
    among: ({ ready, scheduled }) => ready + scheduled,
  },
  delete: {
    text: 'Delete',
    effect: 'Those that wait are removed without a trace, and never run. Running and dead ones stay.',
    which: 'waiting',
    done: 'deleted',
    isDangerous: true,
    among: ({ ready, scheduled }) => ready + scheduled,
  },
}

export const jobVerbs = Object.keys(words) as readonly JobVerb[]

export function verbText(verb: JobVerb): string {
  return words[verb].text
}

interface Asking {
  readonly queue: string
  /** Called when something was done. */
  readonly done: () => unknown
}

export function askForChosen(verb: JobVerb, ids: readonly string[], { queue, done }: Asking): void {
  const { text, effect, isDangerous, done: told } = words[verb]
  askToConfirm({
    title: `${text} ${countOf(ids.length, 'job')}?`,
    text:
      verb === 'delete' ? 'They are removed without a trace, kept results too. Running and dead ones stay.' : effect,
    verb: text,
    isDangerous,
    act: () => post<Changed>(at`queues/${queue}/jobs/${verb}`, { ids }),
    done: tell(told, done),
  })
}

export function askForAll(verb: JobVerb, which: 'all' | 'failed', counts: QueueCounts, { queue, done }: Asking): void {
  const { text, effect, isDangerous, which: state, done: told, among } = words[verb]
  const count = which === 'all' ? among(counts) : Math.min(among(counts), counts.retries)
  const meant = which === 'all' ? `all ${state} jobs` : `all ${state} jobs that have failed`
  askToConfirm({
    title: `${text} ${meant} of ${queue}?`,
    text: `${countOf(count, 'job')} at this moment, whatever this list shows. ${effect}`,
    verb: `${text} all`,
    isDangerous,
    typed: queue,
    act: () => post<Changed>(at`queues/${queue}/jobs/${verb}`, { [which]: true, confirm: queue }),
    done: tell(told, done),
  })
}

function tell(told: string, done: () => unknown): (changed: number) => void {
  return (changed) => {
    say(changed === 0 ? 'Nothing was changed: none of them is in such a state.' : `${countOf(changed, 'job')} ${told}.`)
    void done()
  }
}
