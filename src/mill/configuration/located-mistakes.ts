/** Located mistakes: all mistakes in a user's files, reported at once, each with file, line and column. */

import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { ConfigError, type ConfigIssue, hasCode } from '../../core/errors.js'
import { type LoadRecord, whileRecording } from '../../core/task/task-definition.js'
import { type LiteralRoot, placeInSource, type SourcePlace } from './object-literal.js'
import { UserModuleError, userFileOf } from './user-modules.js'

/** The source of a mill's options: their file and object. */
interface OptionSource {
  readonly file: string
  /** Undefined: it is not known which object of the file holds the options. */
  readonly root: LiteralRoot | undefined
}

/** The mistakes that `millrace()` found in options from these files. */
export class OptionMistakes extends Error {
  readonly error: ConfigError
  readonly sources: readonly OptionSource[]

  constructor(error: ConfigError, sources: readonly OptionSource[]) {
    super(error.message)
    this.error = error
    this.sources = sources
  }
}

/** The result of `load`. Throws one `ConfigError` with every mistake found meanwhile; any other error as it is. */
export async function withLocatedMistakes<T extends { readonly file: string }>(
  cwd: string,
  load: () => Promise<T>,
): Promise<T> {
  const record: LoadRecord = { mistakes: [], stacks: new Map() }
  const locator = new Locator(cwd, record)
  try {
    const loaded = await whileRecording(record, load)
    if (record.mistakes.length === 0) return loaded
    throw locator.all(loaded.file, [], record.mistakes[0]!.error)
  } catch (error) {
    throw locator.located(error)
  }
}

interface LocatedIssue extends ConfigIssue {
  readonly file: string | undefined
  readonly offset: number
}

function unplaced(issue: ConfigIssue): LocatedIssue {
  return { ...issue, file: undefined, offset: Number.POSITIVE_INFINITY }
}

/** The subjects that `millrace()` may call not valid. */
const millMistakes = /^the (?:configuration|store|queue file .*)$/

class Locator {
  readonly #cwd: string
  readonly #record: LoadRecord

  constructor(cwd: string, record: LoadRecord) {
    this.#cwd = cwd
    this.#record = record
  }

  located(error: unknown): unknown {
    if (error instanceof OptionMistakes) {
      const issues = error.error.issues.map((issue) => this.#ofMill(issue, error.sources))
      return this.all(error.sources.map(({ file }) => file).join(' and '), issues, error.error)
    }
    if (!(error instanceof UserModuleError)) return error
    const { file, cause } = error
    if (!hasCode(cause, 'config-invalid') || !millMistakes.test(cause.what))
      return this.all(file, error.issues.map(unplaced), cause)
    const thrower = userFileOf(cause.stack) ?? file
    const issues = cause.issues.map((issue) => this.#ofMill(issue, [{ file: thrower, root: 'millrace' }]))
    return this.all(file, issues, cause)
  }

  /** One error with these mistakes and those of all tasks, file by file and line by line. */
  all(what: string, issues: readonly LocatedIssue[], cause: unknown): ConfigError {
    const all = [...this.#ofTasks(), ...issues]
    const files = [...new Set(all.map(({ file }) => file))]
    const inFiles = files.flatMap((file) =>
      all.filter((issue) => issue.file === file).sort((a, b) => a.offset - b.offset),
    )
    return new ConfigError(
      what,
      inFiles.map(({ path, message }) => ({ path, message })),
      { cause },
    )
  }

  /** A module loaded by two loaders reports each of its mistakes twice. */
  #ofTasks(): LocatedIssue[] {
    const issues = this.#record.mistakes.flatMap(({ what, name, error }) => {
      const file = userFileOf(error.stack)
      const sources = file === undefined ? [] : [{ file, root: name === undefined ? undefined : { task: name } }]
      return error.issues.map((issue) => this.#placed(issue, what, issue.path.split('.'), sources))
    })
    return [...new Map(issues.map((issue) => [`${issue.path} ${issue.message}`, issue])).values()]
  }

  #ofMill(issue: ConfigIssue, sources: readonly OptionSource[]): LocatedIssue {
    const { path } = issue
    // The message of a queue file has the place already.
    if (/:\d+:\d+$/.test(path)) return unplaced(issue)
    const [option, ...rest] = path.split('.')
    const task = option === 'tasks' && [...this.#record.stacks].find(([name]) => rest.join('.').startsWith(`${name}.`))
    if (!task) return this.#placed(issue, '', path.split('.'), sources)
    const [name, stack] = task
    const file = userFileOf(stack)
    const steps = rest.join('.').slice(name.length + 1)
    return this.#placed(issue, '', steps.split('.'), file === undefined ? sources : [{ file, root: { task: name } }])
  }

  /**
   * The mistake with the place of the deepest entry on its path, in the last file that has one. Otherwise with the file
   * alone.
   */
  #placed(
    { path, message }: ConfigIssue,
    what: string,
    steps: readonly string[],
    sources: readonly OptionSource[],
  ): LocatedIssue {
    const places = sources.flatMap(({ file, root }) => {
      const place = placeIn(file, root, steps)
      return place === undefined ? [] : [{ file, ...place }]
    })
    const deepest = Math.max(...places.map(({ depth }) => depth))
    const place = places.findLast(({ depth }) => depth === deepest)
    const file = place?.file ?? (sources.length === 1 ? sources[0]!.file : undefined)
    const at = place === undefined ? '' : `:${place.line}:${place.column}`
    const where = file === undefined ? '' : `${this.#shown(file)}${at}`
    const told = [where, what, path].filter((part) => part !== '').join(' ')
    return { file, offset: place?.offset ?? Number.POSITIVE_INFINITY, path: told, message }
  }

  #shown(file: string): string {
    const path = relative(this.#cwd, file)
    return path.startsWith('..') ? file : path
  }
}

function placeIn(file: string, root: LiteralRoot | undefined, steps: readonly string[]): SourcePlace | undefined {
  if (root === undefined) return undefined
  try {
    return placeInSource(readFileSync(file, 'utf8'), root, steps)
  } catch {
    return undefined
  }
}
