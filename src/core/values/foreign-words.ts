/** Foreign words: options that other queues have, and what they are called here. */

const hints: Readonly<Record<string, string>> = {
  attempts: 'retry: { max } of the task, which counts the retries: attempts 5 is max 4',
  backoff: 'retry: { backoff } of the task',
  concurrency: 'worker: { concurrency } of the mill, or maxRunning of the queue',
  cron: 'schedules of the mill',
  deduplication: 'id, an id of your own',
  defaultJobOptions: 'options of the task',
  expires: 'expiresIn',
  connection: 'store',
  every: 'schedules of the mill',
  handler: 'run',
  jobId: 'id',
  job_id: 'id',
  jobKey: 'id',
  singletonKey: 'id',
  limiter: 'throttle of the queue',
  lockDuration: 'lease of the queue',
  maxAttempts: 'retry: { max } of the task, which counts the retries: maxAttempts 5 is max 4',
  maxStalledCount: 'maxCrashes of the queue',
  prefix: 'namespace',
  processor: 'run',
  queueName: 'queue',
  rateLimit: 'throttle of the queue',
  redis: 'store',
  removeOnComplete: 'retention: { results } of the queue',
  removeOnFail: 'retention: { dead } of the queue',
  repeat: 'schedules of the mill',
  retries: 'retry: { max } of the task',
  retryDelay: 'retry: { backoff } of the task',
  retryLimit: 'retry: { max } of the task',
  runAfter: 'delay, or runAt',
  startAfter: 'delay, or runAt',
  timeout: 'timeLimit of the task',
}

/** What the option of another queue is called here, as the end of a sentence; empty if nobody calls one so. */
export function hintFor(option: string): string {
  return Object.hasOwn(hints, option) ? `. What others call ${option} is here ${hints[option]}` : ''
}
