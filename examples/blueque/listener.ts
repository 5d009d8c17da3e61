/**
 * Blueque's `client.get_listener("some.queue")` and its forking runner: takes one task after the other and starts a processor
 * for each, which outlives it. SIGTERM and ^C end the listener; the processor goes on.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import mill from './millrace.config.js'

const processor = fileURLToPath(new URL('processor.ts', import.meta.url))
const stopped = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopped.abort())

const listener = mill.listener('some.queue')
console.log(`listener ${process.pid} listens`)
while (!stopped.signal.aborted) {
  const claim = await listener.next(stopped).catch(whenStopped)
  if (claim === undefined) break
  // A session of its own: what ends this process and its terminal does not end that one.
  // The token stands in the environment: every user of the machine sees arguments.
  const child = spawn(process.execPath, ['--import', 'jiti/register', processor], {
    detached: true,
    env: { ...process.env, MILLRACE_TOKEN: claim.token },
    stdio: 'inherit',
  })
  child.unref()
  if (child.pid === undefined) {
    await claim.release({ delay: '10s' })
    continue
  }
  console.log(`task ${claim.id} runs in process ${child.pid}`)
  // From here on it is not put back when this process ends.
  await claim.started({ pid: child.pid })
  const end = await endOf(child)
  // Answered 'lost' where the processor has settled it, as it should.
  if (end !== undefined) await claim.fail(new Error(`process ${child.pid} ended by ${end}`))
}
await listener.close({ grace: 0 })
await mill.close()
console.log(`listener ${process.pid} has ended`)

/** How the process ended; undefined where this one is to end first. */
function endOf(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    if (stopped.signal.aborted) resolve(undefined)
    else stopped.signal.addEventListener('abort', () => resolve(undefined))
  })
}

function whenStopped(error: unknown): undefined {
  if (!stopped.signal.aborted) throw error
}
