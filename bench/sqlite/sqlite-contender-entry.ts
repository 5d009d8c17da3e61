/** The process of one contender on SQLite: takes measures by name, and sends back the results. */

import { measuredIn, type RivalOrder, type SqliteContenderName } from './sqlite-contender.js'

const [name = '', folder = ''] = process.argv.slice(2)

process.once('disconnect', () => process.exit())
process.on('message', async (order: RivalOrder) => {
  process.send?.(await measuredIn(folder, name as SqliteContenderName, order))
})
process.send?.('ready')
