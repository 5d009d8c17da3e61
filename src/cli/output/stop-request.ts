/** A stop request: the first SIGINT, SIGTERM or SIGHUP, or the loss of the parent, asks to stop; a second signal ends the process at once. */

import { type StopSignal, signalExitCode, stopSignals } from './exit-code.js'

export type StopCause = StopSignal | 'disconnect'

const parentEveryMs = 500

/**
 * Listens from now on; resolves with the first cause. `endNow` is called at the second signal, before the process ends.
 * `isSupervised`: who watches over this process ends it where that is wanted, and a second signal means nothing by itself.
 * `lost`: resolves when that one is gone.
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
 * `npx` passes a signal on to the shell by which it starts a command, and the shell ends without passing it on: that it is
 * gone is all that the command ever hears of a stop. Nobody else is watched so: who runs it in the background of a script
 * wants it to go on.
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
