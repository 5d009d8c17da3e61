/** The page places: an address of every page, in the shop as its life leaves it. */

/** By the name of its screenshots; relative to the window. */
export const places = {
  overview: '',
  queue: 'queues/payments',
  'ordered-queue': 'queues/orders',
  jobs: 'queues/thumbnails/jobs?state=ready',
  job: 'queues/reports/jobs/report-2026-q3',
  'dead-job': 'queues/payments/jobs/charge-4711',
  morgues: 'morgue',
  morgue: 'queues/payments/morgue',
  search: 'search?q=charge-card',
  workers: 'workers',
  throttles: 'throttles',
  schedules: 'schedules',
  events: 'queues/mail/events',
} as const satisfies Readonly<Record<string, string>>
