/**
 * Millrace on Postgres, compared with graphile-worker, pg-boss, BullMQ, bunqueue and the raw limit, on one server, in alternating
 * rounds of one run.
 */

import { cpus } from 'node:os'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import type { BenchReport } from './bench.js'
import { installOf, type PostgresName, postgresNames, runnerOf } from './postgres/postgres-contenders.js'
import { PostgresField } from './postgres/postgres-field.js'
import { adding, addingMany, postgresRace, processingOn } from './postgres/postgres-race.js'

const races = [
  processingOn('process', 100),
  adding('enqueue', 1_000),
  adding('enqueue100', 100),
  addingMany('enqueueMany', 1_000),
]

/** As a server for work is set; the rest are its defaults. Commits wait for the disk. */
const settings = {
  fsync: 'on',
  full_page_writes: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  autovacuum_naptime: '1min',
}

/**
 * Options: `--quick`; `--contenders=millrace,raw` for some of them. If a rival is not in `node_modules/.cache`, it says how to put it
 * there, and measures the others.
 */
export async function bench(report: BenchReport): Promise<unknown> {
  const isQuick = process.argv.includes('--quick')
  const plan = isQuick ? { rounds: 1, roundMs: 300 } : { rounds: 3, roundMs: 3_000 }
  const names = chosen()
  const missing = names.filter((name) => runnerOf(name) === undefined)
  for (const install of new Set(missing.map(installOf))) {
    const absent = missing.filter((name) => installOf(name) === install)
    report.say(`not measured, because not there: ${absent.join(', ')}. '${install}' puts them there`)
  }
  const server = await PostgresServer.start({ settings })
  const field = new PostgresField(
    server.url,
    names.filter((name) => !missing.includes(name)),
  )
  try {
    await field.start()
    report.say(
      `node ${process.version} (graphile-worker and pg-boss: node 22; bunqueue: Bun), ${cpus().length} × ${cpus()[0]?.model.trim()}, commits on disk, medians of ${plan.rounds} rounds (spread)`,
    )
    const ratios: Record<string, number> = {}
    for (const one of races) Object.assign(ratios, await postgresRace(report, field, one, plan))
    return { ratios }
  } finally {
    await field.end()
    await server.stop()
  }
}

function chosen(): PostgresName[] {
  const start = '--contenders='
  const list = process.argv.find((argument) => argument.startsWith(start))?.slice(start.length)
  const wanted = list?.split(',') ?? postgresNames
  const unknown = wanted.filter((name) => !postgresNames.some((known) => known === name))
  if (unknown.length > 0)
    throw new Error(`--contenders names '${unknown.join(`', '`)}'; expected some of ${postgresNames.join(', ')}`)
  return postgresNames.filter((name) => wanted.includes(name))
}
