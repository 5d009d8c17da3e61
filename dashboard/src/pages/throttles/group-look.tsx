/** The group look: how full the windows of one group are, for a throttle that counts each group by itself. */

import { useState } from 'preact/hooks'
import type { Throttle } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Button } from '../../parts/press-button.js'
import { TableNotice } from '../../parts/table-notice.js'
import { query, setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { ThrottleWindows } from './throttle-windows.js'

const everyMs = 1_000

/** The address says which scope and which of its groups are shown: `scope=feeds&group=partner`. */
export function GroupLook({ throttle: { scope, rules, queues } }: { readonly throttle: Throttle }) {
  const isOpen = query.value.get('scope') === scope
  const group = isOpen ? (query.value.get('group') ?? '') : ''
  // The throttles are drawn again each second: keep the text that is being typed.
  const [typed, setTyped] = useState(group)
  return (
    <>
      <p class="mb-3">
        {rules.map(({ limit, windowMs }) => `${countOf(limit, 'start')} in ${durationWords(windowMs)}`).join(', ')}
      </p>
      <form
        class="flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery({ scope, group: typed })
        }}
      >
        <label class="grid min-w-0 flex-1 gap-1 text-sm font-medium">
          Look into a group
          <input
            class="field"
            value={typed}
            placeholder="empty: jobs without one"
            autocomplete="off"
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <Button type="submit">Look</Button>
      </form>
      {isOpen && <GroupWindows queue={queues[0] ?? scope} group={group} />}
    </>
  )
}

function GroupWindows({ queue, group }: { readonly queue: string; readonly group: string }) {
  const look = useResource(
    (signal) => get<Throttle | null>(at`queues/${queue}/throttle?group=${group}`, { signal }),
    [queue, group],
    { everyMs },
  )
  const { data, error } = look
  if (error.value) return <TableNotice error={error.value} />
  return <div class="mt-3 min-h-16">{data.value && <ThrottleWindows {...ofGroup(data.value)} />}</div>
}

/** Beside rules for all jobs, those of the group are apart. */
function ofGroup({ rules, hits, eachGroup, groupHits, forMs }: Throttle) {
  return { rules: eachGroup ?? rules, hits: groupHits ?? hits, forMs }
}
