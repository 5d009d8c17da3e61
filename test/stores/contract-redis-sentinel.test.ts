import { contractOf } from './contract-of.js'

// What goes by connections, which are found in another way here; `npm run prove drills` runs all of it.
contractOf('redis-sentinel', [
  'opening',
  'enqueueing',
  'idempotency',
  'waiting',
  'ringing',
  'rung claims',
  'starting anew',
  'closing',
])
