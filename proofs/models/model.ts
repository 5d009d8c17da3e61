/**
 * The model: random sequences on a store next to the memory store, and mutants of that store, which they must tell
 * apart.
 */

import { compareStores, type HarnessMaker, modelOf, type SequenceKind, startRedis } from 'millrace/store-testing'
import { redisHarness } from '#src/store-testing/harness/redis-harness.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { caughtBy, type Draws, type Mutation } from './mutants.js'

/** Sequences over which an unchanged copy of the store is compared. */
const controlSequences = 20

/** Each pair: how many sequences, and of how many commands. */
type Count = readonly [sequences: number, steps: number]

/**
 * The proof over sequences of one kind. They are played on SQLite and on Redis, some on a cluster, and against each
 * mutation.
 */
export async function proveKind(
  report: Report,
  kind: SequenceKind,
  seed: number,
  counts: { readonly many: Count; readonly long: Count; readonly onCluster: Count; readonly trial: Count },
  mutations: { readonly sqlite: readonly Mutation[]; readonly redis: readonly Mutation[] },
): Promise<Summary> {
  const draws = (offset: number, [sequences, steps]: Count) => ({ kind, seed: seed + offset, sequences, steps })
  const [single, cluster] = [await startRedis(), await startRedis({ mode: 'cluster' })]
  try {
    report.say(`the server: ${await redisVersion(single)}`)
    const each = [draws(0, counts.many), draws(10_000, counts.long)]
    const onCluster = [draws(20_000, counts.onCluster)]
    const differences = {
      sqlite: await playAll(report, 'SQLite', sqliteHarness, each),
      redis: await playAll(report, 'a single Redis', redisHarness(single.url), each),
      cluster: await playAll(report, 'a cluster of three', redisHarness(cluster.url), onCluster),
    }
    const trial = draws(0, counts.trial)
    const survivors = [
      ...(await catchAll(report, mutations.sqlite, 'sqlite', trial)),
      ...(await catchAll(report, mutations.redis, single.url, trial)),
    ]
    return { differences, mutants: mutations.sqlite.length + mutations.redis.length, survivors }
  } finally {
    await Promise.all([single.stop(), cluster.stop()])
  }
}

/** Plays these sequences and claims that no step of any differs. Resolves to the number that did. */
export async function playAll(
  report: Report,
  where: string,
  makeSubject: HarnessMaker,
  draws: readonly Draws[],
): Promise<number> {
  const startedAt = performance.now()
  const different: string[] = []
  for (const { kind = 'plain', seed, sequences, steps } of draws)
    for (let i = 0; i < sequences; i += 1)
      await played(makeSubject, { kind, seed: seed + i, steps }).catch((error: Error) => different.push(error.message))
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const what = draws.map(({ sequences, steps }) => `${sequences} sequences of ${steps} commands`).join(' and ')
  report.say(`${where}: ${what}, whole state compared after each: ${seconds} s`)
  if (different[0] !== undefined) report.say(different[0])
  report.claim(`0 differences (seen: ${different.length})`, different.length === 0)
  return different.length
}

/** Claims that every mutation is caught. Resolves to those that were not. `store` as for `caughtBy`. */
export async function catchAll(
  report: Report,
  mutations: readonly Mutation[],
  store: string,
  draws: Draws,
): Promise<string[]> {
  const [first] = mutations
  const unchanged = await caughtBy({ ...first!, to: first!.from }, store, { ...draws, sequences: controlSequences })
  report.claim(
    `a copy in which nothing is changed is not told apart ${unchanged ?? ''}`.trim(),
    unchanged === undefined,
  )
  const survivors: string[] = []
  for (const mutation of mutations) {
    const by = await caughtBy(mutation, store, draws)
    report.say(`mutant: ${mutation.what}: ${by === undefined ? 'SURVIVES' : `caught by ${by}`}`)
    if (by === undefined) survivors.push(mutation.what)
  }
  report.claim(`each of ${mutations.length} mutations is caught`, survivors.length === 0)
  return survivors
}

/** One sequence in three has claims that hold two or three jobs at most: small claims behave like large ones. */
async function played(makeSubject: HarnessMaker, how: Parameters<typeof compareStores>[2]): Promise<void> {
  const options = how.seed % 3 === 1 ? { mostClaimBytes: 20 } : {}
  const subject = await makeSubject(options)
  const model = await modelOf(subject, options)
  try {
    await compareStores(model, subject, how)
  } finally {
    await model.close()
    await subject.close()
  }
}
