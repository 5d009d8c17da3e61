/** A worker of the steps drill, in a process of its own: serves the runs until it is killed, or told to leave. */

import { ownMill } from './step-tasks.js'

const mill = ownMill()
await mill.worker({ concurrency: 5 }).start()
process.once('SIGTERM', () => void mill.close().then(() => process.exit(0)))
process.send?.('ready')
