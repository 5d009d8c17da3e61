/**
 * Checks the house: `node scripts/check-house.mjs [root] [--lone]` prints every violation of its laws as file:line and exits
 * with 1, or prints one line when all is well. `--lone` first lists the short files that only one other imports.
 */
import { houseReport } from './house-laws.mjs'

const [root = '.'] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const { lines, stands } = houseReport(root, { lone: process.argv.includes('--lone') })
console.log(lines.join('\n'))
if (!stands) process.exitCode = 1
