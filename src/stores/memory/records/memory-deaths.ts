/** The facet `deaths` of a memory store. */

import type { Deaths } from '../../contract/job-records.js'
import type { MemoryAdmin } from '../memory-admin.js'

export function memoryDeaths(store: MemoryAdmin): Deaths {
  return {
    async unreported(names, tasks, limit) {
      const shards = names.flatMap((name) => store.queues().shardsOf(name))
      const deaths = shards.flatMap((shard) => shard.unreported)
      return deaths.filter(({ task }) => tasks.includes(task)).slice(0, limit)
    },

    async reported(name, deaths) {
      for (const { id, number } of deaths) {
        const queue = store.queues().holding(name, id)
        queue.unreported = queue.unreported.filter((death) => death.number !== number || death.id !== id)
      }
    },
  }
}
