/** The process of one contender on SQLite: takes measures by name, and sends back the results. */

import { measuredIn, type RivalMeasureName, type SqliteContenderName } from './sqlite-contender.js'

const [name = '', folder = ''] = process.argv.slice(2)

process.once('disconnect', () => process.exit())
process.on('message', async (measure: RivalMeasureName) => {
  process.send?.(await measuredIn(folder, name as SqliteContenderName, measure))
})
process.send?.('ready')
