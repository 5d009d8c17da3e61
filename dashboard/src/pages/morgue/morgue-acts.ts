/** The morgue acts: reviving or removing dead jobs, some by id or all of a queue, each confirmed with its count. */

import type { Changed } from '../../api/answers.js'
import { post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { askToConfirm } from '../../state/asked-action.js'
import { say } from '../../state/toast-list.js'
import { countOf } from '../../words/count-words.js'
import type { ShownFilter } from '../jobs/list-filters.js'
import { askForMatches } from '../jobs/match-acts.js'

type MorgueVerb = 'revive' | 'delete'

const words = {
  revive: {
    text: 'Revive',
    effect: 'They go back into the queue, ready now, with all their attempts.',
    told: 'revived',
  },
  delete: { text: 'Delete', effect: 'They are removed for good.', told: 'deleted' },
} as const

interface MorgueAsking {
  readonly queue: string
  /** The words after the count: `of this error`. Default: none. */
  readonly of?: string
  /** Called after an action. */
  readonly done: () => unknown
}

export function askForDead(verb: MorgueVerb, ids: readonly string[], { queue, of = '', done }: MorgueAsking): void {
  const { text, effect } = words[verb]
  askToConfirm({
    title: `${text} ${countOf(ids.length, 'dead job')}${of === '' ? '' : ` ${of}`}?`,
    text: effect,
    verb: text,
    isDangerous: verb === 'delete',
    act: () => post<Changed>(at`queues/${queue}/morgue/${verb}`, { ids }),
    done: tell(verb, done),
  })
}

/** `count`: how many there are now. */
export function askForAllDead(verb: MorgueVerb, count: number, { queue, done }: MorgueAsking): void {
  const { text, effect } = words[verb]
  askToConfirm({
    title: `${text} all dead jobs of ${queue}?`,
    text: `${countOf(count, 'job')} at this moment, whatever is listed here. ${effect}`,
    verb: `${text} all`,
    isDangerous: verb === 'delete',
    typed: queue,
    act: () => post<Changed>(at`queues/${queue}/morgue/${verb}`, { all: true, confirm: queue }),
    done: tell(verb, done),
  })
}

/** All dead jobs that match the filter of the list. */
export function askForMatchingDead(verb: MorgueVerb, filter: ShownFilter, { queue, done }: MorgueAsking): void {
  const { text, effect } = words[verb]
  askForMatches({
    ...{ queue, filter, takes: ['dead'], state: 'dead', path: `morgue/${verb}`, verb: text, effect, states: 'dead' },
    isDangerous: verb === 'delete',
    done: tell(verb, done),
  })
}

function tell(verb: MorgueVerb, done: () => unknown): (changed: number) => void {
  return (changed) => {
    if (changed === 0) say('Nothing was changed: none of them is in the morgue any more.', 'failed')
    else say(`${countOf(changed, 'job')} ${words[verb].told}.`)
    void done()
  }
}
