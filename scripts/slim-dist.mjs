/**
 * Slims `dist` to what the package needs: `node scripts/slim-dist.mjs [root]`. It deletes every `.d.ts` that is not
 * imported, at however many steps, by one that `exports` names, drops the comments of the JavaScript, and indents it and
 * the declarations by tabs. Scripts of Redis lose their comments. The comments for users are in the
 * declarations, and the others in the sources. `npm pack` runs it.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const root = resolve(process.argv[2] ?? '.')
const dist = join(root, 'dist')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const reached = new Set()

function reach(file, importer) {
  if (reached.has(file)) return
  if (!existsSync(file)) throw new Error(`${file} is imported by ${importer} and is not there; build anew`)
  reached.add(file)
  for (const { fileName } of ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles)
    if (fileName.startsWith('.')) reach(join(dirname(file), fileName.replace(/\.js$/, '.d.ts')), file)
}

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

for (const target of Object.values(exports))
  if (target.types !== undefined) reach(join(root, target.types), 'package.json')
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
  if (file.endsWith('.d.ts')) {
    if (reached.has(file)) writeFileSync(file, withTabs(readFileSync(file, 'utf8')))
    else rmSync(file)
  } else if (file.endsWith('.js') && !file.startsWith(page)) {
    const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions, fileName: file })
    writeFileSync(file, withTabs(outputText, file.startsWith(redis) ? luaLine : undefined))
  }
// An incremental build would take what was dropped for made.
rmSync(join(dist, '.tsbuildinfo'), { force: true })
