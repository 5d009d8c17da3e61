/** Blueque's `client.get_processor(task)`: runs one task, the one that its listener names, and says how it ended. */

import { setTimeout as sleep } from 'node:timers/promises'
import mill from './millrace.config.js'

interface Parameters {
  readonly frames: number
  readonly msPerFrame?: number
  readonly failsAt?: number
}

const processor = mill.listener<Parameters>('some.queue')
// Its lease is kept here from now on, whether the listener lives or not.
const task = await processor.attach(process.env['MILLRACE_TOKEN']!)
await task.started({ pid: process.pid })
try {
  const { frames, msPerFrame = 100, failsAt } = task.input
  // Where an attempt before this one was killed, it had come so far.
  for (let frame = Number(task.lastCheckpoint ?? 0); frame < frames; frame += 1) {
    if (frame === failsAt) throw new Error(`frame ${frame} is broken`)
    await sleep(msPerFrame, undefined, { signal: task.signal })
    task.progress((frame + 1) / frames, `frame ${frame + 1} of ${frames}`)
    await task.checkpoint(frame + 1)
  }
  console.log(`task ${task.id} is complete: ${await task.complete({ frames })}`)
} catch (error) {
  // Cancelled, or lost, or a failure of its own: the first and the last end it, the second is somebody else's now.
  console.log(`task ${task.id} has failed: ${await task.fail(task.signal.aborted ? task.signal.reason : error)}`)
}
await mill.close()
