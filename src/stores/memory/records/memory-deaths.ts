/** The facet `deaths` of a memory store. */

import type { Deaths } from '../../contract/job-records.js'
import type { MemoryAdmin } from '../memory-admin.js'

export function memoryDeaths(store: MemoryAdmin): Deaths {
  return {
    async untold(names, tasks, limit) {
      const shards = names.flatMap((name) => store.queues().shardsOf(name))
      const untold = shards.flatMap((shard) => shard.untold)
      return untold.filter(({ task }) => tasks.includes(task)).slice(0, limit)
    },

    async told(name, deaths) {
      for (const { id, number } of deaths) {
        const queue = store.queues().holding(name, id)
        queue.untold = queue.untold.filter((death) => death.number !== number || death.id !== id)
      }
    },
  }
}
