/** The throttle windows: how full each window of a queue, or of one of its groups, is. */

import type { Throttle } from '../../api/answers.js'
import { Meter } from '../../parts/fill-meter.js'

/** A window that is full, or whose starts are evenly spaced, shows the wait of the throttle. */
export function ThrottleWindows({ rules, hits, forMs }: Pick<Throttle, 'rules' | 'hits' | 'forMs'>) {
  return (
    <div class="grid gap-3">
      {rules.map(({ limit, windowMs, moderate, elasticBuffer }, i) => {
        const started = hits[i] ?? 0
        return (
          <Meter
            key={windowMs}
            label={tempoWords(moderate, elasticBuffer)}
            hits={started}
            limit={limit}
            windowMs={windowMs}
            nextMs={moderate || started >= limit ? forMs : 0}
          />
        )
      })}
    </div>
  )
}

function tempoWords(isModerate: boolean, elasticBuffer: number | undefined): string {
  if (!isModerate) return 'As they come'
  return elasticBuffer === undefined ? 'Evenly spaced' : `Evenly spaced, catches up beyond ${elasticBuffer}`
}
