/**
 * The scripts of the Redis store, each written to a file as the server runs it: put together of all its parts.
 * `npm run scripts [-- FOLDER]` writes them to `redis-scripts/`, or to another folder: `NAME.lua` for a single server, and
 * `cluster/NAME.lua` where the script for a cluster differs. It prints the SHA-1 by which the server knows each: in MONITOR
 * and SLOWLOG only this stands behind EVALSHA.
 */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { loadedScripts } from '#src/stores/redis/client/redis-script.js'

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../redis-scripts'))

// Not the files of dist, which may have some that are gone from the source.
for (const file of readdirSync(join(import.meta.dirname, '../src/stores/redis'), { recursive: true }))
  if (file.endsWith('.ts')) await import(`#src/stores/redis/${file.replace(/ts$/, 'js')}`)

rmSync(folder, { recursive: true, force: true })
mkdirSync(join(folder, 'cluster'), { recursive: true })
const written = new Map()
for (const scriptFor of loadedScripts) {
  write(scriptFor(false), '')
  if (scriptFor(true).sha !== scriptFor(false).sha) write(scriptFor(true), 'cluster/')
}
for (const [file, sha] of [...written].sort()) console.log(`${sha}  ${file}`)

function write({ name, text, sha }, place) {
  const file = `${place}${name}.lua`
  if (written.has(file)) throw new Error(`two scripts have the name ${name}`)
  written.set(file, sha)
  writeFileSync(join(folder, file), text)
}
