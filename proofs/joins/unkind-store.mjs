/**
 * The store of the joins drill as every process and thread of it opens it where reports are to come twice and late. Every
 * settle, graph and seal is sent twice, as after a lost answer. On Redis what a shard has to tell joins in others waits
 * there for a while, and is told twice; then the join hears once more what it had heard before that.
 */

import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'

/** For so long, in ms, each entry of an outbox is not looked at. */
const lateMs = 400

/** `JOIN_STORE` is the URL of the store. */
export function open(access) {
  const url = process.env.JOIN_STORE
  if (url.startsWith('sqlite:')) return repeating(new SqliteStore({ file: url.slice('sqlite:'.length) }))
  return repeating(new RedisStore({ client: unkind(openRedisClient(redisAddress(url))), ...access }))
}

function repeating(store) {
  const twice = (call) => async (argument, more) => {
    const answer = await call(argument, more)
    await call(argument, more)
    return answer
  }
  const joins = changed(store.joins, {
    enqueue: twice((calls) => store.joins.enqueue(calls)),
    seal: twice((join, sizes) => store.joins.seal(join, sizes)),
  })
  return changed(store, { joins, settle: twice((items) => store.settle(items)) })
}

function unkind(client) {
  /** The arguments of the latest call by which each join heard each fragment. */
  const heard = new Map()
  return changed(client, {
    async run(script, keys, args, replicas) {
      if (script.name === 'join-reports' && Number(args[0]) < lateMs)
        return client.run(script, keys, [String(lateMs), ...args.slice(1)], replicas)
      if (script.name !== 'join-hear') return client.run(script, keys, args, replicas)
      const of = [...keys.slice(0, 1), ...args.slice(0, 4)].join('\0')
      const before = heard.get(of)
      heard.set(of, args)
      const answer = await client.run(script, keys, args, replicas)
      await client.run(script, keys, args, replicas)
      if (before !== undefined) await client.run(script, keys, before, replicas)
      return answer
    },
  })
}

/** The same object with other methods. */
function changed(target, others) {
  return new Proxy(target, {
    get(_, key) {
      if (key in others) return others[key]
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
