/** A Debian server: the Redis, Valkey or Postgres of another release of Debian, with the C library that it was built for. */

import { chmod, copyFile, readdir, rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { unpackedProgram } from '#src/store-testing/servers/machine-program.js'

export interface DebianRelease {
  /** Debian has the version of Postgres in the names of its packages. */
  readonly server: 'redis' | 'valkey' | `postgresql-${number}`
  /** Such as `trixie`; backports need the release below them. */
  readonly suites: readonly string[]
}

const root = join(import.meta.dirname, '../..')

/**
 * The path for `REDIS_SERVER`, of a script that starts it; for Postgres the one for `POSTGRES_BIN`, of a folder with the
 * scripts `postgres` and `initdb`. The first call downloads some megabytes.
 */
export async function debianServer({ server, suites }: DebianRelease): Promise<string> {
  const [, version] = server.split('-')
  const programs = version === undefined ? 'usr/bin' : `usr/lib/postgresql/${version}/bin`
  const started = version === undefined ? [`${server}-server`] : ['postgres', 'initdb']
  const debian = {
    packages: [version === undefined ? `${server}-tools` : server],
    suites,
    program: join(programs, started[0]!),
    folder: `millrace-${server}-${suites.at(-1)}`,
    async prepare(tree: string): Promise<void> {
      // The tools are the server under another name: the name that it is started by decides what it is.
      if (version === undefined)
        await copyFile(join(tree, programs, `${server}-check-rdb`), join(tree, programs, started[0]!))
      for (const name of started) await startByScript(tree, join(programs, name))
    },
  }
  const { path } = await unpackedProgram(debian, process.env, root)
  return version === undefined ? path : dirname(path)
}

/** Puts a script in the place of the program, which starts it by the loader of its own C library, under its name. */
async function startByScript(tree: string, program: string): Promise<void> {
  const files = await readdir(tree, { recursive: true })
  const loader = files.find((file) => /-linux-[^/]+\/ld-linux[^/]*$/.test(file))
  if (loader === undefined) throw new Error(`the packages of ${basename(program)} brought no loader of the C library`)
  const libraries = [dirname(loader), `usr/${dirname(loader)}`].map((folder) => `"$tree/${folder}"`).join(':')
  const lines = [
    '#!/bin/sh',
    'here=$(readlink -f "$0")',
    `tree="\${here%/${program}}"`,
    `exec "$tree/${loader}" --library-path ${libraries} --argv0 "$here" "$here.program" "$@"`,
  ]
  const path = join(tree, program)
  await rename(path, `${path}.program`)
  await writeFile(path, `${lines.join('\n')}\n`)
  await chmod(path, 0o755)
}
