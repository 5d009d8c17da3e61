/** The throttle panel: one throttle with its windows, the queues that share it, and a look at one of its groups. */

import { useState } from 'preact/hooks'
import type { Throttle } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { mayChange } from '../../api/session-state.js'
import { Name } from '../../parts/name-text.js'
import { Button } from '../../parts/press-button.js'
import { Badge } from '../../parts/state-badge.js'
import { ThrottleDialog } from '../../parts/throttle-dialog.js'
import { countOf } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { GroupLook } from './group-look.js'
import { ThrottleWindows } from './throttle-windows.js'

interface PanelProps {
  readonly throttle: Throttle
  readonly onChanged: () => void
}

export function ThrottlePanel({ throttle, onChanged }: PanelProps) {
  const [isChanging, setChanging] = useState(false)
  const { scope, by, queues, groups } = throttle
  return (
    <section class="panel p-4" aria-label={`Throttle ${scope}`}>
      <div class="flex min-h-8 flex-wrap items-center gap-2">
        <h2 class="text-lg font-semibold tracking-tight">
          <Name text={scope} most={32} />
        </h2>
        {by === 'group' ? (
          <Badge hint="Each group of jobs has the limit for itself">{countOf(groups ?? 0, 'group')}</Badge>
        ) : (
          <NextStart forMs={throttle.forMs} />
        )}
        {mayChange.value && (
          <div class="ms-auto">
            <Button onPress={() => setChanging(true)}>Change the limits</Button>
          </div>
        )}
      </div>
      <p class="mb-3 text-sm text-muted">
        {by === 'group' ? 'For each group by itself, in ' : 'For all jobs of '}
        {queues.map((queue, i) => (
          <span key={queue}>
            {i > 0 && ', '}
            <a class="link" href={at`queues/${queue}`}>
              <Name text={queue} />
            </a>
          </span>
        ))}
        {queues.length > 1 && ' together'}
      </p>
      {by === 'queue' && <ThrottleWindows {...throttle} />}
      {(by === 'group' || throttle.eachGroup) && <GroupLook throttle={throttle} />}
      {isChanging && (
        <ThrottleDialog
          queue={queues[0] ?? scope}
          queues={queues}
          rules={throttle.rules}
          onClose={() => setChanging(false)}
          onDone={onChanged}
        />
      )}
    </section>
  )
}

function NextStart({ forMs }: { readonly forMs: number }) {
  if (forMs <= 0)
    return (
      <Badge tone="good" sign="●">
        open
      </Badge>
    )
  return (
    <Badge tone="warn" sign="◷" hint="When the next job may start">
      next in {durationWords(forMs)}
    </Badge>
  )
}
