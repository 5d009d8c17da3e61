/**
 * The graph of joins around a job: what it waits for on its left, who waits for it on its right. On a narrow page it is
 * a list.
 */

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { GraphJob, JobState, JoinGraph } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Name } from '../../parts/name-text.js'
import { Badge, StateBadge, signOf, tones } from '../../parts/state-badge.js'
import { useResource } from '../../state/resource.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { hasEnded } from './job-detail.js'
import {
  countsByTask,
  countsOf,
  type GraphBox,
  type GraphLayout,
  type GraphLine,
  layoutOf,
  type StateCounts,
  statesOf,
  stateWord,
} from './join-layout.js'

/** How often it is loaded again while the job has not ended. */
const againMs = 5_000
/** Graphs with more jobs are summed up, too. */
const mostWithoutSum = 12
/** At most this many jobs that wait for a box are named in it. */
const mostNamed = 3

/** Nothing for a job that neither waits for others nor is waited for. */
export function JoinGraphPanel({ name, state }: { readonly name: JobName; readonly state: JobState }) {
  const { data } = useResource<JoinGraph>(
    (signal) => get(jobAddress(name, '/graph'), { signal }),
    [state],
    hasEnded(state) ? {} : { everyMs: againMs },
  )
  const graph = data.value
  // A page without it is whole: an error says nothing that the page does not say itself.
  if (graph === undefined || graph.sets.length === 0) return null
  return <DrawnGraph graph={graph} />
}

function DrawnGraph({ graph }: { readonly graph: JoinGraph }) {
  const layout = useMemo(() => layoutOf(graph), [graph])
  const { jobs, sets, more } = graph
  const counted = sets.some(({ isCounted }) => isCounted)
  const frame = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => showHere(frame.current), [])
  return (
    <section class="panel grid gap-3 p-4" aria-label="Graph of joins">
      <div class="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h2 class="font-semibold">Graph of joins</h2>
        <span class="text-sm text-muted">from what is waited for to who waits</span>
      </div>
      {more && (
        <p class="text-sm text-muted">
          The {countOf(jobs.length, 'job')} nearest to this one are shown. Open another to see what is around it.
        </p>
      )}
      {(more || counted || jobs.length > mostWithoutSum) && <Sums graph={graph} />}
      <div ref={frame} class="graph-frame">
        <div class="graph" style={{ '--w': inText(layout.width), '--h': inText(layout.height) }}>
          <Lines layout={layout} />
          <ol class="grid gap-2">
            {layout.boxes.map((box) => (
              <Box key={boxKey(box, graph)} box={box} graph={graph} />
            ))}
          </ol>
        </div>
      </div>
    </section>
  )
}

/** Scrolls a frame that is smaller than its drawing to the job of the page. */
function showHere(frame: HTMLDivElement | null): void {
  const here = frame?.querySelector('[aria-current]')?.closest('.graph-box')?.getBoundingClientRect()
  if (frame === null || here === undefined) return
  const shown = frame.getBoundingClientRect()
  frame.scrollLeft += (here.left + here.right - shown.left - shown.right) / 2
  frame.scrollTop += (here.top + here.bottom - shown.top - shown.bottom) / 2
}

/** A length of the layout, which grows with the text. */
function inText(length: number): string {
  return `${length / 16}rem`
}

function boxKey({ jobs, set }: GraphBox, graph: JoinGraph): string {
  if (set !== undefined) return `${set.queue}/${set.ids}/set`
  const { queue, id } = graph.jobs[jobs[0]!]!
  return `${queue}/${id}`
}

function Lines({ layout: { boxes, lines, width, height } }: { readonly layout: GraphLayout }) {
  return (
    <svg class="graph-lines" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {lines.map((line) => {
        const { from, to, isOpen } = line
        const { toX, y } = line.way.at(-1)!
        return (
          <g key={`${from} ${to}`} class={isOpen ? 'stroke-accent' : 'stroke-edge'} fill="none" stroke-width="1.5">
            <path d={linePath(boxes[from]!, line)} stroke-dasharray={isOpen ? '4 3' : undefined} />
            <path d={`M${toX - 6} ${y - 4}L${toX - 1} ${y}L${toX - 6} ${y + 4}`} />
          </g>
        )
      })}
    </svg>
  )
}

function linePath(from: GraphBox, { way }: GraphLine): string {
  let [x, y] = [from.x + from.width, from.y + from.height / 2]
  const parts = way.map((next) => {
    const bend = (next.fromX - x) / 2
    const part = `C${x + bend} ${y} ${next.fromX - bend} ${next.y} ${next.fromX} ${next.y}H${next.toX}`
    ;[x, y] = [next.toX, next.y]
    return part
  })
  return `M${from.x + from.width} ${from.y + from.height / 2}${parts.join('')}`
}

/** The jobs by task and state. */
function Sums({ graph }: { readonly graph: JoinGraph }) {
  return (
    <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
      {countsByTask(graph).map(([task, counts]) => (
        <>
          <dt class="min-w-0 wrap-anywhere">{task === undefined ? 'unknown task' : <Name text={task} />}</dt>
          <dd class="text-muted">{countWordsOf(counts)}</dd>
        </>
      ))}
    </dl>
  )
}

function countWordsOf(counts: StateCounts): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${exactCount(count)} ${state}`)
    .join(', ')
}

interface BoxProps {
  readonly box: GraphBox
  readonly graph: JoinGraph
}

function Box({ box, graph }: BoxProps) {
  const { x, y, width, height, jobs, before, set } = box
  const isHere = set === undefined && jobs[0] === 0
  return (
    <li
      class={`graph-box rounded-md border bg-card px-2.5 py-1.5 text-sm ${isHere ? 'border-accent ring-1 ring-accent' : 'border-edge'}`}
      style={{ '--x': inText(x), '--y': inText(y), '--w': inText(width), '--h': inText(height) }}
    >
      {set === undefined ? (
        <SingleJob job={graph.jobs[jobs[0]!]!} isHere={isHere} />
      ) : (
        <ManyJobs box={box} graph={graph} />
      )}
      {before.length > 0 && <p class="graph-before text-xs text-muted">{beforeWords(before, graph)}</p>}
    </li>
  )
}

/** The lines in words, for a narrow page, and for those who do not see them. */
function beforeWords(before: readonly number[], { jobs }: JoinGraph): string {
  const named = before.slice(0, mostNamed).map((place) => shortText(safeText(jobs[place]!.id), 28))
  const others = before.length - named.length
  return `waited for by ${named.join(', ')}${others > 0 ? ` and ${others} more` : ''}`
}

function SingleJob({ job, isHere }: { readonly job: GraphJob; readonly isHere: boolean }) {
  return (
    <>
      <JobLink job={job} isHere={isHere} most={24} />
      <div class="mt-1 flex min-w-0 items-center justify-between gap-2">
        <span class="min-w-0 truncate text-xs text-muted">
          {job.task === undefined ? 'unknown task' : <Name text={job.task} most={22} />}
        </span>
        <StateOf job={job} />
      </div>
    </>
  )
}

function JobLink({
  job: { queue, id },
  isHere,
  most,
}: {
  readonly job: GraphJob
  readonly isHere: boolean
  readonly most: number
}) {
  return (
    <a class="link block min-w-0 truncate" href={jobAddress({ queue, id })} aria-current={isHere ? 'page' : undefined}>
      <Name text={id} most={most} isId />
    </a>
  )
}

function StateOf({ job }: { readonly job: GraphJob }) {
  if (job.state === undefined || job.hasExpired)
    return <Badge sign={job.hasExpired ? '⊘' : '?'}>{stateWord(job)}</Badge>
  return <StateBadge state={job.state} />
}

function ManyJobs({ box: { kind, jobs, set }, graph }: BoxProps) {
  const { name, task, added, size } = set!
  const members = jobs.map((place) => [place, graph.jobs[place]!] as const)
  const sum = kind === 'counts' ? countsOf(set!) : statesOf(members.map(([, job]) => job))
  return (
    <>
      <div class="flex min-w-0 justify-between gap-2">
        <span class="min-w-0 truncate font-medium">
          <Name text={name} most={16} />
          {task !== undefined && (
            <span class="font-normal text-muted">
              {' '}
              <Name text={task} most={16} />
            </span>
          )}
        </span>
        <span class="whitespace-nowrap text-muted">
          {exactCount(size ?? added)}
          {size === undefined && ' so far'}
        </span>
      </div>
      {kind !== 'rows' && <SumWords counts={sum} isColumn={kind === 'counts'} />}
      {kind === 'tiles' ? (
        <Tiles members={members} />
      ) : (
        <ul>
          {members.map(([place, job]) => (
            <li key={job.id} class="flex h-6.5 min-w-0 items-center justify-between gap-2">
              <JobLink job={job} isHere={place === 0} most={15} />
              <StateOf job={job} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function SumWords({ counts, isColumn }: { readonly counts: StateCounts; readonly isColumn: boolean }) {
  const some = Object.entries(counts).filter(([, count]) => count > 0) as [keyof StateCounts, number][]
  return (
    <ul class={`my-1 text-xs ${isColumn ? 'grid gap-1' : 'flex flex-wrap gap-x-3 gap-y-1'}`}>
      {some.map(([state, count]) => {
        const [tone, sign] = signOf(state as JobState)
        return (
          <li key={state} class="flex items-center gap-1">
            <span aria-hidden="true" class={`rounded px-1 ${tones[tone]}`}>
              {state === 'not ended' ? '⋯' : state === 'expired' ? '⊘' : sign}
            </span>
            {exactCount(count)} {state}
          </li>
        )
      })}
    </ul>
  )
}

/** One stop of the Tab key; the arrow keys go from tile to tile. */
function Tiles({ members }: { readonly members: readonly (readonly [place: number, job: GraphJob])[] }) {
  const list = useRef<HTMLUListElement>(null)
  const press = (event: KeyboardEvent) => {
    const tiles = [...(list.current?.querySelectorAll('a') ?? [])]
    const at = tiles.indexOf(event.target as HTMLAnchorElement)
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tiles.length - 1 }[event.key]
    const tile = to === undefined ? undefined : tiles[to]
    if (tile === undefined) return
    event.preventDefault()
    for (const one of tiles) one.tabIndex = one === tile ? 0 : -1
    tile.focus()
  }
  return (
    <ul ref={list} class="flex flex-wrap gap-[3px]" onKeyDown={press}>
      {members.map(([place, job], i) => {
        const [tone, sign] = signOf(job.state)
        const words = `${safeText(job.id)}: ${stateWord(job)}`
        return (
          <li key={job.id}>
            <a
              class={`grid size-6 place-items-center rounded border text-xs ${tones[tone]} ${place === 0 ? 'ring-1 ring-accent' : ''}`}
              href={jobAddress(job)}
              title={words}
              aria-label={words}
              aria-current={place === 0 ? 'page' : undefined}
              tabIndex={i === 0 ? 0 : -1}
            >
              {sign}
            </a>
          </li>
        )
      })}
    </ul>
  )
}
