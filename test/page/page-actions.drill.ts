/** The actions of the page on SQLite; `test/drills/page/page-actions-redis.drill.ts` has those on Redis. */

import { pageActionsOn } from './page-action-cases.js'

pageActionsOn('sqlite')
