/**
 * Checks the house: the laws of its architecture that a machine can check. `node scripts/check-house.mjs [root]` prints
 * every violation as file:line and exits with 1, or prints one line when all is well.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/** A file imports only from its own room or from floors below. The index stands above all; nobody imports it. */
const floors = {
  core: 0,
  selectors: 1,
  throttle: 1,
  'stores/contract': 1,
  'stores/rules': 1,
  client: 3,
  runtime: 3,
  workers: 4,
  mill: 5,
  cli: 6,
  'store-testing': 6,
  'index.ts': 7,
}
const storeFloor = 2
const longest = 400
const banned = /(?:^|[-.])(?:utils?|helpers?|common|lib|types|managers?)(?=[-.]|$)/
const imports = /(?:\bfrom|\bimport|\bimport\.meta\.resolve|\bnew URL)\s*\(?\s*(['"])((?:\.|#src\/)[^'"]*)\1/g
const clocks = /\bDate\.now\b|\bnew Date\(\s*\)|\bMath\.random\b/g

const root = process.argv[2] ?? '.'
const violations = []
const say = (file, line, law) => violations.push(`${file}:${line} ${law}`)
const lineOf = (text, index) => text.slice(0, index).split('\n').length

/** The room a file of src/ stands in, and its floor; undefined where there is no such room. */
function placeOf(file) {
  const [first, second, third] = file.split('/')
  const isOfStores = first === 'stores' && third !== undefined
  const room = isOfStores ? `${first}/${second}` : first
  const floor = floors[room] ?? (isOfStores ? storeFloor : undefined)
  const fits = floor !== undefined && (second !== undefined || room === 'index.ts')
  return fits ? { room, floor } : undefined
}

function codeFiles(folder) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { recursive: true })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.(?:ts|tsx|mjs)$/.test(file) && !/(?:^|\/)node_modules\//.test(file))
    .sort()
}

for (const folder of ['src', 'test', 'scripts', 'bench', 'proofs', 'examples']) {
  for (const file of codeFiles(folder)) {
    const lines = readFileSync(join(root, folder, file), 'utf8')
      .trimEnd()
      .split('\n').length
    if (lines > longest) say(`${folder}/${file}`, longest + 1, `has ${lines} lines; ${longest} is the ceiling`)
  }
}

const seen = new Map()
for (const file of codeFiles('src')) {
  const shown = `src/${file}`
  const text = readFileSync(join(root, 'src', file), 'utf8')
  // Comments become blanks, so that lines keep their numbers.
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '))
  const place = placeOf(file)
  const name = posix.basename(file)

  if (!/^(?:#!.*\n)?\/\*\*/.test(text)) say(shown, 1, 'does not begin with a doc comment that says what it is')
  if (seen.has(name)) say(shown, 1, `has the same name as src/${seen.get(name)}`)
  seen.set(name, file)
  for (const part of file.split('/')) if (banned.test(part)) say(shown, 1, `'${part}' says nothing; name the noun`)
  if (place === undefined) say(shown, 1, 'stands in no room of the house')

  for (const match of code.matchAll(imports)) {
    const specifier = match[2]
    const path = specifier.startsWith('#src/') ? specifier.slice(5) : posix.join(posix.dirname(file), specifier)
    const target = path.replace(/\.js$/, '.ts')
    const to = placeOf(target)
    if (place === undefined || to === undefined || place.room === to.room) continue
    if (to.floor < place.floor) continue
    say(
      shown,
      lineOf(code, match.index),
      `${place.room} (floor ${place.floor}) must not import ${target} (${to.floor})`,
    )
  }

  const isClock = file === 'core/platform/clock.ts' || /^stores\/.+clock\.ts$/.test(file)
  if (place !== undefined && place.floor <= storeFloor && !isClock)
    for (const match of code.matchAll(clocks))
      say(shown, lineOf(code, match.index), `reads '${match[0]}'; clock and random are handed in on the lower floors`)
  if (place?.room !== 'cli')
    for (const match of code.matchAll(/\bconsole\./g)) say(shown, lineOf(code, match.index), 'prints; only cli/ may')
}

if (violations.length > 0) {
  console.log(violations.join('\n'))
  console.log(`Violations: ${violations.length}.`)
  process.exitCode = 1
} else {
  console.log(`The house stands: ${seen.size} files keep its laws.`)
}
