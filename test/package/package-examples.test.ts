/** The examples in the hovers of the public values and of the methods of `Mill`: each is there, and is checked against the types. */

import { join } from 'node:path'
import * as values from 'millrace'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { root } from '../cli/project.js'

const options: ts.CompilerOptions = {
  strict: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  noEmit: true,
  skipLibCheck: true,
  paths: { millrace: [join(root, 'dist/index.d.ts')] },
}

/** The methods of `Mill` that people call most. */
const methods = [
  'enqueue',
  'enqueueMany',
  'results',
  'job',
  'worker',
  'listener',
  'throttledQueue',
  'queue',
  'depths',
  'on',
]

/** What the examples may use without a word: what stands around them in the code of a user. */
const surroundings = `
declare const sendEmail: Task<'send-email', { to: string }, { to: string }, { sentTo: string }, 'default'>
declare const syncAccount: OrderedTask<'sync-account', { account: string; email: string }, { account: string; email: string }>
declare const crawl: Task<'crawl', { url: string }, { url: string }, void, 'default'>
declare const mill: Mill
declare const ctx: JobContext
declare const answer: Response
declare const error: unknown
declare const url: string
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
  for (const name of methods) examples.set(`Mill.${name}`, examplesIn(name, mill.getProperty(name)!, checker))
  return { examples, exports: all.map(({ name }) => name) }
}

const { examples, exports } = published()

it('every public value and the most used methods of Mill have an example in their hover', () => {
  expect([...examples].filter(([, own]) => own.length === 0).map(([name]) => name)).toEqual([])
  expect(examples.size).toBe(Object.keys(values).length + methods.length)
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
