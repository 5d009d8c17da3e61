/**
 * The load record: mistakes in tasks, recorded instead of thrown while the files of a user are loaded. All mistakes can
 * then be reported at once. Nothing runs meanwhile: the loading fails at its end.
 */

import type { ConfigError } from '../errors.js'

interface TaskMistakes {
  /** As in `task 'mail'`. */
  readonly what: string
  readonly name: string | undefined
  readonly error: ConfigError
}

export interface LoadRecord {
  readonly mistakes: TaskMistakes[]
  /** The stack of each definition, by the name of its task. */
  readonly stacks: Map<string, string>
}

/** A global symbol, because the loaded file may have found another copy of the library. */
const key = Symbol.for('millrace.load-record')
const known = globalThis as { [key]?: LoadRecord | undefined }

/** The current record; undefined while no files are loaded. */
export function loadRecord(): LoadRecord | undefined {
  return known[key]
}

/** Keeps the record until `load` has ended. */
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
