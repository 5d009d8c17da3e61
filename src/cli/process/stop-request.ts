/**
 * A stop request: the first SIGINT, SIGTERM or SIGHUP, or the loss of the parent, asks to stop; a second signal ends
 * the process at once.
 */

import { type StopSignal, signalExitCode, stopSignals } from './exit-code.js'
import { whenRunnerIsGone } from './script-runner.js'

export type StopCause = StopSignal | 'disconnect'

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
    whenRunnerIsGone(() => resolve('disconnect'))
  })
}
