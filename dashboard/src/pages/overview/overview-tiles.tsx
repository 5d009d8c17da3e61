/** The overview tiles: the sums over all queues, and the workers. */

import type { Overview, Spark } from '../../api/answers.js'
import { session } from '../../api/session-state.js'
import { Stat, Stats } from '../../parts/stat-tile.js'
import { countOf, countWords } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { perMinute } from './queue-filter.js'

export function OverviewTiles({ overview }: { readonly overview: Overview | undefined }) {
  const totals = overview?.totals
  const workers = overview?.workers
  const rate = (key: keyof Spark) =>
    overview && countWords(overview.queues.reduce((sum, { spark }) => sum + (perMinute(spark[key]) ?? 0), 0))
  const hasHistory = session.value?.features.history
  return (
    <Stats>
      <Stat
        label="Ready"
        value={totals && countWords(totals.ready)}
        note={totals && `${countWords(totals.retries)} after a failure`}
      />
      <Stat label="Scheduled" value={totals && countWords(totals.scheduled)} note="due later" />
      <Stat
        label="Running"
        value={totals && countWords(totals.running)}
        note={workers ? `of ${countOf(workers.slots, 'slot')}` : ''}
      />
      <Stat
        label="Dead"
        value={totals && countWords(totals.dead)}
        note="in the morgue"
        href="morgue"
        tone={totals && totals.dead > 0 ? 'bad' : 'ink'}
      />
      <Stat
        label="Longest lag"
        value={totals && durationWords(totals.lagMs)}
        note="of the oldest due job"
        tone={totals && totals.lagMs >= 60_000 ? 'warn' : 'ink'}
      />
      {hasHistory && <Stat label="In" value={rate('enqueued')} note="in the last minute" />}
      {hasHistory && <Stat label="Done" value={rate('done')} note={overview ? `${rate('failed')} failed` : ''} />}
      {workers !== null && (
        <Stat
          label="Workers"
          value={workers && countWords(workers.count)}
          note={workers && workersNote(workers)}
          href="workers"
          tone={workers?.count === 0 ? 'warn' : 'ink'}
        />
      )}
    </Stats>
  )
}

function workersNote({ count, running, silent }: NonNullable<Overview['workers']>): string {
  if (silent > 0) return `${silent} silent`
  return count === 0 ? 'nobody works' : `${running} in hand`
}
