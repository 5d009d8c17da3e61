/** A worker of the chains, in a process of its own: serves the given queues until it is killed. */

import mill from './chain-tasks.js'

await mill.worker({ queues: process.argv.slice(2) as ('parents' | 'apart' | 'children')[], concurrency: 5 }).start()
process.once('SIGTERM', () => void mill.close())
