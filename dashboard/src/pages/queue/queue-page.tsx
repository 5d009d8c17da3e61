/** The queue page: one queue with its counts, charts, limits, workers and settings. */

import type { QueueDetail } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import { mayChange, session } from '../../api/session-state.js'
import { PageHead } from '../../frame/page-head.js'
import { CopyButton, Name } from '../../parts/name-text.js'
import { QueueBadges } from '../../parts/state-badge.js'
import { TableNotice } from '../../parts/table-notice.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'
import { LiveFeed } from './live-feed.js'
import { QueueActions } from './queue-actions.js'
import { QueueCharts } from './queue-charts.js'
import { QueueLimits } from './queue-limits.js'
import { QueueSettings } from './queue-settings.js'
import { QueueTiles } from './queue-tiles.js'
import { QueueWorkers } from './queue-workers.js'

const everyMs = 2_000

export function QueuePage({ queue: name }: { readonly queue: string }) {
  const detail = useResource<QueueDetail>((signal) => get(at`queues/${name}`, { signal }), [name], { everyMs })
  const queue = detail.data.value
  const error = detail.error.value
  const features = session.value?.features
  if (error instanceof ApiError && error.status === 404)
    return (
      <>
        <PageHead title={name} crumbs={crumbs} />
        <div class="panel">
          <TableNotice>
            <p>There is no queue of that name. It may have been removed from the configuration.</p>
            <a class="link" href="./">
              All queues
            </a>
          </TableNotice>
        </div>
      </>
    )
  return (
    <>
      <PageHead
        title={name}
        crumbs={crumbs}
        badges={queue && <QueueBadges queue={queue} />}
        actions={
          mayChange.value && (
            <div class="flex min-h-8 flex-wrap gap-2">
              {queue && <QueueActions queue={queue} refresh={() => void detail.refresh()} />}
            </div>
          )
        }
      >
        <span class="inline-flex items-center gap-1">
          <Name text={name} most={80} />
          <CopyButton text={name} what={name} />
        </span>
      </PageHead>
      {error !== undefined && (
        <p role="alert" class="mb-3 text-bad">
          {error.message}
        </p>
      )}
      {queue?.damaged !== undefined && (
        <p role="alert" class="mb-3 rounded-md bg-bad-wash p-3 wrap-anywhere text-bad">
          {queue.damaged}
        </p>
      )}
      <QueueTiles name={name} queue={queue} />
      {features?.history && <QueueCharts name={name} queue={queue} />}
      {queue && (
        <>
          {queue.suspects > 0 && <Suspects name={name} count={queue.suspects} />}
          <QueueLimits queue={queue} refresh={() => void detail.refresh()} />
          {features?.workers && <QueueWorkers workers={queue.workers} />}
          {features?.live && <LiveFeed queue={name} />}
          <QueueSettings settings={queue.settings} />
        </>
      )}
    </>
  )
}

const crumbs = [{ text: 'Overview', href: './' }]

function Suspects({ name, count }: { readonly name: string; readonly count: number }) {
  return (
    <p class="mt-6 rounded-md bg-warn-wash p-3 text-warn">
      {countOf(count, 'job')} lost a worker process while running. Each waits to run in a process of its own, so that no
      other job dies with it.{' '}
      <a class="underline" href={`${at`queues/${name}/jobs`}?state=ready`}>
        Show what waits
      </a>
    </p>
  )
}
