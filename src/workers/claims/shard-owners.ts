/**
 * The owners of shards: which worker asks which shard first. If two workers disagree (one has died, one has an older
 * list), a claim is wasted on an empty shard, but nothing is unsafe: a worker whose own shards are empty asks all
 * others. Pure.
 */

// Not imported by name: an older Node would fail at the import, with an error that does not say that it is too old.
import zlib from 'node:zlib'

/** A shard of an ordered queue. */
export interface ShardRef {
  readonly queue: string
  readonly shard: number
}

/**
 * The shards that a worker asks first: those dealt to one member of a fixed number, numbered from 0, or those that a
 * function picks from all shards of all ordered queues.
 */
export type ShardsOf = { readonly member: number; readonly members: number } | ShardChoice
export type ShardChoice = (shards: readonly ShardRef[]) => readonly ShardRef[]

/** Deals shards to the members round robin, as Lowkiq does to its nodes. */
export function dealt(shards: readonly ShardRef[], member: number, members: number): ShardRef[] {
  return shards.filter((_, i) => i % members === member)
}

/**
 * The shards of a queue that `worker`, one of `workers`, owns by rendezvous hashing. Each shard has a score for each
 * worker, and the highest wins; a worker that comes or goes moves only its own shards. (Thaler & Ravishankar, 1998.)
 */
export function ownShards(worker: string, workers: readonly string[], queue: string, shards: number): number[] {
  const seeds = workers.map((id) => ({ id, seed: zlib.crc32(id) }))
  return [...Array(shards).keys()].filter((shard) => {
    const key = mixed(zlib.crc32(`${queue}\0${shard}`))
    let owner = { id: '', score: -1 }
    for (const { id, seed } of seeds) {
      const score = mixed(seed ^ key)
      if (score > owner.score || (score === owner.score && id < owner.id)) owner = { id, score }
    }
    return owner.id === worker
  })
}

/**
 * The last step of MurmurHash3. A CRC alone is linear: between two workers it would prefer one for half of all shards,
 * or for none.
 */
function mixed(hash: number): number {
  let h = hash | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
