import { contractOf } from './contract-of.js'

// What goes by connections, which are found in another way here; `npm run prove drills` runs all of it.
contractOf('redis-sentinel', [
  'opening',
  'enqueueing',
  'idempotency',
  'waiting',
  'ringing',
  'claiming on rings',
  'starting anew',
  'closing',
])
