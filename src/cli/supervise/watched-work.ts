/** Watched work: the supervisor of `millrace work --watch`, restarted whenever a source file changes. */

import { relative } from 'node:path'
import type { StopCause } from '../output/stop-request.js'
import type { Terminal } from '../output/terminal.js'
import type { SourceChanges } from './source-changes.js'
import type { Supervisor } from './supervisor.js'

interface WatchedParts {
  readonly start: () => Supervisor
  readonly changes: SourceChanges
  readonly stopped: Promise<StopCause>
  readonly terminal: Terminal
}

type Cause = { readonly stop: StopCause } | { readonly file: string } | { readonly code: number }

/**
 * Resolves with the exit code when a signal has stopped it. If a supervisor ends by itself, as after a mistake in a
 * file, it waits for the next change.
 */
export async function watchedWork({ start, changes, stopped, terminal }: WatchedParts): Promise<number> {
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
