/** The match acts: actions on all jobs that match the filter of a list, confirmed with their number, in steps. */

import type { Changed, JobState } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { askToConfirm } from '../../state/asked-action.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'
import { filterBody, filterQuery, type ShownFilter } from './list-filters.js'

interface MatchCount {
  readonly count: number
  readonly more: boolean
  readonly cursor?: string
}

/** Each counts for about 2 s; a state without jobs takes a moment. */
const mostCounts = 8

interface MatchProps {
  readonly queue: string
  readonly filter: ShownFilter
  /** The states of the jobs on which the action acts, as far as the list shows them. */
  readonly takes: readonly JobState[]
}

/** How many jobs match, state by state. Of very many it says a number that they exceed. */
function Matches({ queue, filter, takes }: MatchProps) {
  const { data, error } = useResource<Omit<MatchCount, 'cursor'>>(async (signal) => {
    let count = 0
    let [state, ...left] = takes
    let cursor: string | undefined
    for (let i = 0; i < mostCounts && state !== undefined; i += 1) {
      const query = { ...filterQuery(filter), state, cursor }
      const next = await get<MatchCount>(at`queues/${queue}/count`, { query, signal })
      count += next.count
      cursor = next.cursor
      if (!next.more) [state, ...left] = left
    }
    return { count, more: state !== undefined }
  }, [])
  const found = data.value
  if (found === undefined)
    return <>{error.value === undefined ? 'They are being counted …' : 'They cannot be counted.'}</>
  return (
    <>
      {found.more && 'More than '}
      {countOf(found.count, 'job')} at this moment.
    </>
  )
}

interface MatchAct extends MatchProps {
  /** The end of the address: `jobs/cancel`. */
  readonly path: string
  readonly verb: string
  readonly effect: string
  /** The states of the jobs on which it acts, in words. */
  readonly states: string
  /** Only jobs in this state. Default: all. */
  readonly state?: JobState | undefined
  readonly isDangerous: boolean
  readonly done: (changed: number) => void
}

/** Asks before an action on all jobs of a queue that match the filter, whatever the list shows of them. */
export function askForMatches(asked: MatchAct): void {
  const { queue, filter, takes, state, path, verb, effect, states, isDangerous, done } = asked
  let cursor: string | undefined
  askToConfirm({
    title: `${verb} all that match?`,
    text: (
      <>
        All jobs of the queue {queue} that match the filter of this list and are {states}, on all its pages.{' '}
        <Matches queue={queue} filter={filter} takes={takes} /> {effect}
      </>
    ),
    verb,
    isDangerous,
    typed: queue,
    act: async () => {
      const where = { ...filterBody(filter), ...(state && { state }) }
      const body = { where, confirm: queue, ...(cursor !== undefined && { cursor }) }
      const step = await post<Changed & { readonly cursor?: string }>(`${at`queues/${queue}`}/${path}`, body)
      cursor = step.cursor
      return step
    },
    done,
  })
}
