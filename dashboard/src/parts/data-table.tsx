/**
 * The data table: rows in fixed tracks, or cards on narrow screens; it draws only visible rows. `j`, `k`, Enter and `x`
 * work on its rows.
 */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { query, setQuery } from '../state/page-address.js'
import type { RowSelection } from '../state/row-selection.js'
import { TableNotice, WaitingRows } from './table-notice.js'

/** The contents, the width and the visibility of one column of a data table. */
export interface Column<Row> {
  readonly key: string
  readonly title: string
  /** Not drawn again before the row is another object: read signals only in components inside it. */
  readonly show: (row: Row) => ComponentChildren
  /** A track of a CSS grid: `minmax(10rem, 2fr)`, `5rem`. */
  readonly width: string
  /** The width from which on it is shown: 1 always, 2 from 768 px, 3 from 1,280 px. Default 1. */
  readonly priority?: 1 | 2 | 3
  readonly isNumber?: boolean
  /** Makes the column sortable, if all rows are loaded. Numbers begin with the largest. */
  readonly order?: (a: Row, b: Row) => number
}

/** An order by a text, by code units: a collation is slow to load, and ids are no words. */
export function byText<Row>(of: (row: Row) => string): (a: Row, b: Row) => number {
  return (a, b) => (of(a) < of(b) ? -1 : Number(of(a) > of(b)))
}

interface TableProps<Row> {
  readonly label: string
  /** The same array at each render. The first column has the link of the row, with the class `row-link`. */
  readonly columns: readonly Column<Row>[]
  /** Undefined: not known yet. */
  readonly rows: readonly Row[] | undefined
  readonly keyOf: (row: Row) => string
  /** Shown if there are no rows. */
  readonly empty: ComponentChildren
  readonly error?: Error | undefined
  readonly onRetry?: () => void
  readonly isLoading?: boolean
  readonly selection?: RowSelection
  /** The key of the column by which it sorts if the address names none; with `-` before it: descending. */
  readonly sort?: string
}

export function DataTable<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, empty, error, onRetry, isLoading = false, selection, sort } = props
  const order = query.value.get('sort') ?? sort ?? ''
  const sorted = useMemo(() => sortedRows(rows, columns, order), [rows, columns, order])
  const tracks = useMemo(() => tracksOf(columns, selection !== undefined), [columns, selection !== undefined])
  const blocks = useMemo(() => blocksOf(sorted ?? []), [sorted])
  return (
    <div class="panel overflow-clip" aria-busy={isLoading || rows === undefined}>
      <table class="rows" aria-label={label} aria-rowcount={rows && rows.length + 1} style={tracks}>
        <thead>
          <tr>
            {selection && <SelectAll keys={(rows ?? []).map(keyOf)} selection={selection} />}
            {columns.map((column) => (
              <Heading key={column.key} column={column} order={order} />
            ))}
          </tr>
        </thead>
        {blocks.map((block, i) => (
          <RowBlock
            key={i}
            rows={block}
            before={i * blockSize}
            isDim={isLoading && rows !== undefined}
            {...{ columns, keyOf, selection }}
          />
        ))}
      </table>
      {error !== undefined && <TableNotice error={error} onRetry={onRetry} hasRows={rows !== undefined} />}
      {error === undefined && rows === undefined && <WaitingRows />}
      {error === undefined && rows?.length === 0 && <TableNotice>{empty}</TableNotice>}
    </div>
  )
}

function sortedRows<Row>(rows: readonly Row[] | undefined, columns: readonly Column<Row>[], order: string) {
  const isTurned = order.startsWith('-')
  const compare = columns.find(({ key }) => key === order.replace(/^-/, ''))?.order
  if (rows === undefined || compare === undefined) return rows
  return rows.toSorted(isTurned ? (a, b) => compare(b, a) : compare)
}

const blockSize = 12

function blocksOf<Row>(rows: readonly Row[]): (readonly Row[])[] {
  return Array.from({ length: Math.ceil(rows.length / blockSize) }, (_, i) =>
    rows.slice(i * blockSize, (i + 1) * blockSize),
  )
}

/** For each width the columns that are shown at it. */
function tracksOf<Row>(columns: readonly Column<Row>[], hasBoxes: boolean): Record<string, string> {
  const upTo = (most: number) =>
    [
      ...(hasBoxes ? ['1.25rem'] : []),
      ...columns.filter(({ priority = 1 }) => priority <= most).map(({ width }) => width),
    ].join(' ')
  return { '--tracks-2': upTo(2), '--tracks-3': upTo(3) }
}

interface HeadingProps<Row> {
  readonly column: Column<Row>
  readonly order: string
}

function Heading<Row>({ column: { key, title, priority, isNumber, order: compare }, order }: HeadingProps<Row>) {
  const isSorted = order.replace(/^-/, '') === key
  const isDown = order.startsWith('-')
  const first = isNumber ? `-${key}` : key
  const next = isSorted ? (isDown ? key : `-${key}`) : first
  return (
    <th
      scope="col"
      data-priority={priority}
      class={isNumber ? 'number' : ''}
      aria-sort={isSorted ? (isDown ? 'descending' : 'ascending') : undefined}
    >
      {compare === undefined ? (
        title
      ) : (
        <button
          type="button"
          class={`inline-flex gap-1 hover:text-ink ${isNumber ? 'flex-row-reverse' : ''}`}
          onClick={() => setQuery({ sort: next })}
        >
          {title}
          <span aria-hidden="true" class={isSorted ? '' : 'invisible'}>
            {isDown ? '↓' : '↑'}
          </span>
        </button>
      )}
    </th>
  )
}

function SelectAll({ keys, selection }: { readonly keys: readonly string[]; readonly selection: RowSelection }) {
  const hasAll = keys.length > 0 && keys.every((key) => selection.keys.has(key))
  return (
    <th scope="col">
      <input
        type="checkbox"
        aria-label="Select all of this page"
        checked={hasAll}
        disabled={keys.length === 0}
        onChange={() => selection.set(hasAll ? [] : keys)}
      />
    </th>
  )
}

interface BlockProps<Row> {
  readonly rows: readonly Row[]
  /** How many rows are above it. */
  readonly before: number
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  readonly selection: RowSelection | undefined
  /** Whether newer rows are loading. */
  readonly isDim: boolean
}

/** This many rows are drawn at once, about as many as a screen shows. */
const mostAtOnce = 24
const nearPx = 300

function RowBlock<Row>({ rows, before, columns, keyOf, selection, isDim }: BlockProps<Row>) {
  const [body, isNear] = useNearness(before < mostAtOnce)
  const dim = isDim ? 'opacity-60 motion-safe:transition-opacity motion-safe:delay-200' : ''
  return (
    <tbody ref={body} class={isNear ? dim : 'rows-away'} style={{ '--rows': rows.length }}>
      {isNear &&
        rows.map((row, i) => {
          const key = keyOf(row)
          return (
            <TableRow
              key={key}
              row={row}
              rowKey={key}
              place={before + i}
              columns={columns}
              toggle={selection?.toggle}
              isChosen={selection?.keys.has(key) ?? false}
            />
          )
        })}
    </tbody>
  )
}

/** Whether an element is visible, or will be after a little scrolling. */
function useNearness(isNearAtFirst: boolean) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [isNear, setNear] = useState(isNearAtFirst)
  useLayoutEffect(() => {
    if (body.current === null) return
    const watch = new IntersectionObserver(([entry]) => entry && setNear(entry.isIntersecting), {
      rootMargin: `${nearPx}px`,
    })
    watch.observe(body.current)
    return () => watch.disconnect()
  }, [])
  return [body, isNear] as const
}

interface RowProps<Row> {
  readonly row: Row
  readonly rowKey: string
  readonly place: number
  readonly columns: readonly Column<Row>[]
  readonly toggle: ((key: string) => void) | undefined
  readonly isChosen: boolean
}

function TableRow<Row>({ row, rowKey, place, columns, toggle, isChosen }: RowProps<Row>) {
  const cells = useMemo(
    () =>
      columns.map(({ key, title, show, priority, isNumber }, i) => (
        <td
          key={key}
          class={isNumber ? 'number' : ''}
          data-priority={priority}
          data-title={title}
          data-lead={i === 0 ? '' : undefined}
        >
          {show(row)}
        </td>
      )),
    [row, columns],
  )
  return (
    // The heading is the first row.
    <tr data-row tabIndex={-1} aria-rowindex={place + 2} aria-selected={toggle && isChosen}>
      {toggle && (
        <td class="row-box">
          <input type="checkbox" aria-label={`Select ${rowKey}`} checked={isChosen} onChange={() => toggle(rowKey)} />
        </td>
      )}
      {cells}
    </tr>
  )
}
