/** What an editor shows of the package: the compiler's own language service, on a program that uses the built declarations. */

import { join } from 'node:path'
import * as values from 'millrace'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'

const file = join(root, 'hover.ts')
const program = `
import { type Duration, defineOrderedTask, defineTask, millrace, snooze } from 'millrace'
const mail = defineTask({
  name: 'mail',
  queue: 'high',
  run: async (input: { to: string }, ctx) => {
    ctx.progress(0.5)
    await ctx.checkpoint(input.to)
    return { sent: input.to }
  },
})
const sync = defineOrderedTask({ name: 'sync', id: () => 1 })
const mill = millrace({ store: 'memory:', queues: { low: {} }, tasks: [mail, sync] })
const job = await mill.enqueue(mail, { to: 'ada' }, { delay: '5m' })
await mill.enqueueMany(mail, [{ to: 'ada' }])
await job.result({ timeout: '1m' })
await job.status()
const worker = mill.worker({ queues: ['low'], grace: '30s' })
await worker.start()
await worker.stop()
await mill.queue('low').depth()
mail.name
export const later: Duration = '5m'
export const outcome = snooze('10m')
`

const options: ts.CompilerOptions = {
  strict: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // No browser's: it is longer than all others.
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: ['node'],
  noEmit: true,
  paths: { millrace: [join(root, 'dist/index.d.ts')] },
}
const service = ts.createLanguageService({
  getCompilationSettings: () => options,
  getScriptFileNames: () => [file],
  getScriptVersion: () => '1',
  getScriptSnapshot: (name) => {
    const text = name === file ? program : ts.sys.readFile(name)
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
  },
  getCurrentDirectory: () => root,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: ts.sys.fileExists,
  readFile: ts.sys.readFile,
  directoryExists: ts.sys.directoryExists,
})

/** Where this text ends in the program. */
function behind(text: string): number {
  const at = program.indexOf(text)
  if (at < 0) throw new Error(`the program has no '${text}'`)
  return at + text.length
}

/** The hover text of the word that this text ends with. */
function hover(text: string) {
  const found = service.getQuickInfoAtPosition(file, behind(text) - 1)
  // The compiler sorts the members of a union as it met them.
  const signature = ts
    .displayPartsToString(found?.displayParts)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?:"\w+" \| )+"\w+"/g, (union) => union.split(' | ').sort().join(' | '))
  return { signature, says: ts.displayPartsToString(found?.documentation) }
}

/** What an editor offers where this text ends. */
function offered(text: string): string[] {
  return (service.getCompletionsAtPosition(file, behind(text), {})?.entries ?? []).map(({ name }) => name)
}

it('the program has no mistakes', () => {
  const mistakes = [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)]

  expect(mistakes.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([])
}, 60_000)

describe('a hover', () => {
  it.each([
    [
      '= defineTask',
      'Task<"mail", { to: string; }, { to: string; }, { sent: string; }, "high", unknown>',
      'Defines a task.',
    ],
    ['= millrace', 'Mill<"high" | "low" | "sync">', 'Puts a mill together.'],
    ['mill.enqueue', '(task: Task<"mail", { to: string; }', 'Enqueues one job.'],
    ['mill.enqueueMany', 'inputs: readonly { to: string; }[]', 'Enqueues many jobs'],
    ['job.result', 'Promise<{ sent: string; }>', "The handler's result"],
    ['job.status', 'Promise<JobState | undefined>', 'The state of the job'],
    ['mill.worker', 'worker(options?: WorkerOptions<"high" | "low" | "sync"> | undefined): Worker', 'A worker,'],
    ['worker.start', 'start(): Promise<void>', 'Opens the store'],
    ['worker.stop', 'Promise<void>', 'Claims nothing from now on'],
    ['mill.queue', 'queue(name: "high" | "low" | "sync"): QueueAdmin', 'Administration of one queue.'],
    ['ctx.progress', 'progress(fraction: number, note?: string): void', 'Reports the progress'],
    ['ctx.checkpoint', 'checkpoint(value: unknown): Promise<void>', 'Stores a value that the next attempt finds'],
    ['= snooze', 'snooze(delay: Duration): OutcomeValue', 'Runs this job again'],
  ])('over %s shows its types and begins with what it does', (text, types, says) => {
    const shown = hover(text)

    expect(shown.signature).toContain(types)
    expect(shown.says.slice(0, says.length)).toBe(says)
    expect(shown.says).not.toContain('@')
  })
})

describe('an editor offers', () => {
  it.each([
    ['mill', 'await mill.', ['enqueue', 'enqueueMany', 'worker', 'queue', 'close']],
    ['context', 'ctx.', ['job', 'signal', 'progress', 'log', 'checkpoint']],
    ['worker', 'await worker.', ['start', 'stop', 'status', 'finished']],
    ['handle', 'await job.', ['result', 'status', 'record', 'cancel']],
    ['task', 'mail.', ['name', 'queue', 'handle', 'returns']],
  ])('the public members of a %s, and nothing internal', (_, text, members) => {
    const names = offered(text)

    expect(names).toEqual(expect.arrayContaining(members))
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]*$/)
    expect(names).not.toEqual(expect.arrayContaining(['isolated']))
    expect(names).not.toEqual(expect.arrayContaining(['launch']))
  })

  it('no undocumented method of a mill or a handle', () => {
    const silent = ['await mill.', 'await job.'].flatMap((text) =>
      offered(text).filter((name) => {
        const details = service.getCompletionEntryDetails(file, behind(text), name, {}, undefined, {}, undefined)
        return details?.kind === 'method' && ts.displayPartsToString(details.documentation) === ''
      }),
    )

    expect(silent).toEqual([])
  })

  it('the names of the queues', () => {
    expect(offered("mill.queue('").sort()).toEqual(['high', 'low', 'sync'])
    expect(offered("queues: ['").sort()).toEqual(['high', 'low', 'sync'])
  })

  it('the usual durations', () => {
    expect(offered("delay: '")).toEqual(expect.arrayContaining(['500ms', '30s', '5m', '1h', '7d']))
    expect(offered("snooze('")).toEqual(offered("delay: '"))
    expect(offered("grace: '")).toEqual(expect.arrayContaining(['none', '30s']))
  })
})

/** The methods of `Mill` that people call most. */
const methods = [
  'enqueue',
  'enqueueMany',
  'flow',
  'results',
  'job',
  'worker',
  'listener',
  'throttledQueue',
  'queue',
  'depths',
  'on',
]

/** Options with an example of their own. */
const properties = [
  ['JoinTaskOptions', 'joins'],
  ['JoinEnqueueOptions', 'after'],
  ['JobContext', 'context'],
  ['MillOptions', 'context'],
  ['JobHandle', 'events'],
] as const

/** What the examples may use without a word: what stands around them in the code of a user. */
const surroundings = `
declare const sendEmail: Task<'send-email', { to: string }, { to: string }, { sentTo: string }, 'default'>
declare const syncAccount: OrderedTask<'sync-account', { account: string; email: string }, { account: string; email: string }>
declare const crawl: Task<'crawl', { url: string }, { url: string }, void, 'default'>
declare const report: JoinTask<'report', { month: string }, { month: string }, void, { page: typeof crawl; mails: ManyMembers<typeof sendEmail, 'fail', true> }, 'default'>
declare const mill: Mill
declare const job: JobHandle
declare const ctx: JobContext
declare const answer: Response
declare const error: unknown
declare const url: string
declare function freshToken(): Promise<string>
declare class Mailer { static connect(): Promise<Mailer>; send(to: string, text: string): Promise<void>; close(): Promise<void> }
declare const bill: Task<'bill', { id: string }, { id: string }, void, 'default', { mailer: Mailer }>
`

interface Example {
  readonly of: string
  readonly text: string
}

function programOf(files: Readonly<Record<string, string>>): ts.Program {
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile } = host
  host.getSourceFile = (name, ...rest) =>
    files[name] === undefined
      ? getSourceFile.call(host, name, ...rest)
      : ts.createSourceFile(name, files[name], ts.ScriptTarget.ES2022)
  host.fileExists = (name) => name in files || fileExists.call(host, name)
  host.readFile = (name) => files[name] ?? readFile.call(host, name)
  return ts.createProgram(Object.keys(files), options, host)
}

function examplesIn(name: string, symbol: ts.Symbol, checker: ts.TypeChecker): Example[] {
  return symbol
    .getJsDocTags(checker)
    .filter((tag) => tag.name === 'example')
    .map(({ text }) => ({ of: name, text: ts.displayPartsToString(text) }))
}

/** All public values and the named methods, each with its examples; and the names of all exports. */
function published(): { readonly examples: ReadonlyMap<string, Example[]>; readonly exports: readonly string[] } {
  const file = join(root, 'public.ts')
  const program = programOf({ [file]: "import * as all from 'millrace'\nexport const values = all\n" })
  const checker = program.getTypeChecker()
  const entry = program.getSourceFile(join(root, 'dist/index.d.ts'))!
  const all = checker.getExportsOfModule(checker.getSymbolAtLocation(entry)!)
  const resolved = all.map((symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  )
  const examples = new Map<string, Example[]>()
  for (const symbol of resolved)
    if (symbol.name in values) examples.set(symbol.name, examplesIn(symbol.name, symbol, checker))
  const mill = checker.getDeclaredTypeOfSymbol(resolved.find(({ name }) => name === 'Mill')!)
  for (const [type, name] of properties) {
    const declared = checker.getDeclaredTypeOfSymbol(resolved.find((symbol) => symbol.name === type)!)
    examples.set(`${type}.${name}`, examplesIn(name, declared.getProperty(name)!, checker))
  }
  for (const name of methods) examples.set(`Mill.${name}`, examplesIn(name, mill.getProperty(name)!, checker))
  return { examples, exports: all.map(({ name }) => name) }
}

const { examples, exports } = published()

it('every public value and the ten most used methods of Mill have an example in their hover', () => {
  expect([...examples].filter(([, own]) => own.length === 0).map(([name]) => name)).toEqual([])
  expect(examples.size).toBe(Object.keys(values).length + properties.length + methods.length)
})

it('every example in a hover fits the types', () => {
  const names = exports.filter((name) => /^\w+$/.test(name)).join(', ')
  const files: Record<string, string> = {}
  for (const [i, { text }] of [...examples.values()].flat().entries()) {
    // Exports stand at the top of a module; the rest may return, as the body of a handler does.
    const body =
      text.startsWith('export ') || /^\/\/.*\nexport /.test(text) ? text : `export async function body() {\n${text}\n}`
    const own = surroundings
      .split('\n')
      .filter((line) => !new RegExp(`(?:const|let) ${/declare const (\w+)/.exec(line)?.[1]}\\b`).test(text))
      .join('\n')
    files[join(root, `example-${i}.ts`)] = `import { ${names} } from 'millrace'\n${own}\n${body}\n`
  }
  const program = programOf(files)
  const mistakes = Object.keys(files).flatMap((file) => {
    const source = program.getSourceFile(file)!
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) =>
        `${ts.flattenDiagnosticMessageText(messageText, '\n')}\n${files[file]!.split('\n').slice(-8).join('\n')}`,
    )
  })
  expect(mistakes).toEqual([])
})
