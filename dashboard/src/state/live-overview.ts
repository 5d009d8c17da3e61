/** The live overview: all queues as they stand, read once for whatever shows them; a row that has not changed stays the same. */

import { computed, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import type { Overview, QueueRow } from '../api/answers.js'
import { get } from '../api/api-client.js'
import { openStream } from '../api/live-stream.js'
import { resource } from './resource.js'

const rowTexts = new Map<string, { readonly text: string; readonly row: QueueRow }>()

/** The same object as before, where nothing in it has changed, so that nothing is drawn anew for it. */
function keptRow(row: QueueRow): QueueRow {
  const text = JSON.stringify(row)
  const known = rowTexts.get(row.name)
  if (known?.text === text) return known.row
  rowTexts.set(row.name, { text, row })
  return row
}

function kept(overview: Overview): Overview {
  return { ...overview, queues: overview.queues.map(keptRow) }
}

export const overview = resource<Overview>(async (signal) => kept(await get<Overview>('overview', { signal })))

/** Why the store cannot be read now; undefined where it can. */
export const storeFailure = signal<string | undefined>(undefined)

export const queueNames = computed(() => overview.data.value?.queues.map(({ name }) => name) ?? [])

/** Keeps the overview live as long as the component is there. Only where the stream does not come it is asked for, to tell why. */
export function useLiveOverview(): void {
  useLayoutEffect(() => {
    return openStream('events', {
      onLost: () => void overview.refresh(),
      on: {
        overview: (data: Overview) => {
          storeFailure.value = undefined
          overview.set(kept(data))
        },
        failure: ({ message }: { readonly message: string }) => {
          storeFailure.value = message
        },
      },
    })
  }, [])
}
