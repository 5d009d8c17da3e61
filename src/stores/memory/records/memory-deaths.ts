/** The facet `deaths` of a memory store. */

import { type DeathBacklog, type Deaths, tasksInBacklog, type UnreportedDeath } from '../../contract/job-records.js'
import type { MemoryAdmin } from '../memory-admin.js'

export function memoryDeaths(store: MemoryAdmin): Deaths {
  return {
    async unreported(names, tasks, limit, except = []) {
      const shards = names.flatMap((name) => store.queues().shardsOf(name))
      const deaths = shards.flatMap((shard) => shard.unreported)
      const isAsked = ({ queue, id, task, number }: UnreportedDeath) =>
        tasks.includes(task) &&
        !except.some((other) => other.number === number && other.id === id && other.queue === queue)
      return deaths.filter(isAsked).slice(0, limit)
    },

    async backlog(names, most) {
      return names.flatMap((queue) => {
        const deaths = store
          .queues()
          .shardsOf(queue)
          .flatMap((shard) => shard.unreported)
        const tasks = new Map<string, DeathBacklog>()
        for (const { task, diedAt } of deaths) {
          const { count, since } = tasks.get(task) ?? { count: 0, since: diedAt }
          tasks.set(task, { queue, task, count: Math.min(count + 1, most), since })
        }
        return [...tasks.values()].slice(0, tasksInBacklog)
      })
    },

    async reported(name, deaths) {
      for (const { id, number } of deaths) {
        const queue = store.queues().holding(name, id)
        queue.unreported = queue.unreported.filter((death) => death.number !== number || death.id !== id)
      }
    },
  }
}
