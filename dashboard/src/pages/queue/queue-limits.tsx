/** The queue limits: how full its throttle and its `maxRunning` are, and how far behind each of its shards is. */

import type { QueueDetail } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { Meter } from '../../parts/fill-meter.js'
import { Name } from '../../parts/name-text.js'
import { Section } from '../../parts/page-head.js'
import { countOf } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { HoldTable } from './hold-table.js'

/** With more shards, only those with the longest lag are shown. */
const mostShards = 24

export function QueueLimits({ queue, refresh }: { readonly queue: QueueDetail; readonly refresh: () => void }) {
  const { throttle, holds, maxRunning, running, shardLagsMs } = queue
  const hasBound = typeof maxRunning === 'number'
  if (!throttle && !holds && !hasBound && (shardLagsMs?.length ?? 0) < 2) return null
  return (
    <Section title="Limits">
      <div class="grid gap-3 lg:grid-cols-2">
        {(throttle !== undefined || hasBound) && (
          <div class="panel grid content-start gap-4 p-3.5">
            {hasBound && <Meter label="Running at once" hits={running} limit={maxRunning} />}
            {throttle && <ThrottleMeters throttle={throttle} name={queue.name} />}
          </div>
        )}
        {holds && <HoldTable queue={queue.name} holds={holds} refresh={refresh} />}
        {shardLagsMs && shardLagsMs.length > 1 && <ShardLags lags={shardLagsMs} />}
      </div>
    </Section>
  )
}

function ThrottleMeters({
  throttle: { rules, hits, by, groups, forMs, quietForMs, queues },
  name,
}: {
  readonly throttle: NonNullable<QueueDetail['throttle']>
  readonly name: string
}) {
  const others = queues.filter((one) => one !== name)
  return (
    <>
      {by === 'queue' ? (
        rules.map(({ limit, windowMs, moderate }, i) => (
          <Meter
            key={windowMs}
            label={moderate ? 'Starts, evenly spaced' : 'Starts'}
            hits={hits[i] ?? 0}
            limit={limit}
            windowMs={windowMs}
            nextMs={forMs}
          />
        ))
      ) : (
        <p>
          Each group starts at most{' '}
          {rules.map(({ limit, windowMs }) => `${limit} in ${durationWords(windowMs)}`).join(', and ')}.
          {groups !== undefined && <span class="text-muted"> {countOf(groups, 'group')} counted now.</span>}
        </p>
      )}
      {quietForMs > 0 && (
        <p class="text-warn">
          Nothing starts for {durationWords(quietForMs)}: the store may have forgotten earlier starts.
        </p>
      )}
      {others.length > 0 && (
        <p class="text-sm text-muted">
          Shared with{' '}
          {others.slice(0, 10).map((one, i) => (
            <span key={one}>
              {i > 0 && ', '}
              <a class="link" href={at`queues/${one}`}>
                <Name text={one} />
              </a>
            </span>
          ))}
          {others.length > 10 && ` and ${others.length - 10} more`}
        </p>
      )}
    </>
  )
}

function ShardLags({ lags }: { readonly lags: readonly number[] }) {
  const longest = Math.max(1, ...lags)
  const all = lags.map((lag, shard) => ({ lag, shard }))
  const shown = all.length > mostShards ? all.toSorted((a, b) => b.lag - a.lag).slice(0, mostShards) : all
  return (
    <div class="panel p-3.5">
      <h3 class="font-medium">Lag by shard</h3>
      <ul class="mt-2 grid gap-1 text-sm">
        {shown.map(({ lag, shard }) => (
          <li key={shard} class="grid grid-cols-[4.5rem_1fr_5.5rem] items-center gap-2">
            <span class="text-muted">shard {shard}</span>
            <span class="h-1.5 overflow-hidden rounded-full bg-sunk" aria-hidden="true">
              <span
                class="block h-full origin-left bg-accent motion-safe:transition-transform"
                style={{ transform: `scaleX(${lag / longest})` }}
              />
            </span>
            <span class="text-end">{durationWords(lag)}</span>
          </li>
        ))}
      </ul>
      {all.length > shown.length && (
        <p class="mt-1 text-xs text-muted">
          The {shown.length} that are furthest behind, of {all.length}.
        </p>
      )}
    </div>
  )
}
