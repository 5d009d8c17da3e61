// A Buffer is enqueued. Right: a Buffer arrives, as its type says.
import { defineTask, millrace } from 'millrace'

const upload = defineTask({ name: 'upload', run: async (file) => file.toString('base64') })
const mill = millrace({ store: 'memory:', tasks: [upload] })
await mill.worker().start()
const job = await mill.enqueue(upload, Buffer.from('hi')).catch((error) => ({ result: async () => error.code }))
const result = await job.result()
console.log(result === 'aGk=' || result === 'job-invalid' ? 'ok' : 'WRONG', result)
await mill.close()
