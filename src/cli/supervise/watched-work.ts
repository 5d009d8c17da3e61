/** Watched work: the supervisor of `millrace work --watch`, restarted whenever a source file changes. */

import { type FSWatcher, readdirSync, statSync, type WatchEventType, watch } from 'node:fs'
import { basename, extname, join, relative, sep } from 'node:path'
import type { StopCause } from '../process/stop-request.js'
import type { Terminal } from '../terminal/terminal.js'
import type { Supervisor } from './supervisor.js'

type Cause = { readonly stop: StopCause } | { readonly file: string } | { readonly code: number }

/**
 * Resolves with the exit code when a signal has stopped it. If a supervisor ends by itself, as after a mistake in a
 * file, it waits for the next change.
 */
export async function watchedWork(
  start: () => Supervisor,
  changes: SourceChanges,
  stopped: Promise<StopCause>,
  terminal: Terminal,
): Promise<number> {
  let isStopped = false
  const stop = stopped.then((cause): Cause => {
    isStopped = true
    return { stop: cause }
  })
  try {
    for (;;) {
      const change = changes.next().then((file): Cause => ({ file }))
      const supervisor = start()
      const run = supervisor.run()
      const ended = run.then((code): Cause => ({ code }))
      let cause = await Promise.race([stop, change, ended])
      if ('code' in cause) {
        const { code } = cause
        terminal.event('work.waiting', { code }, () => terminal.colors.yellow('waits for a file to change'))
        cause = await Promise.race([stop, change])
        if ('stop' in cause) return code
      }
      if ('file' in cause) {
        const file = relative(process.cwd(), cause.file)
        terminal.event('file.changed', { file }, () => `${file} has changed`)
      }
      supervisor.stop('stop' in cause ? cause.stop : 'change')
      const code = await run
      if (isStopped) return code
    }
  } finally {
    changes.close()
  }
}

const sources = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.yaml', '.yml'])
/** Folders that package managers, builds and Millrace itself write. */
const ignored = new Set(['node_modules', 'dist', 'build', 'coverage'])
/** An editor writes a file in several steps, and saves several files at once. */
const quietMs = 100

/** Source changes: the changed source files below some folders while `millrace work --watch` runs. */
export class SourceChanges {
  readonly #watchers = new Map<string, FSWatcher>()
  #changed: string | undefined
  #quiet: NodeJS.Timeout | undefined
  #tell: (file: string) => void = () => {}

  /**
   * Watches from now on, including folders that are made later. Hidden folders and those of packages and builds are
   * left out.
   */
  constructor(folders: readonly string[]) {
    for (const folder of folders) this.#watch(folder, false)
  }

  /** Resolves with a file that has changed since the last call, once no more have changed for 100 ms. */
  next(): Promise<string> {
    return new Promise((resolve) => {
      this.#tell = resolve
      this.#settle()
    })
  }

  close(): void {
    clearTimeout(this.#quiet)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /** Everything that is already in a new folder counts as changed: it was written before the watcher was there. */
  #watch(folder: string, isNew: boolean): void {
    if (this.#watchers.has(folder)) return
    try {
      const watcher = watch(folder, (event, name) => name !== null && this.#onChange(event, join(folder, name)))
      watcher.on('error', () => this.#leave(folder))
      this.#watchers.set(folder, watcher)
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name)
        if (entry.isDirectory() && !isIgnored(entry.name)) this.#watch(path, isNew)
        else if (isNew) this.#mark(path)
      }
    } catch {
      // It is gone, or may not be read.
      this.#leave(folder)
    }
  }

  /** Stops watching the folder and all below it. */
  #leave(folder: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (path !== folder && !path.startsWith(folder + sep)) continue
      watcher.close()
      this.#watchers.delete(path)
    }
  }

  #onChange(event: WatchEventType, path: string): void {
    const name = basename(path)
    if (isIgnored(name)) return
    // It was removed or created: a new folder of this name is not seen by the old watcher.
    if (event === 'rename' && this.#watchers.has(path)) this.#leave(path)
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) this.#watch(path, true)
    else this.#mark(path)
  }

  #mark(path: string): void {
    if (!sources.has(extname(path))) return
    this.#changed ??= path
    this.#settle()
  }

  #settle(): void {
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => {
      if (this.#changed === undefined) return
      const [file, tell] = [this.#changed, this.#tell]
      this.#changed = undefined
      tell(file)
    }, quietMs)
  }
}

function isIgnored(name: string): boolean {
  return ignored.has(name) || name.startsWith('.')
}
