/** A stop request: the first SIGINT or SIGTERM, or the loss of the parent, asks to stop; a second signal ends the process at once. */

import { signalExitCode } from './exit-code.js'

export type StopCause = 'SIGINT' | 'SIGTERM' | 'disconnect'

/** Listens from now on; resolves with the first cause. `endNow` is called at the second signal, before the process ends. */
export function stopRequest(endNow: () => void = () => {}): Promise<StopCause> {
  return new Promise((resolve) => {
    let signals = 0
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        signals += 1
        resolve(signal)
        if (signals === 1) return
        endNow()
        process.exit(signalExitCode(signal))
      })
    }
    process.once('disconnect', () => resolve('disconnect'))
    // The parent may have died while this process was still loading.
    if (process.send !== undefined && !process.connected) resolve('disconnect')
  })
}
