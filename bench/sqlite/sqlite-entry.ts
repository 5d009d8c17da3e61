/** The process of one build: takes measures of SQLite by name, and sends back jobs a second. */

import { type SqliteMeasureName, sqliteBuildOf, sqliteMeasures } from './sqlite-measures.js'

const [checkout = '', folder = ''] = process.argv.slice(2)
const build = await sqliteBuildOf(checkout)

process.once('disconnect', () => process.exit())
process.on('message', async (name: SqliteMeasureName) => {
  const { perSecond } = await sqliteMeasures[name].run(build, folder)
  process.send?.(perSecond)
})
process.send?.('ready')
