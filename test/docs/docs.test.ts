/** The code of the documentation: its TypeScript compiles, and the first job of the README runs. `docs-programs.drill.ts` runs all. */

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess, runProcess } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'
import { Document, documents } from './document.js'
import { execute, folderOf, shellLines } from './documented-project.js'

const all = documents()
const readme = all.find(({ path }) => path === 'README.md')!
const blocks = all.flatMap((document) => document.blocks)

describe('the README', () => {
  it('shows a first job that runs and prints what the README says', () => {
    const { status, stdout, stderr } = execute('first-job.mjs', folderOf(readme))
    const shown = readme.blocks.find(({ language }) => language === 'text')!.text
    const masked = (text: string) => text.trim().replace(/[0-9A-HJKMNP-TV-Z]{26}/g, '(an id)')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(masked(stdout)).toBe(masked(shown))
    expect(masked(shown)).toContain('(an id)')
  })

  it('keeps its promise of a small first job: at most 25 lines', () => {
    expect(readme.blocks.find(({ file }) => file === 'first-job.mjs')!.text.split('\n').length).toBeLessThanOrEqual(25)
  })
})

describe('the TypeScript of the documentation', () => {
  /** What fragments take for given. */
  const given = `
declare const mill: import('millrace').Mill
type Mail = { to: string; subject: string }
declare const sendEmail: import('millrace').Task<'send-email', Mail, Mail, { messageId: string }>
declare const input: Mail
type Order = { orderId: string; rev: number; status: string }
declare const syncOrder: import('millrace').OrderedTask<'sync-order', Order, Order>
declare const orders: Order[]
declare const traceId: string
declare const api: URL
declare const snooze: typeof import('millrace').snooze
declare const bury: typeof import('millrace').bury
declare const UnrecoverableError: typeof import('millrace').UnrecoverableError
declare function retryLater(): void
declare function isHoliday(): Promise<boolean>
declare function isBlocked(address: string): Promise<boolean>
// What the page of a browser has, as far as a guide uses it.
declare class EventSource {
  constructor(url: string)
  addEventListener(type: string, listener: (event: { readonly data: string }) => void): void
  close(): void
}
declare module 'react' {
  export function useState<T>(first: T): [T, (next: T | ((last: T) => T)) => void]
  export function useEffect(effect: () => void | (() => void), of: readonly unknown[]): void
}
`
  const harness = `export declare const makeHarness: import('millrace/store-testing').HarnessMaker`

  /** Every file by its path in the project, with the place of its text in the documentation. */
  const sources = new Map<string, { text: string; at: string }>([
    ['given.d.ts', { text: given, at: 'what fragments take for given' }],
  ])
  // The pages of the tutorial build on each other: test/docs/docs-tutorial.drill.ts compiles and runs them.
  for (const { path, blocks } of all.filter(({ path }) => !path.startsWith('docs/start/'))) {
    const folder = path.replaceAll(/\W/g, '-')
    sources.set(join(folder, 'my-harness.ts'), { text: harness, at: 'the harness that the reader writes' })
    for (const [i, { language, text, at, file }] of blocks.entries())
      if (language === 'ts')
        sources.set(join(folder, file ?? `fragment-${i}.ts`), { text: file ? text : wrapped(text), at })
  }

  it('compiles, strictly', { timeout: 60_000 }, () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'))
    const { incremental: _, tsBuildInfoFile: __, ...strict } = compilerOptions
    // As users have it: by the declarations of the package.
    const tsconfig = { compilerOptions: { ...strict, noUnusedLocals: false, paths: {} } }
    const cwd = project({
      'tsconfig.json': JSON.stringify(tsconfig),
      'package.json': '{"type":"module"}',
      ...Object.fromEntries([...sources].map(([path, { text }]) => [path, text])),
    })
    for (const name of readdirSync(join(root, 'node_modules')))
      if (!name.startsWith('.')) symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
    const { stdout, stderr } = spawnSync(join(root, 'node_modules/.bin/tsgo'), ['--pretty', 'false'], {
      cwd,
      encoding: 'utf8',
    })
    const complaints = stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.replace(/^[^(]+/, (path) => `${sources.get(path)?.at ?? path} `))

    expect({ complaints, stderr }).toEqual({ complaints: [], stderr: '' })
    expect(sources.size).toBeGreaterThan(8)
  })

  /** Imports stay where they are; the rest becomes the body of a function, in which one may await and return. */
  function wrapped(text: string): string {
    const lines = text.split('\n')
    const imports = lines.filter((line) => line.startsWith('import '))
    const body = lines.filter((line) => !line.startsWith('import '))
    return `${imports.join('\n')}\nexport async function fragment() {\n${body.join('\n')}\n}\n`
  }
})

describe('the documentation', () => {
  it('is written only in languages that are run or checked', () => {
    // The case `jest-commonjs` runs what is `cjs`.
    const known = new Set(['sh', 'js', 'ts', 'cjs', 'text', 'python'])

    expect(blocks.filter(({ language }) => !known.has(language)).map(({ at }) => at)).toEqual([])
  })

  it('names existing npm scripts', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
    const named = all.flatMap((document) =>
      [...document.codeSpans, ...shellLines(document)].flatMap((code) => [
        ...[...code.matchAll(/\bnpm run (?:--\S+ )?([\w:-]+)/g)].map(([, script]) => script!),
        ...(/\bnpm test\b/.test(code) ? ['test'] : []),
      ]),
    )

    expect(new Set(named)).toEqual(
      new Set(
        'demo test test:quick bench prove scripts build build:page screenshots site release format house api fixtures'.split(
          ' ',
        ),
      ),
    )
    expect([...new Set(named)].filter((script) => !(script in scripts))).toEqual([])
  })
})

it('a job enqueues the next one by the files of the life of a job, unchanged', { timeout: 60_000 }, async () => {
  const { blocks } = new Document('docs/job-lifecycle.md')
  const cwd = project(Object.fromEntries(blocks.flatMap(({ file, text }) => (file ? [[file, text]] : []))))
  symlinkSync(join(root, 'node_modules', 'zod'), join(cwd, 'node_modules', 'zod'))
  const { code } = await runProcess(['enqueue', 'receive', '{"orderId":"A-1"}'], { cwd })
  const worker = new CommandProcess('work', { cwd })
  await worker.stdoutMatches(/2 parcels of A-1 go out, as receive said/)
  worker.kill('SIGTERM')

  expect([code, (await worker.end()).code]).toEqual([0, 0])
})
