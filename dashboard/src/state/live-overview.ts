/**
 * The live overview: all queues in their present state, read once for all parts of the page; an unchanged row stays the
 * same object.
 */

import { computed } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import type { Overview, QueueRow } from '../api/answers.js'
import { get } from '../api/api-client.js'
import { openStream } from '../api/live-stream.js'
import { resource } from './resource.js'

const rowTexts = new Map<string, { readonly text: string; readonly row: QueueRow }>()

/** The same object as before if nothing in it has changed, so that it is not drawn again. */
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

export const queueNames = computed(() => overview.data.value?.queues.map(({ name }) => name) ?? [])

/** Keeps the overview live while the component exists. If the stream fails, a request finds out why. */
export function useLiveOverview(): void {
  useLayoutEffect(() => {
    return openStream('events', {
      onLost: () => void overview.refresh(),
      on: {
        overview: (data: Overview) => overview.set(kept(data)),
      },
    })
  }, [])
}
