/**
 * A stop request: the first SIGINT, SIGTERM or SIGHUP, or the loss of the parent, asks to stop; a second signal ends
 * the process at once.
 */

import { type StopSignal, signalExitCode, stopSignals } from './exit-code.js'

export type StopCause = StopSignal | 'disconnect'

const parentEveryMs = 500

/**
 * Listens from now on; resolves with the first cause. `endNow` is called at the second signal, before the process ends.
 * `isSupervised`: a supervisor ends this process if necessary, so a second signal has no effect. `lost`: resolves when
 * that supervisor is gone.
 */
export function stopRequest(
  endNow: () => void = () => {},
  isSupervised: () => boolean = () => false,
  lost?: Promise<void>,
): Promise<StopCause> {
  return new Promise((resolve) => {
    let signals = 0
    for (const signal of stopSignals) {
      process.on(signal, () => {
        signals += 1
        resolve(signal)
        if (signals === 1 || isSupervised()) return
        endNow()
        process.exit(signalExitCode(signal))
      })
    }
    void lost?.then(() => resolve('disconnect'))
    process.once('disconnect', () => resolve('disconnect'))
    // The parent may have died while this process was still loading.
    if (process.send !== undefined && !process.connected) resolve('disconnect')
    if (process.env['npm_command'] === 'exec') whenOrphaned(() => resolve('disconnect'))
  })
}

/**
 * Calls `orphaned` when a shell of `npx` is gone. `npx` passes a signal to the shell that runs the command, and the
 * shell ends without passing it on. The end of the shell is the only sign of a stop. No other parent is watched like
 * this: a command in the background of a script should go on.
 */
function whenOrphaned(orphaned: () => void): void {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    orphaned()
  }, parentEveryMs)
  watch.unref()
}
