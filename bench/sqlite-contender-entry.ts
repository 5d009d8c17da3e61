/** The process of one contender on SQLite: takes the measures that it is sent by name, and sends back what they came to. */

import { measuredIn, type RivalMeasureName, type SqliteContenderName } from './sqlite-contender.js'

const [name = '', folder = ''] = process.argv.slice(2)

process.once('disconnect', () => process.exit())
process.on('message', async (measure: RivalMeasureName) => {
  process.send?.(await measuredIn(folder, name as SqliteContenderName, measure))
})
process.send?.('ready')
