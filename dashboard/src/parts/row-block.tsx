/**
 * The row block: some rows of a data table, drawn when they come near the visible part; before that, an empty block of
 * the same height.
 */

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { RowSelection } from '../state/row-selection.js'
import type { Column } from './table-column.js'

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

export function RowBlock<Row>({ rows, before, columns, keyOf, selection, isDim }: BlockProps<Row>) {
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
