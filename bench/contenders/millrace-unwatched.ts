/** Millrace without its history, so that nobody watches it. */

import { opening } from './millrace-redis.js'

export const open = opening({ history: false })
