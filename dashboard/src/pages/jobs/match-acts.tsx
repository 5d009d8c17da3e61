/** The match acts: actions on all jobs that match the filter of a list, confirmed with their number, in steps. */

import type { Changed } from '../../api/answers.js'
import { get, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { askToConfirm } from '../../state/asked-action.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'

interface MatchCount {
  readonly count: number
  readonly more: boolean
  readonly cursor?: string
}

/** Each counts for about 2 s. */
const mostCounts = 5

interface MatchProps {
  readonly queue: string
  readonly where: Readonly<Record<string, string>>
}

/** How many jobs match. Of very many it says a number that they exceed. */
function Matches({ queue, where }: MatchProps) {
  const { data, error } = useResource<MatchCount>(async (signal) => {
    let found: MatchCount = { count: 0, more: true }
    for (let i = 0; i < mostCounts && found.more; i += 1) {
      const { cursor } = found
      const next = await get<MatchCount>(at`queues/${queue}/count`, { query: { ...where, cursor }, signal })
      found = { ...next, count: found.count + next.count }
    }
    return found
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
  /** The states of the jobs on which it acts. */
  readonly state: string
  readonly isDangerous: boolean
  readonly done: (changed: number) => void
}

/** Asks before an action on all jobs of a queue that match `where`, whatever the list shows of them. */
export function askForMatches({ queue, where, path, verb, effect, state, isDangerous, done }: MatchAct): void {
  let cursor: string | undefined
  askToConfirm({
    title: `${verb} all that match?`,
    text: (
      <>
        All jobs of the queue {queue} that match the filter of this list and are {state}, on all its pages.{' '}
        <Matches queue={queue} where={where} /> {effect}
      </>
    ),
    verb,
    isDangerous,
    typed: queue,
    act: async () => {
      const body = { where, confirm: queue, ...(cursor !== undefined && { cursor }) }
      const step = await post<Changed & { readonly cursor?: string }>(`${at`queues/${queue}`}/${path}`, body)
      cursor = step.cursor
      return step
    },
    done,
  })
}
