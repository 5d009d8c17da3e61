/** A table: rows of cells under their titles, as lines. Foreign text in cells is made printable here. */

import { printable, shortened, widthOf } from '../printable.js'

export interface Column<Row> {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** The largest width, in columns of the terminal. */
  readonly most?: number
  cell(row: Row): string
  /** Colours the finished cell; adds no width. */
  paint?(text: string, row: Row): string
}

const gap = '  '

/** The lines, the titles first. The last column is cut if the lines would be longer than `width`. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width = Number.POSITIVE_INFINITY, paintTitle = (text: string) => text } = {},
): string[] {
  const cells = rows.map((row) =>
    columns.map((column) => shortened(printable(column.cell(row)), column.most ?? Number.POSITIVE_INFINITY)),
  )
  const widths = columns.map(({ title }, i) => Math.max(widthOf(title), ...cells.map((row) => widthOf(row[i]!))))
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + gap.length, 0)
  const last = Math.max(Math.min(widths.at(-1)!, width - before), widthOf(columns.at(-1)!.title))
  widths[widths.length - 1] = last
  const line = (texts: readonly string[], paint: (text: string, i: number) => string) =>
    texts
      .map((text, i) => {
        const shown = i === texts.length - 1 ? shortened(text, last) : text
        const space = ' '.repeat(Math.max(0, widths[i]! - widthOf(shown)))
        const painted = shown === '' ? '' : paint(shown, i)
        return columns[i]!.align === 'right' ? space + painted : painted + space
      })
      .join(gap)
      .trimEnd()
  const titles = columns.map(({ title }) => title)
  return [
    line(titles, paintTitle),
    ...cells.map((row, at) => line(row, (text, i) => columns[i]!.paint?.(text, rows[at]!) ?? text)),
  ]
}
