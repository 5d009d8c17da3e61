/** The sidebar: the pages of the documentation by task, as the site lists them. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the pages. */
export const pagesFolder = join(import.meta.dirname, '../docs')

/** An entry, or a group of entries. A link has no ending: `/cli` is the page `docs/cli.md`. */
export interface SidebarEntry {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: SidebarEntry[]
}

/** The page of each error, by its code. */
const errorPages = readdirSync(join(pagesFolder, 'troubleshooting'))
  .filter((file) => /^[a-z-]+\.md$/.test(file))
  .map((file) => file.slice(0, -'.md'.length))
  .sort()
  .map((code) => ({ text: code, link: `/troubleshooting/${code}` }))

/** The pages of the command line, by task. */
const commandPages = [
  { text: 'Workers', link: '/cli/workers' },
  { text: 'Jobs and the morgue', link: '/cli/jobs' },
  { text: 'Queues and throttles', link: '/cli/queues' },
  { text: 'Schedules', link: '/cli/schedules' },
  { text: 'Watch and check', link: '/cli/health' },
  { text: 'Set up a project', link: '/cli/setup' },
] satisfies SidebarEntry[]

/** The modules of the package. Their pages are made of the doc comments. */
export const apiPages = [
  { text: 'millrace', link: '/api/millrace/' },
  { text: 'millrace/testing', link: '/api/millrace/testing/' },
  { text: 'millrace/web', link: '/api/millrace/web/' },
  { text: 'millrace/telemetry', link: '/api/millrace/telemetry/' },
  { text: 'millrace/store', link: '/api/millrace/store/' },
  { text: 'millrace/store-testing', link: '/api/millrace/store-testing/' },
] satisfies SidebarEntry[]

/** The steps of the tutorial, in their order. */
export const tutorial = [
  { text: '1. A web app that enqueues', link: '/start/web-app' },
  { text: '2. A worker', link: '/start/worker' },
  { text: '3. A schedule', link: '/start/schedule' },
  { text: '4. An ordered queue', link: '/start/ordered-queue' },
  { text: '5. A throttled queue', link: '/start/throttled-queue' },
  { text: '6. A long task', link: '/start/long-task' },
  { text: '7. Deploy', link: '/start/deploy' },
] satisfies SidebarEntry[]

export const sidebar: SidebarEntry[] = [
  { text: 'Start', collapsed: false, items: tutorial },
  {
    text: 'Guides',
    collapsed: false,
    items: [
      { text: 'Mail after sign-up', link: '/guides/welcome-mail' },
      { text: 'Import a large file', link: '/guides/import-file' },
      { text: 'When all are done', link: '/guides/when-all-are-done' },
      { text: 'An order that waits for a person', link: '/guides/order-approval' },
      { text: 'Webhooks', link: '/guides/webhooks' },
      { text: 'Crawl sites', link: '/guides/crawl' },
      { text: 'Fairness between tenants', link: '/guides/fair-tenants' },
      { text: 'Tenants: list, stop, delete', link: '/guides/tenants' },
      { text: 'A nightly report', link: '/guides/nightly-report' },
      { text: 'Encode video', link: '/guides/encode-video' },
      { text: 'Sync entities', link: '/guides/sync-entities' },
    ],
  },
  {
    text: 'In your application',
    collapsed: false,
    items: [
      { text: 'Handlers and their dependencies', link: '/guides/handler-context' },
      { text: 'Status in the browser', link: '/guides/status-in-the-browser' },
      { text: 'Drizzle', link: '/guides/drizzle' },
      { text: 'Prisma', link: '/guides/prisma' },
      { text: 'An outbox', link: '/guides/outbox' },
      { text: 'Test your tasks', link: '/guides/test-tasks' },
      { text: 'Next.js', link: '/guides/nextjs' },
      { text: 'NestJS', link: '/guides/nestjs' },
      { text: 'Run workers in production', link: '/guides/production' },
    ],
  },
  {
    text: 'Features',
    collapsed: false,
    items: [
      { text: 'Testing an application', link: '/testing' },
      { text: 'Priorities and weights', link: '/selectors' },
      { text: 'Ordered jobs', link: '/ordered-jobs' },
      { text: 'Merging payloads', link: '/merging' },
      { text: 'Fenced writes', link: '/fencing' },
      { text: 'Joins', link: '/joins' },
      { text: 'Steps, sleeps and signals', link: '/steps' },
      { text: 'Throttling', link: '/throttling' },
      { text: 'Schedules', link: '/schedules' },
      { text: 'Long tasks', link: '/long-tasks' },
      { text: 'Graceful deploys', link: '/graceful-deploys' },
      { text: 'Operations', link: '/operations' },
      { text: 'The dashboard', link: '/dashboard' },
      { text: 'Middleware and events', link: '/middleware' },
      { text: 'Tracing', link: '/tracing' },
      { text: 'Compression and sealing', link: '/sealing' },
    ],
  },
  {
    text: 'Reference',
    collapsed: false,
    items: [
      { text: 'API', link: '/api/', collapsed: true, items: apiPages },
      { text: 'Configuration', link: '/configuration' },
      { text: 'Command line', link: '/cli', collapsed: true, items: commandPages },
      { text: 'HTTP API', link: '/http-api' },
      { text: 'Types', link: '/types' },
      { text: 'Metrics', link: '/metrics' },
      { text: 'Errors', link: '/errors' },
      { text: 'Troubleshooting', link: '/troubleshooting/README', collapsed: true, items: errorPages },
      { text: 'Glossary', link: '/glossary' },
    ],
  },
  {
    text: 'Understand',
    collapsed: false,
    items: [
      { text: 'The life of a job', link: '/job-lifecycle' },
      { text: 'Crashes', link: '/crashes' },
      { text: 'Which store', link: '/stores/README' },
      { text: 'The SQLite store', link: '/stores/sqlite' },
      { text: 'The Postgres store', link: '/stores/postgres' },
      { text: 'The Redis store', link: '/stores/redis' },
      { text: 'The SQS store', link: '/stores/sqs' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Performance', link: '/performance' },
      { text: 'Writing a store', link: '/writing-a-store' },
      { text: 'Versions and support', link: '/versions' },
      { text: 'Platforms', link: '/platforms' },
    ],
  },
  {
    text: 'Coming from',
    collapsed: true,
    items: [
      { text: 'BullMQ', link: '/coming-from/bullmq' },
      { text: 'pg-boss', link: '/coming-from/pg-boss' },
      { text: 'graphile-worker', link: '/coming-from/graphile-worker' },
      { text: 'Sidekiq', link: '/coming-from/sidekiq' },
      { text: 'Kale', link: '/coming-from/kale' },
      { text: 'Lowkiq', link: '/coming-from/lowkiq' },
      { text: 'Blueque', link: '/coming-from/blueque' },
      { text: 'RedisThrottledQueue', link: '/coming-from/redis-throttled-queue' },
    ],
  },
  { text: 'Compare', items: [{ text: 'Millrace compared with others', link: '/compare' }] },
]
