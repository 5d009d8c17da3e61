/** The hold table: what keeps a queue, or groups of it, from starting jobs, each with a button that ends it. */

import type { QueueHold, QueueHolds } from '../../api/answers.js'
import { mayChange, post } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Name } from '../../parts/name-text.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import { durationWords } from '../../words/duration-words.js'

interface HoldTableProps {
  readonly queue: string
  readonly holds: QueueHolds
  readonly refresh: () => void
}

export function HoldTable({ queue, holds: { holds, total }, refresh }: HoldTableProps) {
  return (
    <div class="panel p-3.5">
      <h3 class="font-medium">Held</h3>
      <ul class="mt-2 grid gap-1.5 text-sm">
        {holds.map((hold) => (
          <li key={`${hold.until === undefined} ${hold.group}`} class="flex flex-wrap items-center gap-2">
            {hold.group === undefined ? <span>the whole queue</span> : <Name text={hold.group} canCopy />}
            <span class="text-muted">
              {hold.forMs === undefined ? 'paused until it is resumed' : `for ${durationWords(hold.forMs)}`}
            </span>
            {mayChange.value && (
              <span class="ms-auto">
                <Button onPress={() => end(queue, hold, refresh)}>
                  {hold.forMs === undefined ? 'Resume' : 'Release'}
                </Button>
              </span>
            )}
          </li>
        ))}
      </ul>
      {total > holds.length && <p class="mt-1 text-xs text-muted">And {total - holds.length} more.</p>}
    </div>
  )
}

/** A hold of the whole queue can only be ended with those of its groups. */
async function end(queue: string, { group, forMs }: QueueHold, refresh: () => void): Promise<void> {
  const body = group === undefined ? {} : { group }
  if (forMs === undefined) await post(at`queues/${queue}/resume`, body)
  else await post(at`queues/${queue}/release`, body)
  say(forMs === undefined ? 'The group starts jobs again.' : 'The hold is over.')
  refresh()
}
