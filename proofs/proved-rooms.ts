/**
 * The rooms that each proof proves: folders and files of `src`, with `bench` or `dashboard` where it judges these. If one of them
 * has changed since its output was written, the proof is stale, and `npm run release` says so. Rooms that a proof only passes
 * through are left out: with all of them every proof would always be stale, and nobody would read the list.
 */

const claims = ['src/workers', 'src/runtime']
const rules = ['src/stores/rules', 'src/stores/rows']
const redis = ['src/stores/redis', ...rules]
const sqlite = ['src/stores/sqlite', 'src/stores/sql', ...rules]
const postgres = ['src/stores/postgres', 'src/stores/sql', ...rules]
const sqs = ['src/stores/sqs', ...rules]
const limits = ['src/stores/rules/throttle', 'src/stores/rules/fair-share.ts', 'src/workers/claims']
const schedules = ['src/core/schedule', 'src/client/schedules', 'src/workers/schedule-loop.ts']
const memory = ['src/stores/memory', ...rules]
const joins = [
  'src/stores/rules/join-rules.ts',
  'src/stores/rows/join-row.ts',
  'src/stores/sql/sql-joins.ts',
  'src/stores/redis/joins',
  'src/stores/postgres/joins',
]
const steps = [
  'src/stores/sql/sql-job-steps.ts',
  'src/stores/sqlite/records/sqlite-step-calls.ts',
  'src/stores/redis/records/redis-steps.ts',
  'src/stores/redis/lua/steps-lua.ts',
  'src/runtime/run',
]
const isolated = ['src/workers/isolated', 'src/runtime/process', 'src/mill/process-child-entry.ts']

export const provedRooms: Readonly<Record<string, readonly string[]>> = {
  chains: [...redis, ...sqlite, 'src/client/enqueue'],
  drills: ['src'],
  chaos: [...claims, ...redis, ...sqlite, ...limits, ...isolated],
  'second-runs': [...claims, ...redis, ...sqlite, ...isolated, ...schedules],
  grounds: ['src/stores', 'src/core/platform', 'src/runtime'],
  'join-reports': joins,
  'join-sizes': joins,
  joins: joins,
  'long-ends': isolated,
  'long-growth': isolated,
  long: isolated,
  'limited-model': [...limits, ...redis, ...sqlite, ...memory],
  'model-postgres': [...postgres, ...memory],
  'model-redis': [...redis, ...memory],
  'model-sqlite': [...sqlite, ...memory],
  'ordered-model': [...redis, ...sqlite, ...memory],
  mutation: [...rules, 'src/selectors'],
  'ordered-workers': [...redis, ...sqlite, ...claims],
  pack: ['package.json', 'scripts/slim-dist.mjs', 'scripts/slim-declarations.mjs', 'src/core/package-files.ts'],
  'postgres-crashes': postgres,
  'postgres-failover': postgres,
  'postgres-plans': postgres,
  'postgres-pooler': postgres,
  'postgres-snapshots': postgres,
  'postgres-transactions': postgres,
  'redis-drills': [...redis, 'src/runtime/outage.ts'],
  schedules: [...schedules, ...redis, ...sqlite],
  'shared-services': [...schedules, ...redis, ...sqlite],
  simulation: memory,
  'sqs-contract': sqs,
  'sqs-kale': sqs,
  'sqs-lottery': [...sqs, 'src/selectors'],
  'sqs-workers': [...sqs, ...claims],
  'brisk-starts': [...limits, ...sqlite, ...redis],
  'clock-steps': [...limits, ...sqlite, ...redis],
  starts: [...limits, ...claims, ...postgres],
  'step-sizes': steps,
  'stepped-model': steps,
  steps: steps,
  backlog: sqlite,
  'damaged-queue': redis,
  'enqueue-in': [...sqlite, 'src/client/enqueue'],
  tenants: ['src/client/admin', 'src/stores/sqlite/records', 'src/stores/redis/records'],
  results: [...redis, ...sqlite, ...postgres, 'src/client/jobs'],
  groups: [...limits, ...sqlite, ...redis],
  limits: [...limits, ...sqlite, ...redis],
  throttle: [...limits, ...memory, ...sqlite, ...redis, ...postgres],
  'web-fuzz': ['src/web'],
  window: ['src/web', 'dashboard'],
  contention: [...sqlite, ...claims],
  'fair-batch': claims,
  'redis-workers': [...redis, ...claims],
  selectors: ['src/selectors'],
  soak: [...sqlite, ...redis, ...claims],
  workers: [...sqlite, ...claims],
}
