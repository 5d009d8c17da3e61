/**
 * The runner of a script: `npm run`, `npx` and their like start a command through a shell, which ends at a signal
 * without passing it on. The end of the two is the only sign of a stop that the command gets.
 */

import { readFileSync } from 'node:fs'
import { hasEnded, parentIn } from '../../core/platform/proc-text.js'

const lookEveryMs = 500

/**
 * Calls `gone` when the shell in which a runner started this command is gone, or the runner itself. No other parent is
 * watched: a command that a shell or a script has put into the background goes on, and so does one that a service
 * manager, `nohup` or `setsid` has started.
 */
export function whenRunnerIsGone(gone: () => void): void {
  const shell = process.ppid
  if (!isInShellOfRunner(process.env['npm_lifecycle_script'], shell, textAt(`/proc/${shell}/cmdline`))) return
  const runner = parentOf(shell)
  const watch = setInterval(() => {
    if (process.ppid === shell && parentOf(shell) === runner) return
    clearInterval(watch)
    gone()
  }, lookEveryMs)
  watch.unref()
}

/**
 * Whether a process of parent `shell` was started in the foreground of the shell that runs this script. `cmdline`: that
 * of the parent; empty if the system does not say. Pure.
 */
export function isInShellOfRunner(script: string | undefined, shell: number, cmdline: string): boolean {
  // The parent of a command in the background has ended, or will.
  if (script === undefined || shell === 1 || /(?<![&>])&(?![&>])|\b(?:nohup|setsid)\b/.test(script)) return false
  if (cmdline === '') return true
  const [, flag, command = ''] = cmdline.split('\0')
  return flag === '-c' && command.startsWith(script)
}

/** Undefined if the system does not say. */
function parentOf(pid: number): number | undefined {
  const stat = textAt(`/proc/${pid}/stat`)
  return hasEnded(stat) === true ? undefined : parentIn(stat)
}

function textAt(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
