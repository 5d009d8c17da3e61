/**
 * The history: what happened to the files of a git repository, change by change, in order. Where there is none, the wishes of
 * installed packages take its place: which version of another each of them asks for.
 */

import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { figure } from './display.js'

export interface Change {
  /** What changed: the path of a file, or the name of a package. */
  readonly id: string
  /** Its place in the history. */
  readonly place: number
  /** Who changed it: a commit, or a package that asks. */
  readonly by: string
  /** What it became: the hash of its content, or a range of versions. */
  readonly to: string
}

export interface History {
  /** For people: how many changes of what, and whose. */
  readonly title: string
  readonly ids: number
  readonly changes: readonly Change[]
}

type Unplaced = Omit<Change, 'place'>

/** With fewer changes to files that had changed before, there is little to bring in order. */
const fewestRepeats = 50
/** Nobody waits longer for git; what it has said by then is the history. */
const gitPatienceMs = 10_000
/** The ids of jobs are no longer. */
const longestIdBytes = 256

/** The latest `most` changes of the first of these folders that lies in a git repository, else the wishes of `packages`. */
export async function historyOf(folders: readonly string[], packages: string, most: number): Promise<History> {
  for (const folder of folders) {
    const history = historyFrom(await gitChanges(folder, most), ['changes to', 'files by the commits of', folder])
    if (history.changes.length - history.ids >= fewestRepeats) return history
  }
  return historyFrom(await wishes(packages, most), ['wishes for', 'packages by those of', packages])
}

function historyFrom(found: readonly Unplaced[], [verb, noun, where]: readonly [string, string, string]): History {
  const changes = placed(found)
  const ids = new Set(changes.map(({ id }) => id)).size
  return { title: `${figure(changes.length)} ${verb} ${figure(ids)} ${noun} ${where}`, ids, changes }
}

function placed(changes: readonly Unplaced[]): Change[] {
  return changes
    .filter(({ id }) => id.length > 0 && Buffer.byteLength(id) <= longestIdBytes)
    .map((change, place) => ({ ...change, place }))
}

/** Old to new, along the first parents, so that a file is what its last change made of it. Empty where git does not answer. */
async function gitChanges(folder: string, most: number): Promise<Unplaced[]> {
  const args = ['--first-parent', '-m', '--raw', '--no-abbrev', '--no-renames', '--no-color', '--no-show-signature']
  // A hook of git's would hand on which repository it runs for; and nothing is to be fetched.
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  const git = spawn('git', ['-C', folder, 'log', ...args, '--format=commit %H'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...Object.fromEntries(environment), GIT_NO_LAZY_FETCH: '1' },
    timeout: gitPatienceMs,
  })
  const ended = new Promise<void>((resolve) => git.once('error', () => resolve()).once('close', () => resolve()))
  const changes: Unplaced[] = []
  let by = ''
  // Newest first, and no further back than needed: the history may be long.
  for await (const line of createInterface({ input: git.stdout })) {
    if (line.startsWith('commit ')) by = line.slice('commit '.length)
    // ":100644 100644 <old blob> <new blob> M\t<path>"
    const [, to, id] = /^:\d+ \d+ [0-9a-f]+ ([0-9a-f]+) \w+\t(.+)$/.exec(line) ?? []
    if (to !== undefined && id !== undefined) changes.push({ id, by, to })
    if (changes.length === most) break
  }
  git.kill()
  await ended
  return changes.reverse()
}

async function wishes(packages: string, most: number): Promise<Unplaced[]> {
  const files = await readdir(packages, { recursive: true }).catch(() => [])
  const changes: Unplaced[] = []
  for (const file of files.filter((name) => /(^|\/)package\.json$/.test(name)).sort()) {
    const text = await readFile(join(packages, file), 'utf8')
    changes.push(...wishesIn(text))
    if (changes.length >= most) break
  }
  return changes.slice(0, most)
}

const wishFields = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']

/** None where the text is not that of a package. */
function wishesIn(text: string): Unplaced[] {
  const found = parsed(text)
  const by = `${found['name']}@${found['version']}`
  const fields = wishFields.flatMap((field) => Object.entries(found[field] ?? {}))
  return fields.map(([id, range]) => ({ id, by, to: String(range) }))
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
