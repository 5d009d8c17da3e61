/** The contenders on Postgres. The rivals are no dependencies: they need a later Node than this package. */

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { OpenContender } from '../contenders/contender.js'

/** The ending `slow`: as its packages begins, with one job a trip or few. */
export const postgresNames = [
  'millrace',
  'graphile-worker',
  'graphile-worker slow',
  'pg-boss',
  'pg-boss slow',
  'raw',
] as const

export type PostgresName = (typeof postgresNames)[number]

export const rivalsFolder = join(import.meta.dirname, '../../node_modules/.cache/postgres-rivals')
export const rivalsInstall =
  'npm install --prefix node_modules/.cache/postgres-rivals node@22 pg-boss@12 graphile-worker@0.18'

/** Undefined if the rivals are not installed. */
export function nodeOfRivals(): string | undefined {
  const node = join(rivalsFolder, 'node_modules/node/bin/node')
  return existsSync(node) ? node : undefined
}

export function isRival(name: PostgresName): boolean {
  return name !== 'millrace' && name !== 'raw'
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
  raw: async () => (await import('./raw-postgres.js')).open,
}
