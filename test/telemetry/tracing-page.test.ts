/** The page on tracing: its tables name what the code makes, and nothing else. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'
import { Document, plain } from '../docs/document.js'
import { membersOf } from '../docs/interface-members.js'

const page = new Document('docs/tracing.md')
const [spans, attributes] = page.tables.filter(({ under }) => under === 'The spans').map(({ rows }) => rows)
const source = (file: string) => readFileSync(join(root, 'src/telemetry', file), 'utf8')

describe('the page on tracing', () => {
  it('lists every span with its kind', () => {
    const made = [...source('tracing.ts').matchAll(/(\w+): SpanKind\.([A-Z]+)/g)].map(([, name, kind]) => [name, kind])

    expect(made.length).toBe(3)
    expect(spans!.map(([name, kind]) => [plain(name!).replace(' {queue}', ''), plain(kind!)])).toEqual(made)
  })

  it('lists every attribute', () => {
    const made = ['tracing.ts', 'span-attributes.ts'].flatMap((file) =>
      [...source(file).matchAll(/'((?:messaging|millrace|error)\.[a-z._]+)'/g)].map(([, name]) => name!),
    )

    expect(attributes!.map(([name]) => plain(name!)).sort()).toEqual([...new Set(made)].sort())
  })

  it('lists every option', () => {
    const options = membersOf('telemetry/tracing.ts', 'TracingOptions').map(({ name }) => name)

    expect(
      page
        .rows('Options')
        .map(([name]) => plain(name!))
        .sort(),
    ).toEqual(options.sort())
  })
})
