/**
 * The demo: real work done by two worker processes, and verified without them: checksums of files through three queues, the
 * history of a git repository through an ordered one, a crawl of two web sites through a throttled one, and an archive by a
 * process that outlives its worker.
 *
 *   npm run demo [-- DIR] [--json] [--keep]        on a SQLite file of its own, or the Postgres, Redis or SQS of MILLRACE_STORE
 */

import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checksumPart } from './checksum-part.js'
import { crawlPart } from './crawl-part.js'
import { figure, say } from './display.js'
import { filesOf } from './files.js'
import { historyOf } from './history.js'
import { historyPart } from './history-part.js'
import { orInterrupted } from './interruption.js'
import { packPart } from './pack-part.js'
import { Place } from './place.js'
import { type Tree, treeOf } from './tree.js'

const mostFiles = 20_000
const mostChanges = 10_000

const { values: flags, positionals } = parseArgs({
  options: { json: { type: 'boolean' }, keep: { type: 'boolean' } },
  allowPositionals: true,
})
const checkout = resolve(fileURLToPath(new URL('../..', import.meta.url)))
const packages = join(checkout, 'node_modules')
// npm changes to the package's folder; INIT_CWD is where the user stood.
const given =
  positionals[0] === undefined ? undefined : resolve(process.env['INIT_CWD'] ?? process.cwd(), positionals[0])

async function demo(): Promise<void> {
  const folder = given ?? packages
  const { paths, bytes, more } = await filesOf(folder, mostFiles)
  if (paths.length === 0) throw new Error(`there are no readable files in ${folder}`)
  say(`${figure(paths.length)}${more ? ' of the many' : ''} files of ${folder}, ${figure(bytes / 1e6, 1)} MB`)
  if (more) say(`(more than ${figure(mostFiles)} are not taken)`)
  const place = await Place.open()
  try {
    const checksums = await checksumPart(place, paths)
    const folders = given === undefined ? [checkout] : [given, checkout]
    const ordered = await historyPart(place, await orInterrupted(historyOf(folders, packages, mostChanges)))
    if (!place.isWhole)
      say('\nSQS has no throttles, and no processes that outlive their worker: crawl and archive are left out')
    const rest = place.isWhole && {
      crawled: await crawlPart(place, checkout),
      packed: await packPart(place, await orInterrupted(treeToPack(folder, paths))),
    }
    if (flags.json) say(JSON.stringify({ verified: true, ...checksums, ordered, ...rest }))
  } finally {
    const kept = await place.close(flags.keep === true)
    if (kept !== undefined) say(`kept: ${kept}`)
  }
}

/** Where all files are large, the documentation. */
async function treeToPack(folder: string, paths: readonly string[]): Promise<Tree> {
  const tree = await treeOf(folder, paths)
  if (tree.checksums.size > 0) return tree
  const documentation = join(checkout, 'docs')
  return treeOf(documentation, (await filesOf(documentation, mostFiles)).paths)
}

try {
  await demo()
} catch (error) {
  process.stderr.write(`demo: ${(error as Error).message}\n`)
  process.exitCode = 1
}
process.exit()
