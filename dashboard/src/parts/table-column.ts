/** The table column: the contents, the width and the visibility of one column of a data table. */

import type { ComponentChildren } from 'preact'

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
