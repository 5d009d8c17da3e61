/** A Debian server: the Redis or Valkey of another release of Debian, with the C library that it was built for. */

import { chmod, copyFile, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { unpackedProgram } from '#src/store-testing/servers/machine-program.js'

export interface DebianRelease {
  readonly server: 'redis' | 'valkey'
  /** Such as `trixie`; backports need the release below them. */
  readonly suites: readonly string[]
}

const root = join(import.meta.dirname, '../../..')
const script = 'start-server'

/** The path of a script that starts it, for `REDIS_SERVER`. The first call downloads some megabytes. */
export async function debianServer({ server, suites }: DebianRelease): Promise<string> {
  const debian = {
    packages: [`${server}-tools`],
    suites,
    program: script,
    folder: `millrace-${server}-${suites.at(-1)}`,
    prepare: (tree: string) => writeScript(tree, server),
  }
  return (await unpackedProgram(debian, process.env, root)).path
}

/** The tools are the server under another name: the name that it is started by decides what it is. */
async function writeScript(tree: string, server: string): Promise<void> {
  await copyFile(join(tree, `usr/bin/${server}-check-rdb`), join(tree, `usr/bin/${server}-server`))
  const files = await readdir(tree, { recursive: true })
  const loader = files.find((file) => /-linux-[^/]+\/ld-linux[^/]*$/.test(file))
  if (loader === undefined) throw new Error(`the packages of ${server} brought no loader of the C library`)
  const libraries = [dirname(loader), `usr/${dirname(loader)}`].map((folder) => `"$here/${folder}"`).join(':')
  const lines = [
    '#!/bin/sh',
    'here=$(dirname "$(readlink -f "$0")")',
    `exec "$here/${loader}" --library-path ${libraries} "$here/usr/bin/${server}-server" "$@"`,
  ]
  await writeFile(join(tree, script), `${lines.join('\n')}\n`)
  await chmod(join(tree, script), 0o755)
}
