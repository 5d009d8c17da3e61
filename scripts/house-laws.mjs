/**
 * The laws of the house: the laws of its architecture that a machine can check. `scripts/check-house.mjs` prints what is said
 * here about a tree of files.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { circlesIn } from './circles.mjs'

/** A file imports only from its own room or from floors below. The exports stand above all; nobody imports them. */
const floors = {
  core: 0,
  selectors: 1,
  'stores/contract': 1,
  'stores/rules': 2,
  'stores/rows': 3,
  'stores/sql': 4,
  runtime: 6,
  measures: 6,
  client: 7,
  workers: 8,
  mill: 9,
  web: 10,
  cli: 11,
  'store-testing': 10,
  telemetry: 10,
  testing: 11,
  'index.ts': 11,
  'store-exports.ts': 11,
}
/** Of every store, a room under `stores/` with a name of its own. */
const storeFloor = 5
const longest = 600
/** A file of at most this length that only one other imports needs a reason. */
const longestLone = 110
/** So many files of a kind in a folder are a family. */
const fewestKin = 4
/** Files of one folder. Only beside the sources is a smaller one a violation: a room of src/ may have one file above its alcoves. */
const mostFiles = 20
const fewestFiles = 4
const beside = ['test', 'bench', 'proofs']
const banned = /(?:^|[-.])(?:utils?|helpers?|common|lib|types|managers?)(?=[-.]|$)/
/** What begins a thread or a process is named by its URL. */
const references = /\b(from|import|import\.meta\.resolve|new URL)\s*\(?\s*(['"])((?:\.|#src\/)[^'"]*)\2/g
const clocks = /\bDate\.now\b|\bnew Date\(\s*\)|\bMath\.random\b/g
/** A test that judges how long something took. Drills may: they look at the clock, on a machine that does nothing else. */
const judgedTimes = /\b(?:performance\.now|mono|Date\.now)\(\) - \w+\)\.toBeLessThan(?:OrEqual)?\(([\d_]+)\)/g
/** Below it a busy machine decides. */
const leastJudgedMs = 4_000
/** The title of a case or of a group of cases in a test, also behind `.each(…)`. */
const titles = /(?:\b(?:it|test|describe)(?:\.\w+)*|\))\(\s*(['"`])((?:\\.|(?!\1).)+)\1/g
/** The title of a case of the contract suite: the name of a method or of a field, in quotes. */
const contractTitles = /^ +(?:async )?(['"`])((?:\\.|(?!\1).)* (?:\\.|(?!\1).)*)\1[(:]/gm
/** Forms that a title must not have, each with what to write instead. Tired people read titles, when a test is red. */
const unplain = [
  [/\b(?:is|are|was|were|be|been) told\b/i, "'learns', 'gets' or 'is reported'"],
  [/\b(?:tells?|told) of\b/i, "'reports' or 'shows'"],
  [/\bwhat (?:is|are|was|were) (?:asked|told|said|given|meant|wanted)\b/i, 'a noun for the thing'],
  [/^whom?\b|\bwho(?:m|so)?ever\b/i, 'a noun for the one who does it'],
  [/\bwhere (?:nobody|nothing|none|no|that is|it is (?:asked|said|meant))\b/i, "'if'"],
  [/\bbe (?:it|that|they)\b/i, "'even if' or 'whether'"],
  [/\bso (?:many|much|long|often) (?:[\w-]+ ){0,3}as\b/i, "'at most' or 'as … as'"],
  [/\bin hand\b/i, "'running' or 'held'"],
  [
    /(?:^|[,;:] (?:and |but )?)of (?:what|which|whom|those)\b|^of [^,]*\b(?:nothing|none|nobody)\b/i,
    'the subject first',
  ],
  // Of X, Y is: a title with a verb before its comma, or a conjunction behind it, is another sentence.
  [
    /^of (?![^,]*\b(?:is|are|was|were|has|have|may|can|must)\b)[^,]+, (?!(?:and|as|if|so|or|but|when|with|also|even|unless)\b)(?:[\w-]+ )+(?:is|are|was|were|has|have)\b/i,
    'the subject first',
  ],
]
const exported = /^export (?:(?:async|abstract|declare) )*(?:function\*?|const|let|class|interface|type) (\w+)/gm
const typeNames = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm

const lineOf = (text, index) => text.slice(0, index).split('\n').length

/** The room a file of src/ stands in, its floor, and its alcove: a folder of the room, or else the file itself. */
function placeOf(file) {
  const parts = file.split('/')
  const isOfStores = parts[0] === 'stores' && parts.length > 2
  const room = isOfStores ? `stores/${parts[1]}` : parts[0]
  const floor = floors[room] ?? (isOfStores ? storeFloor : undefined)
  if (floor === undefined || (parts.length === 1 && !room.endsWith('.ts'))) return undefined
  const inside = parts.slice(isOfStores ? 2 : 1)
  return { room, floor, alcove: inside.length > 1 ? `${room}/${inside.slice(0, -1).join('/')}` : file }
}

/**
 * What is said of the house in the folder `root`, line by line, and whether it stands. `lone`: says first which short files
 * only one other imports, each with the reason why it stands alone. Files about which there is nothing to decide are left
 * out: entries, what is loaded when it is needed, and families of a name.
 */
export function houseReport(root, { lone = false } = {}) {
  const violations = []
  /** What is said of the house. */
  const said = []
  const say = (file, line, law) => violations.push(`${file}:${line} ${law}`)

  function codeFiles(folder) {
    if (!existsSync(join(root, folder))) return []
    return readdirSync(join(root, folder), { recursive: true })
      .map((file) => file.replaceAll('\\', '/'))
      .filter((file) => /\.(?:ts|tsx|mjs|sh)$/.test(file) && !/(?:^|\/)node_modules\//.test(file))
      .sort()
  }

  /** The files of each folder. */
  const counts = new Map()
  const count = (folder) => counts.set(folder, (counts.get(folder) ?? 0) + 1)

  /** In how many files each word stands. */
  const users = new Map()
  /** The files of src/ that a test, a proof or a bench imports. */
  const tried = new Set()
  for (const folder of ['src', 'dashboard', 'test', 'scripts', 'site', 'bench', 'proofs', 'examples']) {
    for (const file of codeFiles(folder)) {
      const text = readFileSync(join(root, folder, file), 'utf8')
      const lines = text.trimEnd().split('\n').length
      if (beside.includes(folder)) count(posix.dirname(`${folder}/${file}`))
      if (lines > longest) say(`${folder}/${file}`, longest + 1, `has ${lines} lines; ${longest} is the ceiling`)
      if (/\.test\.ts$/.test(file))
        for (const { index, 1: ms } of text.matchAll(judgedTimes))
          if (Number(ms.replaceAll('_', '')) < leastJudgedMs)
            say(
              `${folder}/${file}`,
              lineOf(text, index),
              `judges ${ms} ms of real time; await an event, move the clock, or measure in bench/`,
            )
      const isContract = folder === 'src' && file.startsWith('store-testing/contract/')
      if (folder === 'test' || isContract)
        for (const { index, 2: title } of text.matchAll(isContract ? contractTitles : titles))
          for (const [form, instead] of unplain) {
            const found = form.exec(title)?.[0]
            if (found !== undefined)
              say(`${folder}/${file}`, lineOf(text, index), `is titled '… ${found} …'; write ${instead}`)
          }
      for (const [, path] of text.matchAll(/['"]#src\/([^'"]*)\.js['"]/g)) tried.add(`${path}.ts`)
      for (const word of new Set(text.match(/\w+/g))) users.set(word, (users.get(word) ?? 0) + 1)
    }
  }

  const names = new Map()
  /** Imports inside a room, between its alcoves and between files of one, and those of the page: of each the importer, the imported, and where. */
  const arrows = { file: [], alcove: [], page: [] }
  /** Of each file of src/: its length, the files that import it, and whether a thread or process begins there. */
  const imported = new Map()
  const importedOf = (file) => {
    if (!imported.has(file)) imported.set(file, { lines: 0, by: new Set(), isEntry: false, isLate: false })
    return imported.get(file)
  }

  /** The files of a folder, each with its code: comments are blanks in it, so that lines keep their numbers. Checks what holds for all. */
  function* checkedFiles(top) {
    const types = new Map()
    for (const file of codeFiles(top)) {
      const shown = `${top}/${file}`
      const text = readFileSync(join(root, top, file), 'utf8')
      const code = text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '))
      const folder = posix.dirname(shown).replace(/\/\.$/, '')
      const name = posix.basename(file)
      count(folder)

      if (!/^(?:#!.*\n)?\/\*\*/.test(text)) say(shown, 1, 'does not begin with a doc comment that says what it is')
      if (names.has(name)) say(shown, 1, `has the same name as ${names.get(name)}`)
      names.set(name, shown)
      for (const part of file.split('/')) if (banned.test(part)) say(shown, 1, `'${part}' says nothing; name the noun`)

      for (const [index, type] of [...code.matchAll(typeNames)].map((match) => [match.index, match[1]])) {
        const other = types.get(type)
        if (other !== undefined && other !== shown)
          say(shown, lineOf(code, index), `'${type}' is a type of ${other} too`)
        types.set(type, shown)
      }

      for (const { index, 1: name } of code.matchAll(exported))
        if (users.get(name) === 1) say(shown, lineOf(code, index), `'${name}' is exported, and used nowhere else`)
      yield { file, shown, code }
    }
  }

  for (const { file, shown, code } of checkedFiles('src')) {
    const place = placeOf(file)
    const folder = posix.dirname(file)
    if (place === undefined) say(shown, 1, 'stands in no room of the house')
    importedOf(file).lines = code.trimEnd().split('\n').length
    // It names itself as the program of a thread.
    if (code.includes('new URL(import.meta.url)')) importedOf(file).isEntry = true

    const isOfPackage = file === 'core/package-files.ts'
    for (const match of code.matchAll(references)) {
      const specifier = match[3]
      const path = specifier.startsWith('#src/') ? specifier.slice(5) : posix.join(folder, specifier)
      const target = path.replace(/\.js$/, '.ts')
      const to = placeOf(target)
      if (match[1] === 'new URL' || match[1] === 'import.meta.resolve') importedOf(target).isEntry = true
      else if (match[0].includes('(')) importedOf(target).isLate = true
      if (match[1] === 'from' || match[1] === 'import') importedOf(target).by.add(file)
      // It names the places of files on every floor.
      if (place === undefined || to === undefined || (match[1] === 'new URL' && isOfPackage)) continue
      const line = lineOf(code, match.index)
      if (place.room !== to.room) {
        if (to.floor >= place.floor)
          say(shown, line, `${place.room} (floor ${place.floor}) must not import ${target} (${to.floor})`)
        continue
      }
      if (match[1] === 'new URL' || match[1] === 'import.meta.resolve') continue
      const at = `${shown}:${line}`
      if (place.alcove === to.alcove) arrows.file.push({ from: file, to: target, at })
      else arrows.alcove.push({ from: place.alcove, to: to.alcove, at })
    }

    const isClock = file === 'core/platform/clock.ts' || /^stores\/.+clock\.ts$/.test(file)
    if (place !== undefined && place.floor <= storeFloor && !isClock)
      for (const match of code.matchAll(clocks))
        say(shown, lineOf(code, match.index), `reads '${match[0]}'; clock and random are handed in on the lower floors`)
    if (place?.room !== 'cli')
      for (const match of code.matchAll(/\bconsole\./g)) say(shown, lineOf(code, match.index), 'prints; only cli/ may')
  }

  /** The page stands beside the rooms: a bundler builds it, and it imports nothing of them. */
  for (const { file, shown, code } of checkedFiles('dashboard/src'))
    for (const match of code.matchAll(references)) {
      const target = posix.join(posix.dirname(file), match[3].replace(/\.js$/, ''))
      if (target.startsWith('..') || match[3].startsWith('#'))
        say(shown, lineOf(code, match.index), `the page must not import ${match[3]}`)
      arrows.page.push({ from: file.replace(/\.tsx?$/, ''), to: target, at: `${shown}:${lineOf(code, match.index)}` })
    }

  for (const [folder, files] of counts) {
    if (files > mostFiles) say(folder, 1, `holds ${files} files; ${mostFiles} is the ceiling, make alcoves`)
    if (files < fewestFiles && beside.includes(folder.split('/')[0]) && folder.includes('/'))
      say(folder, 1, `holds ${files} files; fewer than ${fewestFiles} are no alcove, move them`)
  }
  for (const kind of ['alcove', 'file', 'page'])
    for (const circle of circlesIn(arrows[kind]))
      for (const { from, to, at } of circle) violations.push(`${at} goes round in a circle: ${from} imports ${to}`)

  if (lone) {
    const manifest = join(root, 'package.json')
    const { exports = {} } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')) : {}
    const published = new Set(Object.values(exports).map(({ types }) => types))
    const isPublished = (file) => published.has(`./dist/${file.replace(/\.ts$/, '.d.ts')}`)
    const besides = (file) => [...imported].filter(([one]) => posix.dirname(one) === posix.dirname(file))
    const isOfFamily = (file) => {
      const family = /-[a-z]+\.ts$/.exec(file)?.[0]
      return besides(file).filter(([one]) => one.endsWith(family)).length >= fewestKin
    }
    const alone = [...imported].filter(([file, { lines, by, isEntry, isLate }]) => {
      const isShort = by.size === 1 && lines > 0 && lines <= longestLone
      return isShort && !isEntry && !isLate && ![file, ...by].some(isPublished) && !isOfFamily(file)
    })
    for (const [file, { lines, by }] of alone.sort()) {
      const [importer] = by
      const kin = besides(file).filter(([, other]) => other.by.size === 1 && other.by.has(importer)).length
      const reason = tried.has(file)
        ? 'it has a test of its own'
        : kin >= fewestKin
          ? `one of ${kin} of its folder that this file alone imports`
          : 'no reason'
      said.push(`src/${file}: ${lines} lines, imported by src/${importer} alone: ${reason}`)
    }
    said.push(`Short files with one importer: ${alone.length}.`)
  }

  if (violations.length > 0) said.push(...violations, `Violations: ${violations.length}.`)
  else said.push(`The house stands: ${names.size} files keep its laws.`)
  return { lines: said, stands: violations.length === 0 }
}
