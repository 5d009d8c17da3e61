/** A program that wraps every call of the mill, as a library does that is compiled with its declarations. */

export const wrappingProgram = `
import { defineOrderedTask, defineTask, millrace, snooze, hold, bury, cancel, exponential, redisStore, sqsStore, type Mill, type ThrottledQueue, type QueueListener, type Worker } from 'millrace'
import { webHandler } from 'millrace/web'
import { testMill, testContext } from 'millrace/testing'

export const mail = defineTask({ name: 'mail', run: async ({ to }: { to: string }) => ({ sent: to }) })
export const batch = defineTask({ name: 'batch', batch: { size: 2 }, run: async (inputs: readonly { n: number }[]) => inputs.map(({ n }) => n) })
export const isolated = defineTask({ name: 'isolated', isolate: 'process', module: import.meta.url, run: async (n: number, ctx) => ctx.progress(n) })
export const later = defineTask({ name: 'later' }).returns<{ n: number }>()
export const sync = defineOrderedTask({ name: 'sync', id: (o: { id: string; rev: number }) => o.id, score: (o) => o.rev, run: async (byId) => void byId })
export const mill = millrace({ store: 'memory:', tasks: [mail, batch, sync, isolated, later], queues: { high: { weight: 3 } } })
export const send = (to: string) => mill.enqueue(mail, { to })
export const sendAll = (all: string[]) => mill.enqueueMany(mail, all.map((to) => ({ to })))
export const sendMixed = () => mill.enqueueMany([[mail, { to: 'a' }], [sync, { id: 'a', rev: 1 }, { score: 2 }]])
export const sendOrdered = () => mill.enqueue(sync, { id: 'a', rev: 1 })
export const sendIn = (db: never) => mill.enqueueIn(db, mail, { to: 'a' })
export const results = async () => mill.results(await sendAll(['a']))
export const jobById = (id: string) => mill.job(id)
export const jobOf = (id: string) => mill.job(mail, id)
export const orderedOf = (id: string) => mill.job(sync, id)
export const worker = () => mill.worker({ concurrency: 3 })
export const listener = () => mill.listener('high')
export const claimed = async () => (await mill.listener('high')).next()
export const limited = () => mill.throttledQueue<string>('items', { limit: 1, window: '1s' })
export const popped = () => limited().tryPop()
export const queue = (name: 'high') => mill.queue(name)
export const events = () => mill.queue('high').events()
export const history = () => mill.queue('high').history()
export const look = () => mill.queue('high').look()
export const depth = () => mill.queue('high').depth()
export const list = () => mill.queue('high').jobs.list({ task: mail })
export const get = () => mill.queue('high').jobs.get('a')
export const jobs = () => mill.queue('high').jobs
export const morgue = () => mill.queue('high').morgue
export const deadList = () => mill.queue('high').morgue.list()
export const throttleOf = () => mill.queue('high').throttle
export const throttleState = () => mill.queue('high').throttle.get()
export const holds = () => mill.queue('high').throttle.holds()
export const schedules = () => mill.schedules
export const schedule = () => mill.schedules.set('s', { every: '1h', task: mail, input: { to: 'a' } })
export const scheduleList = () => mill.schedules.list()
export const scheduleNow = () => mill.schedules.runNow('s')
export const depths = () => mill.depths()
export const histories = () => mill.histories()
export const workers = () => mill.workers()
export const health = () => mill.health()
export const examine = () => mill.examine()
export const stored = () => mill.storedQueues()
export const created = () => mill.createQueues()
export const tasks = () => mill.tasks
export const queues = () => mill.queues
export const storeOf = () => mill.store
export const heard = () => mill.on('job.completed', (event) => event.id)
export const record = async () => (await send('a')).record()
export const fields = async () => (await send('a')).fields
export const redis = redisStore({ url: 'redis://127.0.0.1', namespace: 'a' })
export const sqs = (client: never) => sqsStore({ client, namespace: 'a' })
export const window = webHandler(mill)
export const tested = testMill({ tasks: [mail] })
export const drained = () => tested.drain()
export const waiting = () => tested.enqueued(mail)
export const context = testContext(mail, { input: { to: 'a' } } as never)
export const outcomes = () => [snooze('1s'), hold('1s'), bury('x'), cancel('x')] as const
export const backoff = exponential({ base: '1s' })
export const status = (w: Worker) => w.status()
export const claimOf = (l: QueueListener<{ n: number }>) => l.next()
export const itemsOf = (q: ThrottledQueue<string>) => q.tryPop()
export const ofMill = (m: Mill<'high'>) => m.queue('high')
`
