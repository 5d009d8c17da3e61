/** Millrace without its history: what nobody watches. */

import { opening } from './millrace-redis.js'

export const open = opening({ history: false })
