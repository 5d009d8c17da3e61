/**
 * The throttles page: every throttle, the queues that share it, how full its windows are, and when the next job may
 * start.
 */

import { useState } from 'preact/hooks'
import type { ListPage, QueueHolds, Throttle, WaitingGroup } from '../api/answers.js'
import { get, mayChange } from '../api/api-client.js'
import { at, queryText } from '../api/api-path.js'
import { Meter } from '../parts/fill-meter.js'
import { SearchField } from '../parts/form-field.js'
import { Name } from '../parts/name-text.js'
import { PageHead, Section } from '../parts/page-head.js'
import { Button } from '../parts/press-button.js'
import { Badge } from '../parts/state-badge.js'
import { TableNotice } from '../parts/table-notice.js'
import { ThrottleDialog } from '../parts/throttle-dialog.js'
import { query, setQuery } from '../state/page-address.js'
import { useResource } from '../state/resource.js'
import { countOf, countWords } from '../words/count-words.js'
import { durationWords } from '../words/duration-words.js'
import { HoldTable } from './queue/hold-table.js'

/** A queue that is held, or has held or paused groups. */
type HeldQueue = QueueHolds & { readonly queue: string }

/** Windows fill and empty all the time. */
const everyMs = 1_000
/** Each group is a call of the store. */
const waitingEveryMs = 5_000

const fits = ({ scope, queues }: Throttle, text: string) =>
  [scope, ...queues].some((name) => name.toLowerCase().includes(text.toLowerCase()))

export function ThrottlesPage() {
  const list = useResource((signal) => get<ListPage<Throttle>>('throttles', { signal }), [], { everyMs })
  const throttles = list.data.value?.items
  const held = useResource((signal) => get<ListPage<HeldQueue>>('holds', { signal }), [], { everyMs })
  const text = query.value.get('q') ?? ''
  const shown = throttles?.filter((throttle) => fits(throttle, text))
  return (
    <>
      <PageHead title="Throttles" />
      <div class="mb-4">
        <SearchField label="Filter throttles" placeholder="Scope or queue  /" />
      </div>
      {list.error.value && (
        <div class="panel mb-4">
          <TableNotice error={list.error.value} onRetry={() => void list.refresh()} />
        </div>
      )}
      <div class="grid items-start gap-4 xl:grid-cols-2" aria-busy={throttles === undefined}>
        {throttles === undefined && list.error.value === undefined && <div class="waiting h-44" />}
        {shown?.map((throttle) => (
          <ThrottlePanel key={throttle.scope} throttle={throttle} onChanged={() => void list.refresh()} />
        ))}
      </div>
      {held.error.value && (
        <Section title="Held queues">
          <div class="panel">
            <TableNotice error={held.error.value} onRetry={() => void held.refresh()} />
          </div>
        </Section>
      )}
      {held.data.value?.items
        .filter(({ queue }) => queue.toLowerCase().includes(text.toLowerCase()))
        .map((one) => (
          <Section key={one.queue} title={`Held in ${one.queue}`}>
            <HoldTable queue={one.queue} holds={one} refresh={() => void held.refresh()} />
          </Section>
        ))}
      {shown?.length === 0 && (
        <div class="panel">
          <TableNotice>{text === '' ? <NoThrottles /> : <p>No throttle fits the filter.</p>}</TableNotice>
        </div>
      )}
    </>
  )
}

function NoThrottles() {
  return (
    <>
      <p class="font-medium text-ink">No queue has a throttle.</p>
      <p>
        A throttle bounds how many jobs start in any window of time:{' '}
        <code class="font-mono">{"throttle: { limit: 10, window: '1m' }"}</code>
      </p>
    </>
  )
}

interface PanelProps {
  readonly throttle: Throttle
  readonly onChanged: () => void
}

/** One throttle with its windows, the queues that share it, and a look at one of its groups. */
function ThrottlePanel({ throttle, onChanged }: PanelProps) {
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

/** A window that is full, or whose starts are evenly spaced, shows the wait of the throttle. */
function ThrottleWindows({ rules, hits, forMs }: Pick<Throttle, 'rules' | 'hits' | 'forMs'>) {
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
  return elasticBuffer === undefined ? 'Evenly spaced' : `Evenly spaced, catches up, buffer ${elasticBuffer}`
}

/** The address says which scope and which of its groups are shown: `scope=feeds&group=partner`. */
function GroupLook({ throttle: { scope, rules, queues } }: { readonly throttle: Throttle }) {
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
      {queues.slice(0, mostQueues).map((queue) => (
        <WaitingGroupList key={queue} queue={queue} scope={scope} isOfMany={queues.length > 1} />
      ))}
    </>
  )
}

/** Of those that share a throttle. */
const mostQueues = 3

interface WaitingProps {
  readonly queue: string
  readonly scope: string
  readonly isOfMany: boolean
}

/** The groups whose jobs wait, the longest wait first. */
function WaitingGroupList({ queue, scope, isOfMany }: WaitingProps) {
  const look = useResource<ListPage<WaitingGroup> & { readonly more: boolean }>(
    (signal) => get(at`queues/${queue}/throttle/groups`, { signal }),
    [queue],
    { everyMs: waitingEveryMs },
  )
  const { items = [], more = false } = look.data.value ?? {}
  if (items.length === 0) return null
  return (
    <section class="mt-4" aria-label={`Groups that wait in ${queue}`}>
      <h3 class="font-medium">
        Groups with ready jobs
        {isOfMany && (
          <>
            {' '}
            in <Name text={queue} most={24} />
          </>
        )}
      </h3>
      <ul class="mt-1 divide-y divide-line text-sm">
        {items.map(({ group, ready, forMs, rules, hits }) => (
          <li key={group} class="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 py-1.5">
            <a class="link min-w-0" href={`throttles${queryText({ scope, group })}`}>
              {group === '' ? 'without a group' : <Name text={group} most={32} />}
            </a>
            <NextStart forMs={forMs} />
            <span class="text-muted">
              {rules
                .map(({ limit, windowMs }, i) => `${hits[i] ?? 0} of ${limit} in ${durationWords(windowMs)}`)
                .join(', ')}
            </span>
            <span class="text-end text-muted">{countWords(ready)} ready</span>
          </li>
        ))}
      </ul>
      {more && <p class="mt-1 text-xs text-muted">Of the first 200 ready jobs, at most 20 groups.</p>}
    </section>
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
