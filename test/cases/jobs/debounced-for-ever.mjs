// An index is to be written 300 ms after the last change of a document, and somebody types for four seconds. `atMost` bounds the wait from
// the first change on (here 1 s): it is written at least three times.
import { defineTask, millrace } from 'millrace'

const written = []
const begun = Date.now()
const index = defineTask({
  name: 'index',
  run: async (version) => void written.push(`${version} at ${Date.now() - begun} ms`),
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `typing${Date.now()}`, tasks: [index] })
await mill.worker().start()
for (let version = 1; version <= 40; version += 1) {
  await mill.enqueue(index, version, { id: 'document-7', delay: '300ms', ifWaiting: 'replace', atMost: '1s' })
  await new Promise((typed) => setTimeout(typed, 100))
}
await new Promise((done) => setTimeout(done, 800))
console.log(written.length >= 3 ? 'ok' : 'WRONG', written)
await mill.close()
