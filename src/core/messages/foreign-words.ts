/** Foreign words: the options of other queues with their names here, and our own options in a wrong place. */

const hints: Readonly<Record<string, string>> = {
  attempts: 'retry: { max } of the task, which counts the retries: attempts 5 is max 4',
  backoff: 'retry: { backoff } of the task',
  concurrency: 'worker: { concurrency } of the mill, or maxRunning of the queue',
  cron: 'schedules of the mill',
  deduplication: 'id, an id of your own',
  defaultJobOptions: 'options of the task',
  duration: 'window of a throttle',
  expires: 'expiresIn',
  connection: 'store',
  every: 'schedules of the mill',
  children: 'joins of the task, and after at its enqueue',
  dependsOn: 'joins of the task, and after at its enqueue',
  handler: 'run',
  jobId: 'id',
  job_id: 'id',
  jobKey: 'id',
  singletonKey: 'id',
  limiter: 'throttle of the queue',
  lockDuration: 'lease of the queue',
  max: 'limit of a throttle, or retry: { max } of the task',
  maxAttempts: 'retry: { max } of the task, which counts the retries: maxAttempts 5 is max 4',
  maxStalledCount: 'maxCrashes of the queue',
  prefix: 'namespace',
  ordered: 'a task made by defineOrderedTask()',
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

/** The places of our own options. */
const places: Readonly<Record<string, readonly string[]>> = {
  'the mill': ['idempotency', 'maxPayloadBytes', 'middleware', 'schedules', 'tasks'],
  'a queue': ['lease', 'maxCrashes', 'maxPending', 'maxRunning', 'retention', 'shards', 'throttle', 'weight'],
  'a task': ['onExhausted', 'retry', 'timeLimit'],
  'a plain task': ['batch', 'expiresIn', 'isolate', 'joins', 'onDead', 'shouldRun', 'signals'],
  'an ordered task': ['batchSize', 'maxPayloads', 'merge', 'score'],
  'enqueue, for a task with joins': ['after', 'sealWithin', 'within'],
  enqueue: ['atMost', 'delay', 'expiresIn', 'ifWaiting', 'meta', 'priority', 'runAt'],
}

/**
 * A hint for an unknown option, as the end of a sentence: our name for another queue's option, or the right place of
 * our own. Empty if there is none.
 */
export function hintFor(option: string): string {
  if (Object.hasOwn(hints, option)) return `. What others call ${option} is here ${hints[option]}`
  const place = Object.keys(places).find((one) => places[one]!.includes(option))
  return place === undefined ? '' : `. It is an option of ${place}`
}
