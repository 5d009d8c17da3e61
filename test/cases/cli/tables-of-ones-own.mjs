// An application keeps its tables in the store's file.
// Right: docs/stores/sqlite.md lists all tables of the store, so that no migration takes one of them for its own.

import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { millrace } from 'millrace'

for (const end of ['', '-wal', '-shm']) rmSync(`tables.db${end}`, { force: true })
const mill = millrace({ store: 'sqlite:./tables.db', queues: { default: {} } })
await mill.ready()
await mill.close()
const tables = new DatabaseSync('tables.db')
  .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
  .all()
  .map(({ name }) => name)
const folder = dirname(createRequire(import.meta.url).resolve('millrace/package.json'))
const page = readFileSync(join(folder, 'docs/stores/sqlite.md'), 'utf8')
const list = /Do not name them[\s\S]*?Millrace creates the file/.exec(page)?.[0] ?? ''
const missing = tables.filter(
  (name) => !name.startsWith('throttle') && !name.startsWith('sqlite_') && !list.includes(`\`${name}\``),
)
console.log(missing.length === 0 ? 'ok' : 'WRONG', missing)
process.exit()
