/** The queue tabs: the pages of one queue, on top of each of them. */

import type { QueueCounts } from '../api/answers.js'
import { session } from '../api/api-client.js'
import { at } from '../api/api-path.js'
import { CountText } from '../parts/moment-text.js'

type QueueTab = 'queue' | 'jobs' | 'morgue' | 'events'

interface QueueTabsProps {
  readonly queue: string
  /** The page on which they are. */
  readonly open: QueueTab
  /** The counts of the queue; undefined: not known here, or not yet. */
  readonly counts?: QueueCounts | undefined
}

export function QueueTabs({ queue, open, counts }: QueueTabsProps) {
  const own = at`queues/${queue}`
  const live = counts && counts.ready + counts.scheduled + counts.waiting + counts.running
  const tabs: readonly (readonly [tab: QueueTab, text: string, href: string, count?: number | undefined])[] = [
    ['queue', 'Queue', own],
    ['jobs', 'Jobs', `${own}/jobs`, live],
    ['morgue', 'Morgue', `${own}/morgue`, counts?.dead],
    ...(session.value?.features.live ? ([['events', 'Events', `${own}/events`]] as const) : []),
  ]
  return (
    <nav aria-label="Pages of this queue" class="mb-4 flex flex-wrap gap-1 border-b border-line">
      {tabs.map(([tab, text, href, count]) => (
        <a
          key={tab}
          href={href}
          aria-current={tab === open ? 'page' : undefined}
          class="-mb-px flex min-h-9 items-center gap-1.5 border-b-2 border-transparent px-2.5 text-muted hover:text-ink aria-[current]:border-accent aria-[current]:font-medium aria-[current]:text-accent"
        >
          {text}
          {count !== undefined && (
            <span class="text-xs">
              <CountText count={count} />
            </span>
          )}
        </a>
      ))}
    </nav>
  )
}
