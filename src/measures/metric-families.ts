/** The metric families: every metric, with its type, its labels and its meaning. */

/** One metric. Its name ends with its unit, and that of a counter with `_total`. */
export interface MetricFamily {
  readonly type: 'gauge' | 'counter' | 'histogram'
  readonly unit?: 'seconds' | 'bytes'
  readonly labels: readonly string[]
  readonly help: string
}

/** In the order of the exposition. */
export const metricFamilies = {
  millrace_up: { type: 'gauge', labels: [], help: '1 if the store was read for this scrape, otherwise 0.' },
  millrace_build_info: {
    type: 'gauge',
    labels: ['version', 'store'],
    help: 'Always 1: the version of Millrace, and its store.',
  },
  millrace_scrape_duration_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: [],
    help: 'How long reading the store for this scrape took.',
  },
  millrace_scrape_errors_total: {
    type: 'counter',
    labels: ['part'],
    help: 'Readings that failed, whole (store) or in part (queue, throttle, workers, history).',
  },
  millrace_queues: { type: 'gauge', labels: [], help: 'Queues in this exposition.' },
  millrace_queues_left_out: {
    type: 'gauge',
    labels: [],
    help: 'Queues beyond the first 1,000, which are left out.',
  },

  millrace_jobs: {
    type: 'gauge',
    labels: ['queue', 'state'],
    help: 'Jobs of a queue by state: waiting (for other jobs or a signal), scheduled, ready, running, dead.',
  },
  millrace_queue_lag_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['queue'],
    help: 'How long the oldest due job has been waiting.',
  },
  millrace_queue_shard_lag_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['queue', 'shard'],
    help: 'The same for each shard of an ordered queue of at most 32 shards.',
  },
  millrace_queue_retries: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Waiting jobs that have failed at least once.',
  },
  millrace_queue_suspects: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Ready jobs that will run alone, because a worker died while it ran them.',
  },
  millrace_queue_payloads: { type: 'gauge', labels: ['queue'], help: 'Waiting payloads of an ordered queue.' },
  millrace_queue_paused: { type: 'gauge', labels: ['queue'], help: '1 while the queue is paused.' },
  millrace_queue_draining: { type: 'gauge', labels: ['queue'], help: '1 while the queue refuses new jobs.' },
  millrace_queue_damaged: {
    type: 'gauge',
    labels: ['queue'],
    help: '1 while the store cannot count the queue; its other figures are absent then.',
  },
  millrace_queue_running_limit: { type: 'gauge', labels: ['queue'], help: 'Jobs that may run at once (maxRunning).' },
  millrace_queue_workers: { type: 'gauge', labels: ['queue'], help: 'Workers that take jobs of the queue.' },
  millrace_queue_standstill: {
    type: 'gauge',
    labels: ['queue', 'reason'],
    help: '1 for each reason for which the first ready job of the queue has not begun, and no-task if jobs are put back as no worker knows their task. Only of the 20 queues whose jobs have been waiting longest, and the 20 with the most scheduled jobs.',
  },

  millrace_jobs_processed_total: {
    type: 'counter',
    labels: ['queue'],
    help: 'Jobs completed since the queue exists, as the store counts them.',
  },
  millrace_attempts_failed_total: {
    type: 'counter',
    labels: ['queue'],
    help: 'Attempts failed since the queue exists, as the store counts them.',
  },
  millrace_attempts_crashed_total: {
    type: 'counter',
    labels: ['queue'],
    help: 'Leases that ended unsettled since the queue exists, as the store counts them.',
  },
  millrace_jobs_expired_total: {
    type: 'counter',
    labels: ['queue'],
    help: 'Jobs cancelled because nobody began them in time, since the queue exists.',
  },
  millrace_job_events_total: {
    type: 'counter',
    labels: ['queue', 'event'],
    help: 'Gains in the history of a queue since this process began to report it: enqueued, started, completed, failed, dead, crashed, cancelled.',
  },
  millrace_job_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['queue'],
    help: 'Run times of attempts that completed or failed, by the history of the queue, since this process began to report it.',
  },

  millrace_throttle_hits: {
    type: 'gauge',
    labels: ['throttle', 'window'],
    help: 'Starts in the window that ends now; window: its length in seconds. Absent for a throttle that counts by group.',
  },
  millrace_throttle_limit: {
    type: 'gauge',
    labels: ['throttle', 'window'],
    help: 'The most starts in any window of that length.',
  },
  millrace_throttle_wait_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['throttle'],
    help: 'Time until the next job may start; 0: at once.',
  },
  millrace_throttle_groups: {
    type: 'gauge',
    labels: ['throttle'],
    help: 'Groups that a throttle by group has counted lately.',
  },
  millrace_throttles_left_out: {
    type: 'gauge',
    labels: [],
    help: 'Throttles beyond the first 200, which are left out.',
  },

  millrace_workers: {
    type: 'gauge',
    labels: ['state'],
    help: 'Workers by state: running, stopping, silent (of other machines, not heard for 30 s).',
  },
  millrace_worker_slots: {
    type: 'gauge',
    labels: ['worker', 'host'],
    help: 'The most jobs that the worker runs at once.',
  },
  millrace_worker_running: { type: 'gauge', labels: ['worker', 'host'], help: 'Jobs that the worker runs.' },
  millrace_worker_resident_memory_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['worker', 'host'],
    help: 'Memory of the process of the worker.',
  },
  millrace_worker_loop_delay_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['worker', 'host'],
    help: 'Recent delay of the event loop of the worker, 99th percentile.',
  },

  millrace_task_events_total: {
    type: 'counter',
    labels: ['queue', 'task', 'event'],
    help: 'Ends of attempts in this process, or in those of millrace work, by task: completed, failed, dead; task *: one that the mill does not declare.',
  },
  millrace_task_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'Run times of attempts that completed or failed in this process, or in those of millrace work, by task.',
  },
  millrace_failures_total: {
    type: 'counter',
    labels: ['queue', 'reason'],
    help: 'Attempts that failed in this process, or in those of millrace work, by the code of the error; error: one of your own.',
  },
  millrace_events_total: {
    type: 'counter',
    labels: ['event'],
    help: 'Events of this process, or of those of millrace work, that report a disorder.',
  },
  millrace_process_resident_memory_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['pid'],
    help: 'Memory of the process.',
  },
  millrace_process_heap_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['pid'],
    help: 'Memory of the JavaScript objects of the process.',
  },
  millrace_process_loop_delay_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['pid'],
    help: 'Delay of the event loop of the process in the last 15 seconds, 99th percentile.',
  },
  millrace_process_uptime_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['pid'],
    help: 'How long the process has been running.',
  },
  millrace_work_processes: {
    type: 'gauge',
    labels: ['state'],
    help: 'Processes of millrace work by state: starting, running, recycling, stopping, stopped, failed.',
  },
  millrace_work_deaths_total: {
    type: 'counter',
    labels: [],
    help: 'Processes of millrace work that ended without an order to end.',
  },
} as const satisfies Readonly<Record<string, MetricFamily>>

export type MetricName = keyof typeof metricFamilies

/** The labels that each sample of a metric has. */
export type LabelsOf<Name extends MetricName> = Readonly<
  Record<(typeof metricFamilies)[Name]['labels'][number], string>
>
