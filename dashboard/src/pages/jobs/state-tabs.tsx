/** The state tabs: the states of jobs with their counts; the list shows one of them. */

import type { JobState, QueueCounts } from '../../api/answers.js'
import { CountText } from '../../parts/moment-text.js'
import { filterList } from '../../state/cursor-pages.js'

/** In the order of a job's life; the queue keeps no count of ended jobs. */
export const listedStates = ['all', 'scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'] as const

export type ListedState = (typeof listedStates)[number]

interface TabsProps {
  readonly listed: ListedState
  readonly counts: QueueCounts | undefined
}

export function StateTabs({ listed, counts }: TabsProps) {
  return (
    <fieldset class="flex flex-wrap gap-1" aria-label="State">
      {listedStates.map((state) => (
        <button
          key={state}
          type="button"
          aria-pressed={state === listed}
          class="flex min-h-8 items-center gap-1.5 rounded-md px-2.5 text-muted hover:bg-sunk hover:text-ink aria-pressed:bg-wash aria-pressed:font-medium aria-pressed:text-accent"
          onClick={() => filterList({ state: state === 'all' ? undefined : state })}
        >
          {state}
          {counts !== undefined && isCounted(state) && (
            <span class="text-xs">
              <CountText count={counts[state]} />
            </span>
          )}
        </button>
      ))}
    </fieldset>
  )
}

function isCounted(state: JobState | 'all'): state is 'scheduled' | 'ready' | 'running' | 'dead' {
  return state === 'scheduled' || state === 'ready' || state === 'running' || state === 'dead'
}
