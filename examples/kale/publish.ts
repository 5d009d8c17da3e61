/** Kale's `tasks.MyTask.publish(app_data, arg1, arg2)`: one that succeeds, one that does at its second run, one that never does. */

import mill from './millrace.config.js'
import { failTask, myTask } from './tasks.js'

await mill.enqueue(myTask, { arg1: 'hello', arg2: 42 }, { meta: { environment: 'test' } })
await mill.enqueue(failTask, { failures: 1 })
await mill.enqueue(failTask, { failures: 3 }, { queue: 'low_priority' })
console.log('3 published')
await mill.close()
