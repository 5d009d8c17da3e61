/** The API report: what `npm test` says of a public API that is not what `api/` says. */

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'

const { apiReports, apiDifferences } = (await import(pathToFileURL(join(root, 'scripts/api-report.mjs')).href)) as {
  apiReports(root: string): Map<string, string>
  apiDifferences(before: string, after: string): string[]
}

let copy: string
let before: Map<string, string>

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'millrace-api-'))
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true, filter: (path) => !/\.js$|\/page\b/.test(path) })
  before = apiReports(copy)
})
afterAll(() => rmSync(copy, { recursive: true }))

/** What the reports say after this change of a declaration in `dist`, by their entries. The change is taken back then. */
function changed(file: string, text: string | RegExp, instead: string): Record<string, string[]> {
  const path = join(copy, 'dist', file)
  const declared = readFileSync(path, 'utf8')
  const other = declared.replace(text, instead)
  expect(other).not.toBe(declared)
  writeFileSync(path, other)
  try {
    const found = [...apiReports(copy)].map(([name, now]) => [name, apiDifferences(before.get(name)!, now)] as const)
    return Object.fromEntries(found.filter(([, lines]) => lines.length > 0))
  } finally {
    writeFileSync(path, declared)
  }
}

describe('the report of the public API', () => {
  it('shows an option that is renamed, once, however many names reach it', () => {
    expect(changed('core/queue/queue.d.ts', 'readonly maxCrashes?:', 'readonly crashesAtMost?:')).toEqual({
      millrace: [
        '  QueueOptions:',
        '    - readonly maxCrashes?: number | undefined;',
        '    + readonly crashesAtMost?: number | undefined;',
      ],
    })
  })

  it('shows an option that is removed', () => {
    expect(changed('core/queue/queue.d.ts', /readonly maxCrashes\?: .*;\n/, '')).toEqual({
      millrace: ['  QueueOptions:', '    - readonly maxCrashes?: number | undefined;'],
    })
  })

  it('shows a field that is added, even if it is optional', () => {
    const added = 'interface Progress {\n    readonly etaMs?: number;'
    expect(changed('core/job/job.d.ts', 'interface Progress {', added)).toEqual({
      millrace: ['  Progress:', '    + readonly etaMs?: number;'],
    })
  })

  it('shows the type of an answer that has changed', () => {
    expect(
      changed('client/admin/throttle-admin.d.ts', /(release\(.*\): )Promise<number>/, '$1Promise<boolean>'),
    ).toEqual({
      millrace: [
        '  ThrottleAdmin:',
        '    - release(group?: string | number): Promise<number>;',
        '    + release(group?: string | number): Promise<boolean>;',
      ],
    })
  })

  it('shows a declaration that nobody exports, because an exported one names it', () => {
    expect(before.get('millrace')).not.toMatch(/^(?:type )?HoldsOptions$/m)
    expect(changed('client/admin/throttle-admin.d.ts', /(HoldsOptions \{[\s\S]*?readonly )limit\?/, '$1most?')).toEqual(
      {
        millrace: ['  HoldsOptions:', '    - limit?: number | undefined;', '    + most?: number | undefined;'].map(
          (line) => line.replace(/([-+]) /, '$1 readonly '),
        ),
      },
    )
  })

  it('shows a name that is no longer exported, and one that has lost its value', () => {
    expect(changed('index.d.ts', /export \{ idOf \} from .*/, '')['millrace']!.slice(0, 1)).toEqual([
      '- no longer exported: idOf',
    ])
    expect(changed('index.d.ts', /export \{ idOf \} from/, 'export type { idOf } from')).toEqual({
      millrace: ['- no longer exported: idOf', '+ newly exported: type idOf'],
    })
  })

  it('shows a change of what only another entry exports in that entry', () => {
    const { web, ...others } = changed(
      'web/web-options.d.ts',
      'interface WebOptions',
      'interface WebOptions extends Disposable',
    )
    expect(others).toEqual({})
    expect(web).toEqual([
      '  WebOptions:',
      '    - interface WebOptions {',
      '    + interface WebOptions extends Disposable {',
    ])
  })

  it('shows a member that is at another place', () => {
    expect(
      changed('core/job/job.d.ts', /(interface Progress \{)\s*([\s\S]*?)(\s+readonly note\?: string;)/, '$1$3\n$2'),
    ).toEqual({
      millrace: ['  Progress: its lines are in another order'],
    })
  })

  it('shows no change of a comment, nor of what nobody reaches', () => {
    expect(changed('core/queue/queue.d.ts', '/** Lottery tickets of the queue', '/** Tickets of the queue')).toEqual({})
    expect(changed('cli/flags.d.ts', 'export ', 'export declare const none: 1;\nexport ')).toEqual({})
  })

  it('shows no change of the quotes around a text, in which compilers differ', () => {
    expect(changed('core/queue/queue.d.ts', "order?: 'fifo'", 'order?: "fifo"')).toEqual({})
    expect(changed('core/queue/queue.d.ts', "order?: 'fifo'", 'order?: "lilo"')).not.toEqual({})
  })
})

describe('the check of the public API', () => {
  function api(...flags: string[]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/api.mjs'), copy, ...flags], {
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    return { status, lines: stdout.trimEnd().split('\n') }
  }

  it('fails with what has changed and what to do, until the change is accepted', () => {
    cpSync(join(root, 'api'), join(copy, 'api'), { recursive: true })
    const [web, gone] = [join(copy, 'api/web.txt'), join(copy, 'api/gone.txt')]
    const kept = readFileSync(web, 'utf8')
    writeFileSync(web, kept.replace('type WebOptions\n', ''))
    writeFileSync(gone, '')

    expect(api('--check')).toEqual({
      status: 1,
      lines: [
        'api/web.txt is not what dist declares:',
        '  + newly exported: type WebOptions',
        'api/gone.txt is of no entry of package.json',
        expect.stringMatching(/`npm run api` accepts it; commit api\/.*CHANGELOG\.md.*docs\/versions\.md/),
      ],
    })
    expect(api()).toEqual({ status: 0, lines: ['web: + newly exported: type WebOptions'] })
    expect([readFileSync(web, 'utf8'), existsSync(gone)]).toEqual([kept, false])
  })
})
