/** The contenders on Postgres. Most rivals are no dependencies: they need a later Node than this package, or Bun. */

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { bunqueueInstall, bunRunner } from '../contenders/bunqueue-package.js'
import type { OpenContender } from '../contenders/contender.js'
import { nodeRunner, type Runner } from '../measuring-process.js'

/** The ending `slow`: as its package begins, with one job a trip or few. */
export const postgresNames = [
  'millrace',
  'graphile-worker',
  'graphile-worker slow',
  'pg-boss',
  'pg-boss slow',
  'bullmq',
  'bunqueue',
  'raw',
] as const

export type PostgresName = (typeof postgresNames)[number]

const rivalsFolder = join(import.meta.dirname, '../../node_modules/.cache/postgres-rivals')
const rivalsInstall =
  'npm install --prefix node_modules/.cache/postgres-rivals node@22.23.3 pg-boss@12.38.0 graphile-worker@0.18.0'

/** What runs a contender; undefined if its package is not installed. */
export function runnerOf(name: PostgresName): Runner | undefined {
  if (name === 'bunqueue') return bunRunner()
  if (!isInFolder(name)) return nodeRunner()
  const node = join(rivalsFolder, 'node_modules/node/bin/node')
  return existsSync(node) ? nodeRunner(node) : undefined
}

/** The command that installs the package of a contender. */
export function installOf(name: PostgresName): string {
  return name === 'bunqueue' ? bunqueueInstall : rivalsInstall
}

function isInFolder(name: PostgresName): boolean {
  return name.startsWith('graphile-worker') || name.startsWith('pg-boss')
}

/** A package from the folder of the rivals. */
export function rival(name: string): unknown {
  return createRequire(join(rivalsFolder, 'package.json'))(name)
}

/** Modules are imported by name, so a process loads only the module of its contender. */
export const postgresOpeners: Readonly<Record<PostgresName, () => Promise<OpenContender>>> = {
  millrace: async () => (await import('../contenders/millrace-redis.js')).open,
  'graphile-worker': async () => (await import('./rival-graphile-worker.js')).batched,
  'graphile-worker slow': async () => (await import('./rival-graphile-worker.js')).single,
  'pg-boss': async () => (await import('./rival-pg-boss.js')).batched,
  'pg-boss slow': async () => (await import('./rival-pg-boss.js')).tens,
  bullmq: async () => (await import('../contenders/rival-bullmq.js')).openPostgres,
  bunqueue: async () => (await import('./rival-bunqueue-server.js')).open,
  raw: async () => (await import('./raw-postgres.js')).open,
}
