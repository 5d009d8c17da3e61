// Somebody cancels an encoder that has run for a while, and a second job before it begins. Then support asks what happened.
// Right: the record of the first has its input, start, progress and log; of the second only the id is remembered.
import { defineTask, millrace } from 'millrace'

const encode = defineTask({
  name: 'encode',
  queue: 'films',
  async run({ file }, ctx) {
    ctx.log(`encoding ${file}`)
    ctx.progress(0.4, 'second pass')
    await ctx.fields.set({ node: 'eu-3' })
    await new Promise((_, end) => ctx.signal.addEventListener('abort', () => end(ctx.signal.reason)))
  },
})
const store = process.env.STORE ?? 'memory:'
const mill = millrace({ store, namespace: `past${Date.now()}`, queues: { films: { lease: '3s' } }, tasks: [encode] })
await mill.ready()
const first = await mill.enqueue(encode, { file: 'a.mov' })
const worker = mill.worker({ concurrency: 1 })
await worker.start()
const look = () => mill.queue('films').jobs.get(first.id)
const until = async (isSo) => {
  for (let i = 0; i < 200 && !(await isSo()); i += 1) await new Promise((later) => setTimeout(later, 50))
}
await until(async () => (await look())?.log !== undefined)
const second = await mill.enqueue(encode, { file: 'b.mov' })
await second.cancel('not needed')
await first.cancel('wrong film')
await until(async () => (await look())?.state === 'cancelled')

const { state, reason, input, startedAt, finishedAt, worker: by, progress, log, fields } = (await look()) ?? {}
const never = (await mill.queue('films').jobs.get(second.id)) ?? {}
console.log({ state, reason, input, startedAt, finishedAt, worker: by, progress, log, fields })
console.log({ state: never.state, input: never.input, startedAt: never.startedAt })
const keepsItsPast =
  state === 'cancelled' &&
  reason === 'wrong film' &&
  input?.file === 'a.mov' &&
  startedAt <= finishedAt &&
  by !== undefined &&
  progress?.fraction === 0.4 &&
  log?.includes('encoding a.mov') &&
  fields?.node === 'eu-3'
const isBare = never.state === 'cancelled' && never.input === undefined && never.startedAt === undefined
await mill.close()
console.log(keepsItsPast && isBare ? 'ok' : 'WRONG')
