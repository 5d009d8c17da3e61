/** The seeds of the comparison of stores that are not in `npm test`. */

import { comparedWithMemory, wholeStores } from '../stores/compared-with-memory.js'

for (const name of wholeStores) comparedWithMemory(name, name === 'redis-sentinel' ? [1_000, 1_001] : [1_001, 1_003])
