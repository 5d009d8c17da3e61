import { contractOf } from './contract-of.js'

// What touches several queues or shards, which lie on several servers here; `npm run prove drills` runs all of it.
contractOf('redis-cluster', [
  'opening',
  'enqueueing',
  'idempotency',
  'claiming',
  'what a claim tells',
  'depth',
  'waiting',
  'ringing',
  'rung claims',
  'registry of workers',
  'live messages',
  'history',
  'shards of an ordered queue',
  'administration of an ordered queue',
  'scopes of throttles',
  'limits over a reshard',
  'starting anew',
  'schedules',
  'ticks of schedules',
  'leads of schedules',
  'joins',
  'the ends of members',
  'joins that die',
  'closing',
])
