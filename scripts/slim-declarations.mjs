/**
 * The declarations that users reach: of every `.d.ts`, the statements that the entries name at however many steps, each
 * with its own comment. Other statements go, imports of them, and comments of files.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

/** The new text of every file that is still needed, by its path. */
export function slimDeclarations(entries) {
  return new Map([...reached(entries)].map(([path, file]) => [path, textOf(file)]))
}

/** Every file that the entries reach, by its path: which of its statements they name, and what it exports. */
export function reached(entries) {
  const files = new Map()

  /** Notes that an export of a file is needed; `*`: all of them. */
  function need(path, name, importer) {
    if (!existsSync(path)) throw new Error(`${path} is imported by ${importer} and is not there; build anew`)
    if (!files.has(path)) files.set(path, declarationsIn(path))
    const file = files.get(path)
    if (name === '*') for (const { from } of file.passedOnWhole) need(from, '*', path)
    for (const one of name === '*' ? file.exported.keys() : [name]) {
      const exported = file.exported.get(one)
      if (exported === undefined) throw new Error(`${path} has no '${one}', which ${importer} imports; build anew`)
      if (exported.from === undefined) needLocal(path, file, exported.local)
      else if (!file.passedOn.has(one)) {
        file.passedOn.add(one)
        need(exported.from, exported.local, path)
      }
    }
  }

  /** Notes that a name of a file is needed, and all that its statements or its import name. */
  function needLocal(path, file, name) {
    if (file.named.has(name)) return
    file.named.add(name)
    const imported = file.imported.get(name)
    if (imported?.from !== undefined) need(imported.from, imported.local, path)
    for (const statement of file.declared.get(name) ?? []) {
      const visit = (node) => {
        if (ts.isIdentifier(node) && node.parent.name !== node) needLocal(path, file, node.text)
        const from = ts.isImportTypeNode(node) ? fileNamed(path, node.argument.literal.text) : undefined
        if (from !== undefined) need(from, node.qualifier?.getText(file.source).split('.')[0] ?? '*', path)
        ts.forEachChild(node, visit)
      }
      file.kept.add(statement)
      visit(statement)
    }
  }

  for (const entry of entries) need(entry, '*', 'package.json')
  return files
}

/** By its path, the file as it was read last: several entries reach it. */
const sources = new Map()

function sourceOf(path) {
  const text = readFileSync(path, 'utf8')
  if (sources.get(path)?.text !== text) sources.set(path, ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true))
  return sources.get(path)
}

function declarationsIn(path) {
  const source = sourceOf(path)
  /**
   * By name, where an export or import comes from; `from` is undefined for the file itself and for other packages. An export
   * that is `isTypeOnly` has no value, even if what it names has one.
   */
  const [exported, imported] = [new Map(), new Map()]
  const [declared, passedOnWhole] = [new Map(), []]
  for (const statement of source.statements) {
    // It loads what it names, and declares nothing.
    if (ts.isImportDeclaration(statement) && statement.importClause === undefined) continue
    const list = listed(statement)
    if (list !== undefined) {
      const module = statement.moduleSpecifier?.text
      const from = module && fileNamed(path, module)
      for (const { name, propertyName, isTypeOnly } of list.elements)
        (ts.isImportDeclaration(statement) ? imported : exported).set(name.text, {
          from,
          module,
          local: (propertyName ?? name).text,
          isTypeOnly: isTypeOnly || statement.isTypeOnly === true,
        })
      continue
    }
    if (ts.isExportDeclaration(statement)) {
      passedOnWhole.push({
        from: fileNamed(path, statement.moduleSpecifier.text),
        isTypeOnly: statement.isTypeOnly,
      })
      continue
    }
    for (const { name } of declaredBy(statement)) {
      if (name === undefined) throw new Error(`${path}: '${statement.getText()}' declares no name`)
      declared.set(name.text, [...(declared.get(name.text) ?? []), statement])
      if (statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
        exported.set(name.text, { from: undefined, local: name.text, isTypeOnly: false })
    }
  }
  return { source, exported, imported, declared, passedOnWhole, named: new Set(), passedOn: new Set(), kept: new Set() }
}

/** The names in the braces of an import or export; undefined if it has none. */
function listed(statement) {
  const list = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause
  return list?.elements && list
}

/** What a statement without braces gives a name to; an import of a whole package is one. */
function declaredBy(statement) {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations
  return [
    ts.isImportDeclaration(statement) ? (statement.importClause.namedBindings ?? statement.importClause) : statement,
  ]
}

/** The declarations of a relative path; undefined for another package. */
function fileNamed(importer, specifier) {
  return specifier.startsWith('.') ? join(dirname(importer), specifier.replace(/\.js$/, '.d.ts')) : undefined
}

function textOf({ source, named, passedOn, kept }) {
  const { text } = source
  const lines = [...text.matchAll(/^\/\/\/ <.*$/gm)].map(([line]) => line)
  for (const statement of source.statements) {
    const list = listed(statement)
    if (list === undefined) {
      if (!kept.has(statement) && !ts.isExportDeclaration(statement)) continue
      // A comment of the file may be before its own.
      const comment = ts
        .getLeadingCommentRanges(text, statement.pos)
        ?.findLast(({ pos }) => text.startsWith('/**', pos))
      lines.push(text.slice(comment?.pos ?? statement.getStart(source), statement.end))
      continue
    }
    const isPassedOn = ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined
    const elements = list.elements.filter(({ name, propertyName }) =>
      isPassedOn
        ? passedOn.has(name.text)
        : named.has((ts.isImportDeclaration(statement) ? name : (propertyName ?? name)).text),
    )
    if (elements.length === 0 && list.elements.length > 0) continue
    const names = elements.map((element) => element.getText(source)).join(', ')
    lines.push(
      `${text.slice(statement.getStart(source), list.pos)} {${names && ` ${names} `}}${text.slice(list.end, statement.end)}`,
    )
  }
  return `${lines.join('\n')}\n`
}
