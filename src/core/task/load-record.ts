/**
 * The load record: while the files of a user are loaded, mistakes in tasks are recorded instead of thrown, so that all of them can
 * be told at once, with what else is wrong. Nothing runs then: the loading fails when it is over.
 */

import type { ConfigError } from '../errors.js'

interface TaskMistakes {
  /** `task 'mail'`. */
  readonly what: string
  readonly name: string | undefined
  readonly error: ConfigError
}

export interface LoadRecord {
  readonly mistakes: TaskMistakes[]
  /** The stack of each definition, by the name of its task. */
  readonly stacks: Map<string, string>
}

/** Known to every copy of the library in this process: the file that is loaded may have found another one. */
const key = Symbol.for('millrace.load-record')
const known = globalThis as { [key]?: LoadRecord | undefined }

/** Undefined while nothing is loaded. */
export function loadRecord(): LoadRecord | undefined {
  return known[key]
}

/** Keeps the record for as long as `load` takes. */
export async function whileRecording<T>(record: LoadRecord, load: () => Promise<T>): Promise<T> {
  const before = known[key]
  known[key] = record
  try {
    return await load()
  } finally {
    if (before === undefined) delete known[key]
    else known[key] = before
  }
}
