/** The join panel: what a job waits for, set by set, and the jobs that wait for it. */

import type { JoinProgress, JoinSet } from '../../api/answers.js'
import { jobAddress } from '../../api/api-path.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Panel } from '../../parts/page-head.js'
import { countWords } from '../../words/count-words.js'
import type { JobDetail } from './job-detail.js'

/** What the end of a member means that does not complete. */
const onDeadWords: Readonly<Record<JoinSet['onDead'], string>> = {
  fail: 'If one does not complete, this job is dead.',
  'go-on': 'Every end counts, however a member ends.',
  hold: 'It waits until a dead one is revived and completes.',
}

export function JoinPanel({ job: { join, joins = [], state, awaits } }: { readonly job: JobDetail }) {
  return (
    <>
      {join !== undefined && <WaitsFor join={join} isWaiting={state === 'waiting' && awaits === undefined} />}
      {joins.length > 0 && (
        <Panel title="Waited for by">
          {joins.map(({ queue, id, set }) => (
            <div key={`${queue}/${id}/${set}`} class="flex min-w-0 flex-wrap items-center gap-x-2 text-sm">
              <a class="link min-w-0" href={jobAddress({ queue, id })}>
                <Name text={id} most={28} isId />
              </a>
              <span class="text-muted">
                in <Name text={queue} />, as one of <Name text={set} />
              </span>
            </div>
          ))}
        </Panel>
      )}
    </>
  )
}

function WaitsFor({
  join: { sets, waitsUntil },
  isWaiting,
}: {
  readonly join: JoinProgress
  readonly isWaiting: boolean
}) {
  if (sets.length === 0)
    return (
      <Panel title="Waited for">
        <p class="text-sm text-muted">Other jobs. It has ended, so these are no longer listed.</p>
      </Panel>
    )
  return (
    <Panel title={isWaiting ? 'Waits for' : 'Waited for'}>
      <div class="grid gap-4">
        {sets.map((set) => (
          <SetProgress key={set.name} set={set} isWaiting={isWaiting} />
        ))}
      </div>
      {waitsUntil !== undefined && (
        <p class="text-sm text-muted">
          It is dead if it still waits: <Moment at={waitsUntil} />
        </p>
      )}
    </Panel>
  )
}

function SetProgress({ set, isWaiting }: { readonly set: JoinSet; readonly isWaiting: boolean }) {
  const { name, queue, done, added, size, counts, onDead, oldest } = set
  const of = size ?? added
  const share = of === 0 ? 1 : done / of
  const others = (['dead', 'cancelled', 'expired'] as const).filter((fate) => counts[fate] > 0)
  return (
    <div class="grid gap-1 text-sm">
      <div class="flex justify-between gap-3">
        <span class="min-w-0 wrap-anywhere">
          <Name text={name} /> <span class="text-muted">in</span> <Name text={queue} />
        </span>
        <span class="font-medium whitespace-nowrap">
          {countWords(done)} of {countWords(of)}
          {size === undefined && ' so far'}
        </span>
      </div>
      <div
        role="progressbar"
        aria-label={`Members of ${name} that have ended`}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        class="h-2 overflow-hidden rounded-full bg-sunk ring-1 ring-line ring-inset"
      >
        <div
          class={`meter-fill h-full origin-left transition-transform ${isWaiting ? 'bg-accent' : 'bg-edge'}`}
          style={{ transform: `scaleX(${share})` }}
        />
      </div>
      {others.length > 0 && (
        <span class="text-muted">{others.map((fate) => `${countWords(counts[fate])} ${fate}`).join(', ')}</span>
      )}
      {isWaiting && oldest !== undefined && (
        <span class="text-muted">
          The oldest that it waits for:{' '}
          <a class="link" href={jobAddress({ queue, id: oldest })}>
            <Name text={oldest} most={28} isId />
          </a>
        </span>
      )}
      {isWaiting && <span class="text-xs text-muted">{onDeadWords[onDead]}</span>}
    </div>
  )
}
