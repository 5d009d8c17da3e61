import { describe, expect, it } from 'vitest'
import { type Column, table } from '#src/cli/terminal/table.js'

interface Row {
  name: string
  n: number
  note: string
}

const columns: Column<Row>[] = [
  { title: 'name', most: 6, cell: ({ name }) => name },
  { title: 'n', align: 'right', cell: ({ n }) => String(n) },
  { title: 'note', cell: ({ note }) => note },
]

describe('a table', () => {
  it('aligns its cells under their titles, numbers to the right, without trailing spaces', () => {
    const rows = [
      { name: 'a', n: 5, note: '' },
      { name: 'bcd', n: 1_234, note: 'late' },
    ]
    expect(table(columns, rows)).toEqual(['name     n  note', 'a        5', 'bcd   1234  late'])
  })

  it('shortens a cell to the limit of its column, and the last one to the width of the terminal', () => {
    const rows = [{ name: 'abcdefgh', n: 1, note: 'a long story about nothing' }]
    expect(table(columns, rows, { width: 20 })).toEqual(['name    n  note', 'abcde…  1  a long s…'])
  })

  it('counts wide characters as two columns and combining marks as none', () => {
    const rows = [
      { name: '日本', n: 1, note: '' },
      { name: 'e\u0301', n: 2, note: '' },
    ]
    expect(table(columns, rows)).toEqual(['name  n  note', '日本  1', 'e\u0301     2'])
  })

  it('colours cells and titles without moving them', () => {
    const painted = columns.map((column) => ({ ...column, paint: (text: string) => `<${text}>` }))
    expect(table(painted, [{ name: 'a', n: 5, note: 'x' }], { paintTitle: (text) => `[${text}]` })).toEqual([
      '[name]  [n]  [note]',
      '<a>     <5>  <x>',
    ])
  })
})
