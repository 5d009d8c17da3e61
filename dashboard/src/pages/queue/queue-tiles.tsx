/** The queue tiles: its counts, each with a link to the counted jobs. */

import type { QueueDetail } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { Stat, Stats } from '../../parts/stat-tile.js'
import { countOf, countWords } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'

interface TilesProps {
  readonly name: string
  /** Undefined: not known yet. */
  readonly queue: QueueDetail | undefined
}

export function QueueTiles({ name, queue }: TilesProps) {
  const jobs = (state: string) => `${at`queues/${name}/jobs`}?state=${state}`
  const count = (key: 'ready' | 'scheduled' | 'running' | 'dead' | 'processed' | 'failed') =>
    queue && countWords(queue[key])
  const isOrdered = queue?.kind === 'ordered'
  return (
    <Stats>
      <Stat label="Ready" value={count('ready')} href={jobs('ready')} note={queue && readyNote(queue)} />
      <Stat label="Scheduled" value={count('scheduled')} href={jobs('scheduled')} note="due later" />
      <Stat label="Running" value={count('running')} href={jobs('running')} note={queue && boundNote(queue)} />
      <Stat
        label="Dead"
        value={count('dead')}
        href={at`queues/${name}/morgue`}
        note="in the morgue"
        tone={queue && queue.dead > 0 ? 'bad' : 'ink'}
      />
      <Stat
        label="Lag"
        value={queue && durationWords(queue.lagMs)}
        note="of the oldest due job"
        tone={queue && queue.lagMs >= 60_000 ? 'warn' : 'ink'}
      />
      {isOrdered && <Stat label="Payloads" value={queue && countWords(queue.payloads)} note="that wait" />}
      <Stat label="Processed" value={count('processed')} note="since it exists" />
      <Stat label="Failures" value={count('failed')} note={queue && endNote(queue)} />
    </Stats>
  )
}

function readyNote({ suspects, retries }: QueueDetail): string {
  if (suspects > 0) return countOf(suspects, 'suspect')
  return `${countWords(retries)} after a failure`
}

function boundNote({ maxRunning }: QueueDetail): string {
  if (maxRunning === undefined) return 'without a bound'
  return typeof maxRunning === 'number'
    ? `of at most ${countWords(maxRunning)}`
    : `${maxRunning.perGroup} of each group`
}

function endNote({ crashed, expired }: QueueDetail): string {
  return `${countWords(crashed)} crashed, ${countWords(expired)} expired`
}
