/**
 * The API report: for each entry of the package what it exports, with its declarations and all that these name at however many
 * steps, in the order of the names and without comments. Each declaration stands once, in the report of the first entry that
 * exports it, otherwise of the first that reaches it. So a change of the public API is a change of these texts. Pure but for
 * reading the declarations.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { reached } from './slim-declarations.mjs'

/** The reports of the package at `root`, by the name of the entry: its path in the package, or that of the package itself. */
export function apiReports(root) {
  const { name: packageName, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.entries(exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([subpath, { types }]) => entryAt(subpath === '.' ? packageName : subpath.slice(2), join(root, types)))
  /** The entry that has the declaration, by its place. */
  const owners = new Map()
  const own = (entry, place) => owners.has(place) || owners.set(place, entry)
  for (const entry of entries) for (const { place } of entry.exported) own(entry, place)
  for (const entry of entries) for (const place of entry.declared.keys()) own(entry, place)
  return new Map(entries.map((entry) => [entry.name, reportOf(entry, owners)]))
}

function entryAt(name, path) {
  const files = reached([path])
  const declared = new Map()
  /** What it names of other packages. */
  const foreign = new Set()
  for (const [path, file] of files) {
    for (const statement of file.kept) {
      if (ts.isImportDeclaration(statement)) foreign.add(printed(statement, file.source))
      else {
        const local = nameOf(statement)
        const place = `${path}:${local}`
        const before = declared.get(place)?.text
        const text = printed(statement, file.source)
        declared.set(place, { local, text: before === undefined ? text : `${before}\n${text}` })
      }
    }
    for (const [local, { from, module, local: there }] of file.imported)
      if (from === undefined && file.named.has(local))
        foreign.add(`import { ${there === local ? local : `${there} as ${local}`} } from '${module}'`)
  }
  return { name, exported: exportsOf(files, path).sort(byName), declared, foreign: [...foreign].sort() }
}

/** The names that a file exports, each with the place of its declaration. */
function exportsOf(files, path, isTypeOnly = false) {
  const file = files.get(path)
  const own = [...file.exported].map(([name, one]) => {
    let [at, { from, local, isTypeOnly: isType }] = [path, one]
    while (from !== undefined) {
      at = from
      const next = files.get(at).exported.get(local)
      isType ||= next.isTypeOnly
      ;({ from, local } = next)
    }
    const isShape = files.get(at).declared.get(local)?.every(isOnlyType) ?? true
    return { name, place: `${at}:${local}`, isType: isTypeOnly || isType || isShape }
  })
  return [
    ...own,
    ...file.passedOnWhole.flatMap(({ from, isTypeOnly: isType }) => exportsOf(files, from, isTypeOnly || isType)),
  ]
}

const isOnlyType = (statement) => ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)

const nameOf = (statement) =>
  (ts.isVariableStatement(statement) ? statement.declarationList.declarations[0] : statement).name.text

const byName = ({ name: a }, { name: b }) => (a < b ? -1 : a > b ? 1 : 0)

const printer = ts.createPrinter({ removeComments: true })

/** Without what every statement of a declaration file has before it, and without the places of files. */
function printed(statement, source) {
  return printer
    .printNode(ts.EmitHint.Unspecified, statement, source)
    .replace(/^(?:export )?(?:declare )?/, '')
    .replaceAll(/import\("\.[^"]*"\)\./g, '')
    .replaceAll('    ', '  ')
}

const titles = {
  exported: 'exports',
  declared: 'their declarations, and what these name',
  foreign: 'of other packages',
}

function reportOf(entry, owners) {
  const exported = entry.exported.map(({ name, place, isType }) => {
    const owner = owners.get(place)
    return `${isType ? 'type ' : ''}${name}${owner === entry ? '' : `, declared in ${owner.name}.txt`}`
  })
  const declared = [...entry.declared]
    .filter(([place]) => owners.get(place) === entry)
    .map(([, { local, text }]) => ({ name: local, text }))
    .sort((a, b) => byName(a, b) || (a.text < b.text ? -1 : 1))
    .map(({ text }) => text)
  const parts = [
    `# ${entry.name}: ${titles.exported}\n\n${exported.join('\n')}`,
    `# ${entry.name}: ${titles.declared}\n\n${declared.join('\n\n')}`,
    ...(entry.foreign.length === 0 ? [] : [`# ${entry.name}: ${titles.foreign}\n\n${entry.foreign.join('\n')}`]),
  ]
  return `${parts.join('\n\n')}\n`
}

/** What differs between two reports of an entry, a line for each thing; empty if nothing does. */
export function apiDifferences(before, after) {
  const [old, now] = [partsIn(before), partsIn(after)]
  const lines = []
  for (const name of missing(old.exports, now.exports)) lines.push(`- no longer exported: ${name}`)
  for (const name of missing(now.exports, old.exports)) lines.push(`+ newly exported: ${name}`)
  for (const key of [...new Set([...old.texts.keys(), ...now.texts.keys()])].sort()) {
    const [was, is] = [old.texts.get(key) ?? [], now.texts.get(key) ?? []]
    const changes = [
      ...missing(was, is).map((line) => `    - ${line.trim()}`),
      ...missing(is, was).map((line) => `    + ${line.trim()}`),
    ]
    if (changes.length > 0) lines.push(`  ${key}:`, ...changes)
    else if (was.join('\n') !== is.join('\n')) lines.push(`  ${key}: its lines are in another order`)
  }
  return lines
}

/** The lines of `a` that `b` has not, as often as that. */
function missing(a, b) {
  const left = [...b]
  return a.filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

const keyForm = /^(?:abstract )?(?:function|const|class|interface|type|enum|namespace) (\w+)/

/**
 * The exports, and the lines of the declarations by their names. Lines of other packages go by the name of that part. Compilers
 * differ in the quotes around a text: all are the same here.
 */
function partsIn(report) {
  const [exports, texts] = [[], new Map()]
  let title = ''
  for (const block of report.replaceAll('"', "'").trimEnd().split('\n\n')) {
    if (block.startsWith('# ')) title = block.slice(block.indexOf(': ') + 2)
    else if (title === titles.exported) exports.push(...block.split('\n'))
    else {
      const key = keyForm.exec(block)?.[1] ?? title
      texts.set(key, [...(texts.get(key) ?? []), ...block.split('\n')])
    }
  }
  return { exports, texts }
}
