/** A document: one Markdown file of the repository, as the tests read it: its code blocks, links, headings and tables. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { anchorOf } from '../../site/anchor.js'
import { root } from '../cli/project.js'

export interface Block {
  readonly language: string
  readonly text: string
  /** `README.md:17`, of its first line. */
  readonly at: string
  /** The name in a first line such as `// tasks.ts`: the reader is to make a file of it. */
  readonly file: string | undefined
}

export interface Table {
  /** The heading above it. */
  readonly under: string
  readonly rows: readonly (readonly string[])[]
}

export class Document {
  /** From the root of the repository. */
  readonly path: string
  readonly blocks: readonly Block[]
  readonly headings: readonly string[]
  readonly tables: readonly Table[]
  /** The text without code blocks. */
  readonly prose: string

  constructor(path: string) {
    this.path = path
    const blocks: Block[] = []
    const headings: string[] = []
    const tables: { under: string; rows: string[][] }[] = []
    const prose: string[] = []
    let open: { language: string; from: number; lines: string[] } | undefined
    let inTable = false
    for (const [i, line] of readFileSync(join(root, path), 'utf8').split('\n').entries()) {
      const fence = /^```(\w*)/.exec(line)
      if (open !== undefined) {
        if (fence === null) open.lines.push(line)
        else {
          const file = /^\/\/ (\S+\.\w+)$/.exec(open.lines[0] ?? '')?.[1]
          blocks.push({ language: open.language, text: open.lines.join('\n'), at: `${path}:${open.from}`, file })
          open = undefined
        }
        continue
      }
      if (fence !== null) open = { language: fence[1]!, from: i + 2, lines: [] }
      else prose.push(line)
      const heading = /^#+ (.+)$/.exec(line)?.[1]
      if (heading !== undefined) headings.push(heading)
      const isRow = fence === null && line.startsWith('|')
      if (isRow && !inTable) tables.push({ under: headings.at(-1) ?? '', rows: [] })
      // The row of dashes below the titles is none.
      if (isRow && !/^\|[-:| ]+\|$/.test(line)) tables.at(-1)!.rows.push(cellsOf(line))
      inTable = isRow
    }
    this.blocks = blocks
    this.headings = headings
    this.tables = tables.map(({ under, rows }) => ({ under, rows: rows.slice(1) }))
    this.prose = prose.join('\n')
  }

  /** Targets of its links, as written. */
  get links(): string[] {
    return [...this.prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
  }

  /** What stands in backticks, code blocks aside. */
  get codeSpans(): string[] {
    return [...this.prose.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)
  }

  /** Its headings as GitHub makes anchors of them. */
  get anchors(): string[] {
    return this.headings.map(anchorOf)
  }

  /** The rows of all tables below the heading that begins with these words. Throws where there are none. */
  rows(heading: string): readonly (readonly string[])[] {
    const begins = (under: string) => under.startsWith(heading) && !/^\w/.test(under.slice(heading.length))
    const rows = this.tables.filter(({ under }) => begins(under)).flatMap((table) => table.rows)
    if (rows.length === 0) throw new Error(`${this.path} has no table under '${heading}'`)
    return rows
  }
}

/** Every document of the repository that people read and somebody has written: not the pages made of the doc comments. */
export function documents(): Document[] {
  const below = (folder: string, name: RegExp) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => name.test(file) && !/node_modules|^api\//.test(file))
      .map((file) => `${folder}/${file}`)
  return [
    'README.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'bench/README.md',
    ...below('docs', /\.md$/),
    ...below('examples', /README\.md$/),
  ].map((path) => new Document(path))
}

/** The pages of the command line: the overview, then its parts in the order of its links. */
export function commandPages(): Document[] {
  const overview = new Document('docs/cli.md')
  const parts = new Set(overview.links.map((link) => link.split('#')[0]!).filter((link) => link.startsWith('cli/')))
  return [overview, ...[...parts].map((part) => new Document(`docs/${part}`))]
}

/** The text of a cell without its backticks. */
export function plain(cell: string): string {
  return cell.replaceAll('`', '')
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, line.lastIndexOf('|'))
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())
}
