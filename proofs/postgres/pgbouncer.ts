/**
 * PgBouncer in transaction mode before a Postgres: the one of the PATH, or Debian's, unpacked once into `node_modules/.cache`
 * without touching the system.
 */

import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, loopback } from '#src/store-testing/servers/free-port.js'
import { GuardedProcess } from '#src/store-testing/servers/guarded-process.js'
import { onPath, unpackedProgram } from '#src/store-testing/servers/machine-program.js'
import type { PostgresServer } from '#src/store-testing/servers/postgres-server.js'

export interface Pooler {
  readonly version: string
  /** Through the pooler; notifications are heard past it. */
  readonly url: string
  stop(): Promise<void>
}

const debian = { packages: ['pgbouncer'], program: 'usr/sbin/pgbouncer', folder: 'millrace-pgbouncer' }
const startWithinMs = 20_000

/** `connections`: how many connections to the server all clients share. */
export async function startPgBouncer(server: PostgresServer, connections: number): Promise<Pooler> {
  const installed = await onPath('pgbouncer', process.env)
  const { path, env } =
    installed === undefined ? await unpackedProgram(debian, process.env, process.cwd()) : { path: installed, env: {} }
  const { stdout } = await promisify(execFile)(path, ['--version'], { env: { ...process.env, ...env } })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  const settings = {
    ...{ listen_addr: loopback, listen_port: port, unix_socket_dir: '', auth_type: 'any' },
    ...{ pool_mode: 'transaction', default_pool_size: connections, max_client_conn: 500 },
    // A server that comes back is noticed soon.
    server_login_retry: 1,
    // It refuses to stay root.
    ...(process.getuid?.() === 0 ? { user: 'nobody' } : {}),
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const database = `postgres = host=${server.host} port=${server.port} dbname=postgres user=postgres`
  writeFileSync(join(folder, 'pooler.ini'), ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'))
  const pooler = new GuardedProcess({ path, env, args: ['pooler.ini'], directory: folder })
  await pooler.said(/process up/, startWithinMs)
  return {
    version: /[\d.]+/.exec(stdout)![0],
    url: `postgres://postgres@${loopback}:${port}/postgres?listen=${server.host}:${server.port}`,
    async stop() {
      pooler.kill('SIGKILL')
      await pooler.ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
