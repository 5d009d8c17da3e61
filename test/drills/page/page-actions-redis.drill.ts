/** The actions of the page on Redis. */

import { pageActionsOn } from '../../page/page-action-cases.js'

pageActionsOn('redis')
