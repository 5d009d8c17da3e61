/**
 * Slims `dist` to what the package needs: `node scripts/slim-dist.mjs [root]`. Of the declarations it keeps those that the
 * public entries reach, with their comments; of the JavaScript, the files that these entries or the command load, without
 * comments. Both are indented by tabs. Scripts of Redis lose their comments too. What users read is in the declarations,
 * everything else in the sources. `npm pack` runs it.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'
import { slimDeclarations } from './slim-declarations.mjs'

const root = resolve(process.argv[2] ?? '.')
const dist = join(root, 'dist')
const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.values(exports).filter((target) => target.types !== undefined)
const commands = Object.values(bin)

/** A tab for every four spaces that a line begins with. `templateLine`: what a line in the text of a template becomes. */
function withTabs(text, templateLine = (line) => line) {
  const source = ts.createSourceFile('file.js', text, ts.ScriptTarget.ESNext)
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line
  const kept = new Set()
  const visit = (node) => {
    if (ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isNoSubstitutionTemplateLiteral(node))
      for (let line = lineOf(node.getStart(source)) + 1; line <= lineOf(node.end); line += 1) kept.add(line)
    ts.forEachChild(node, visit)
  }
  visit(source)
  const lines = text.split('\n')
  return lines
    .map((line, i) => (kept.has(i) ? templateLine(line) : line.replace(/^(?: {4})+/, spacesToTabs)))
    .filter((line) => line !== undefined)
    .join('\n')
}

/** A script is put together by the indentation of its functions: only its comments go. */
const luaLine = (line) => (/^\s*--/.test(line) ? undefined : line)

const spacesToTabs = (spaces) => '\t'.repeat(spaces.length / 4)

const loaded = new Set()

/** Notes a file and what it loads: by import, at once or later, or as the program of a thread or process, by its path. */
function load(file) {
  if (loaded.has(file)) return
  loaded.add(file)
  const text = readFileSync(file, 'utf8')
  const imported = ts.preProcessFile(text).importedFiles.map(({ fileName }) => fileName)
  const named = [...text.matchAll(/'(\.{1,2}\/[^']+\.js)'/g)].map(([, path]) => path)
  for (const path of [...imported, ...named].filter((path) => path.startsWith('.')))
    if (existsSync(join(dirname(file), path))) load(join(dirname(file), path))
}

for (const path of [...entries.map((target) => target.default), ...commands]) load(join(root, path))
const declarations = slimDeclarations(entries.map((target) => join(root, target.types)))

// The page is minified already.
const page = join(dist, 'web', 'page')
const redis = join(dist, 'stores', 'redis')
const compilerOptions = {
  removeComments: true,
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
}
for (const file of readdirSync(dist, { recursive: true }).map((name) => join(dist, name)))
  if (file.startsWith(page)) continue
  else if (file.endsWith('.d.ts')) {
    const text = declarations.get(file)
    if (text === undefined) rmSync(file)
    else writeFileSync(file, withTabs(text))
  } else if (file.endsWith('.js')) {
    if (loaded.has(file)) {
      const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions, fileName: file })
      writeFileSync(file, withTabs(outputText, file.startsWith(redis) ? luaLine : undefined))
    } else rmSync(file)
  }
// An incremental build would take what was dropped for made.
rmSync(join(dist, '.tsbuildinfo'), { force: true })
